// kernels._native.Encoder. Shapes, dtypes and token ranges are validated by kernels/text_encoder.py.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <mutex>

#include "encoder.h"
#include "isa.h"

namespace nb = nanobind;

namespace {

using Ints = nb::ndarray<const int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using FloatRows = nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

const float* at(uint64_t address) { return reinterpret_cast<const float*>(static_cast<uintptr_t>(address)); }

// A pool of scratch memory, so that several threads can encode with one copy of the weights.
class NativeEncoder {
public:
    // `tensors`: addresses: words, positions, type, norm, norm bias; then per layer in the order of LayerTensors.
    NativeEncoder(int hidden, int heads, int ffn, double eps, bool first_token, const std::vector<uint64_t>& tensors,
                  const std::string& isa)
        : encoder_({hidden, heads, ffn, static_cast<float>(eps), first_token}, at(tensors[0]), at(tensors[1]),
                   at(tensors[2]), {at(tensors[3]), at(tensors[4])}, layers(tensors), pk::find_level(isa)) {}

    void encode(Ints tokens, Ints starts, FloatRows out) {
        const pk::BertBatch batch{tokens.data(), starts.data(), static_cast<int>(starts.shape(0)) - 1, out.data()};
        nb::gil_scoped_release release;
        std::vector<uint8_t> scratch = taken();
        encoder_.encode(batch, scratch);
        const std::lock_guard<std::mutex> lock(mutex_);
        free_.push_back(std::move(scratch));
    }

private:
    static constexpr int kTensors = 16;

    static std::vector<pk::LayerTensors> layers(const std::vector<uint64_t>& t) {
        std::vector<pk::LayerTensors> found;
        for (size_t i = 5; i + kTensors <= t.size(); i += kTensors)
            found.push_back({{at(t[i]), at(t[i + 2]), at(t[i + 4])}, {at(t[i + 1]), at(t[i + 3]), at(t[i + 5])},
                             at(t[i + 6]), at(t[i + 7]), at(t[i + 8]), at(t[i + 9]), at(t[i + 10]), at(t[i + 11]),
                             at(t[i + 12]), at(t[i + 13]), at(t[i + 14]), at(t[i + 15])});
        return found;
    }

    std::vector<uint8_t> taken() {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (free_.empty()) return {};
        std::vector<uint8_t> scratch = std::move(free_.back());
        free_.pop_back();
        return scratch;
    }

    const pk::Encoder encoder_;
    std::mutex mutex_;
    std::vector<std::vector<uint8_t>> free_;
};

}  // namespace

void bind_encoder(nb::module_& m) {
    nb::class_<NativeEncoder>(m, "Encoder")
        .def(nb::init<int, int, int, double, bool, const std::vector<uint64_t>&, const std::string&>())
        .def("encode", &NativeEncoder::encode);
}
