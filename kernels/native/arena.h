// Memory that only grows, and quantised activations in it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#include "types.h"

namespace pk {

struct AlignedFree {
    void operator()(void* p) const;
};

// 64-byte aligned.
class Arena {
public:
    uint8_t* reserve(size_t bytes);
    uint8_t* data() const { return memory_.get(); }
    float* floats() const { return reinterpret_cast<float*>(memory_.get()); }
    size_t size() const { return size_; }

private:
    std::unique_ptr<uint8_t, AlignedFree> memory_;
    size_t size_ = 0;
};

// Rows of `cols` channels rounded in one way, one QuantGroup after the other.
struct Quantised {
    Arena data, meta, halves;
    void reserve(Rounding rounding, size_t rows, size_t cols, bool with_halves);
    QuantGroup group(Rounding rounding, size_t first, size_t cols, int tokens) const;
};

// The same rows in either way; one that nobody reserves takes no memory.
struct Roundings {
    Quantised ways[2];
    void reserve(Rounding rounding, size_t rows, size_t cols, bool with_halves) {
        ways[rounding == kPerSuper].reserve(rounding, rows, cols, with_halves);
    }
    QuantGroup group(Rounding rounding, size_t first, size_t cols, int tokens) const {
        return ways[rounding == kPerSuper].group(rounding, first, cols, tokens);
    }
};

}  // namespace pk
