#include "arena.h"

#include <cstdlib>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace pk {
namespace {

constexpr size_t kPage = 4096, kHugePage = 2 << 20;

// From two huge pages on memory is asked for in such: rows lie pages apart, and every strip of outputs touches all of them.
void* allocate(size_t bytes) {
    const size_t unit = bytes < 2 * kHugePage ? kPage : kHugePage;
    void* memory = std::aligned_alloc(unit, (bytes + unit - 1) / unit * unit);
#if defined(__linux__)
    if (memory && unit == kHugePage) madvise(memory, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
#endif
    return memory;
}

}  // namespace

void AlignedFree::operator()(void* p) const { std::free(p); }

uint8_t* Arena::reserve(size_t bytes) {
    if (bytes > size_) {
        const size_t rounded = (bytes + kPage - 1) / kPage * kPage;
        memory_.reset();
        size_ = 0;
        memory_.reset(static_cast<uint8_t*>(allocate(rounded)));
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
