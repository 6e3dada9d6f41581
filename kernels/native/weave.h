// Groups of quantised activations made of single tokens.
#pragma once
#include "types.h"

namespace pk {

// Words of one token among those of `tokens`.
template <class Word>
void weave_words(const Word* single, size_t words, size_t tokens, int token, Word* out) {
    for (size_t i = 0; i < words; i++) out[i * tokens + token] = single[i];
}

// The group of one token as token t of another group. `run`: of the level (KernelTable).
inline void weave(const QuantGroup& single, Rounding way, size_t cols, int run, int t, const QuantGroup& out) {
    const size_t n = static_cast<size_t>(out.tokens);
    if (run == 8)
        weave_words(reinterpret_cast<const uint64_t*>(single.data), cols / 8, n, t, reinterpret_cast<uint64_t*>(out.data));
    else
        weave_words(reinterpret_cast<const uint32_t*>(single.data), cols / 4, n, t, reinterpret_cast<uint32_t*>(out.data));
    weave_words(single.meta, meta_words(way, cols), n, t, out.meta);
    if (single.halves) weave_words(single.halves, half_words(cols), n, t, out.halves);
}

}  // namespace pk
