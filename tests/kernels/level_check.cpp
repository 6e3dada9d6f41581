// Compares the quantised products of two instruction set levels bit by bit. Both must fuse alike (portable and dotprod, avx2
// and avxvnni), so that every sum is rounded alike. Groups of activations are also woven of single tokens. Prints the types that differ; exit status 1 if any does.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

#include "../../kernels/native/weave.h"

#define PK_STR2(x) #x
#define PK_STR(x) PK_STR2(x)
#define PK_DECLARE(level)                                                                                  \
    namespace pk { namespace level {                                                                       \
    Rounding rounding(int ggml_type);                                                                      \
    void round_activations(Rounding, const float* src, size_t stride, int cols, QuantGroup);               \
    size_t quant_scratch(int cols);                                                                        \
    void linear_quant_strips(const LinearArgs&, int first, int count, uint8_t* scratch);                   \
    } }
PK_DECLARE(PK_ONE)
PK_DECLARE(PK_OTHER)

namespace {

struct Type {
    int number, elements, bytes;
    std::vector<int> scales;  // where float16 scales stand in a block
};

const std::vector<Type> kTypes = {
    {2, 32, 18, {0}},         {3, 32, 20, {0, 2}},      {6, 32, 22, {0}},       {7, 32, 24, {0, 2}},
    {8, 32, 34, {0}},         {10, 256, 84, {80, 82}},  {11, 256, 110, {108}},  {12, 256, 144, {0, 2}},
    {13, 256, 176, {0, 2}},   {14, 256, 210, {208}},    {20, 32, 18, {0}},      {23, 256, 136, {0}},
    {35, 256, 66, {64}},      {39, 32, 17, {}},         {40, 64, 36, {}},       {21, 256, 110, {0}},
    {22, 256, 82, {0}},       {16, 256, 66, {0}},       {17, 256, 74, {0}},     {18, 256, 98, {0}},
    {19, 256, 50, {0}},       {29, 256, 56, {54}},      {34, 256, 54, {52}},    {41, 128, 18, {0}},
    {42, 64, 18, {0}},
};

uint32_t state = 1;
uint32_t next() {
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

std::vector<uint8_t> weights(const Type& type, int rows, int cols) {
    std::vector<uint8_t> raw(static_cast<size_t>(rows) * cols / type.elements * type.bytes);
    for (uint8_t& byte : raw) byte = static_cast<uint8_t>(next());
    for (size_t block = 0; block < raw.size(); block += type.bytes) {
        for (int at : type.scales) raw[block + at + 1] = 0x20 | (next() & 0x83);
        if (type.number == 39) raw[block] = 120;
        for (int i = 0; i < 4 && type.number == 40; i++) raw[block + i] &= 0x3f;
    }
    return raw;
}

struct Level {
    const char* name;
    decltype(&pk::PK_ONE::rounding) rounding;
    decltype(&pk::PK_ONE::round_activations) round;
    decltype(&pk::PK_ONE::quant_scratch) scratch;
    decltype(&pk::PK_ONE::linear_quant_strips) strips;
};

struct Rounded {
    std::vector<int8_t> data;
    std::vector<float> meta, halves;
    Rounded(pk::Rounding way, int cols, int tokens)
        : data(static_cast<size_t>(cols) * tokens), meta(pk::meta_words(way, cols) * tokens), halves(pk::half_words(cols) * tokens) {}
    bool same(const Rounded& other) const {  // bits: some of the floats are integers
        const auto equal = [](const std::vector<float>& a, const std::vector<float>& b) {
            return !std::memcmp(a.data(), b.data(), a.size() * sizeof(float));
        };
        return data == other.data && equal(meta, other.meta) && equal(halves, other.halves);
    }
};

// Of up to 8 tokens; false if a group woven of single ones is another.
bool round_group(const Level& level, pk::Rounding way, const float* x, int cols, pk::QuantGroup to) {
    level.round(way, x, cols, cols, to);
    const int tokens = to.tokens;
    Rounded whole(way, cols, tokens), woven(way, cols, tokens);
    std::copy_n(to.data, whole.data.size(), whole.data.begin());
    std::copy_n(to.meta, whole.meta.size(), whole.meta.begin());
    if (way == pk::kPerBlock) std::copy_n(to.halves, whole.halves.size(), whole.halves.begin());
    const int run = std::strcmp(level.name, "i8mm") ? 4 : 8;
    for (int t = 0; t < tokens; t++) {
        Rounded single(way, cols, 1);
        const pk::QuantGroup from = {single.data.data(), single.meta.data(), single.halves.data(), 1};
        level.round(way, x + static_cast<size_t>(t) * cols, cols, cols, from);
        pk::weave(from, way, cols, run, t, {woven.data.data(), woven.meta.data(), woven.halves.data(), tokens});
    }
    return whole.same(woven);
}

std::vector<float> product(const Level& level, const Type& type, const std::vector<uint8_t>& raw, int rows, int cols,
                           int tokens) {
    std::vector<float> x(static_cast<size_t>(tokens) * cols), out(static_cast<size_t>(tokens) * rows);
    state = 7;
    for (float& value : x) value = static_cast<float>(static_cast<int>(next() % 2001) - 1000) * 1e-3f;
    const pk::Rounding way = level.rounding(type.number);
    const size_t words = pk::meta_words(way, cols), half_words = pk::half_words(cols);
    Rounded rounded(way, cols, tokens);
    for (int t = 0; t < tokens; t += pk::kGroupTokens) {
        const size_t at = static_cast<size_t>(t) * cols;
        const pk::QuantGroup group = {&rounded.data[at], &rounded.meta[words * t], &rounded.halves[half_words * t], std::min(8, tokens - t)};
        if (!round_group(level, way, &x[at], cols, group)) return {};
    }
    const pk::TensorView view = {raw.data(), type.number, rows, cols, static_cast<size_t>(cols) / type.elements * type.bytes};
    const pk::LinearArgs args = {view, x.data(), static_cast<size_t>(cols), rounded.data.data(), rounded.meta.data(), rounded.halves.data(),
                                 out.data(), static_cast<size_t>(rows), nullptr, 1.0f, false, tokens};
    std::vector<uint8_t> scratch(level.scratch(cols));
    level.strips(args, 0, (rows + pk::kStripRows - 1) / pk::kStripRows, scratch.data());
    return out;
}

}  // namespace

int main() {
    const Level one = {PK_STR(PK_ONE), pk::PK_ONE::rounding, pk::PK_ONE::round_activations, pk::PK_ONE::quant_scratch, pk::PK_ONE::linear_quant_strips};
    const Level other = {PK_STR(PK_OTHER), pk::PK_OTHER::rounding, pk::PK_OTHER::round_activations, pk::PK_OTHER::quant_scratch, pk::PK_OTHER::linear_quant_strips};
    int different = 0;
    for (const Type& type : kTypes)
        for (int tokens : {1, 3, 6, 8, 21}) {
            const int rows = 37, cols = 512;
            const std::vector<uint8_t> raw = weights(type, rows, cols);
            const std::vector<float> expected = product(one, type, raw, rows, cols, tokens);
            if (!expected.empty() && expected == product(other, type, raw, rows, cols, tokens)) continue;
            std::printf("type %d with %d tokens differs\n", type.number, tokens);
            different++;
        }
    return different > 0;
}
