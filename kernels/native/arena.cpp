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

void Quantised::reserve(size_t rows, size_t cols, bool with_halves) {
    const size_t meta_bytes = cols / kBlock * 4 * sizeof(float) * rows;
    data.reserve(cols * rows);
    meta.reserve(meta_bytes);
    if (with_halves) halves.reserve(meta_bytes);
}

QuantGroup Quantised::group(size_t first, size_t cols, int tokens) const {
    const size_t at = first * (cols / kBlock) * 4;
    return QuantGroup{reinterpret_cast<int8_t*>(data.data()) + first * cols, meta.floats() + at,
                      halves.data() ? halves.floats() + at : nullptr, tokens};
}

}  // namespace pk
