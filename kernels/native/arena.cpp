#include "arena.h"

#include <cstdlib>
#include <new>

namespace pk {

void AlignedFree::operator()(void* p) const { std::free(p); }

uint8_t* Arena::reserve(size_t bytes) {
    if (bytes > size_) {
        const size_t rounded = (bytes + 4095) / 4096 * 4096;
        memory_.reset();
        size_ = 0;
        memory_.reset(static_cast<uint8_t*>(std::aligned_alloc(4096, rounded)));
        if (!memory_) throw std::bad_alloc();
        size_ = rounded;
    }
    return memory_.get();
}

void Quantised::reserve(Rounding rounding, size_t rows, size_t cols, bool with_halves) {
    data.reserve(cols * rows);
    meta.reserve(meta_words(rounding, cols) * sizeof(float) * rows);
    if (with_halves && rounding == kPerBlock) halves.reserve(half_words(cols) * sizeof(float) * rows);
}

QuantGroup Quantised::group(Rounding rounding, size_t first, size_t cols, int tokens) const {
    return QuantGroup{reinterpret_cast<int8_t*>(data.data()) + first * cols,
                      meta.floats() + first * meta_words(rounding, cols),
                      halves.data() ? halves.floats() + first * half_words(cols) : nullptr, tokens};
}

}  // namespace pk
