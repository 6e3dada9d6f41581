// Cuts a block of scratch memory into 64-byte aligned parts; on a null base it only measures.
#pragma once
#include "level.h"

PK_BEGIN
class Carver {
public:
    explicit Carver(uint8_t* base) : base_(base) {}
    uint8_t* take(size_t bytes) {
        uint8_t* at = base_ + used_;
        used_ += align64(bytes);
        return at;
    }
    float* floats(size_t count) { return (float*)take(count * 4); }
    size_t used() const { return used_; }

private:
    uint8_t* base_;
    size_t used_ = 0;
};
PK_END
