// Values behind the indices of i-quants; byte i of an entry is value i, as int8. IQ1's are eight times the value.
#pragma once
#include <cstdint>

namespace pk {

template <int COUNT>
struct Codebook {
    uint64_t entries[COUNT];
};

extern const Codebook<256> codebookIq2Xxs;
extern const Codebook<512> codebookIq2Xs;
extern const Codebook<1024> codebookIq2S;
extern const Codebook<256> codebookIq3Xxs;  // 4 values each
extern const Codebook<512> codebookIq3S;    // 4 values each
extern const Codebook<2048> codebookIq1S;

}  // namespace pk
