// What stands between two steps of an answer, as Python calls it.
#include <nanobind/nanobind.h>

#include <stdexcept>

#include "lookup.h"
#include "sampler.h"
#include "step_input.h"

namespace nb = nanobind;

namespace {

int pick(pk::Sampler& sampler, nb::handle logits, int row, nb::list recent, uint64_t position) {
    const pk::ArrayView view(logits, "logits", pk::ArrayView::kFloat, {-1, -1});
    if (row < 0 || row >= view.length(0) || view.length(1) == 0) throw std::invalid_argument("logits have no such row");
    const size_t size = nb::len(recent), counted = std::min(size, sampler.window());
    std::vector<int32_t> ids;
    for (size_t i = size - counted; i < size; i++) ids.push_back(nb::cast<int>(recent[i]));
    const int count = view.length(1);
    return sampler.pick(view.data<float>() + static_cast<size_t>(row) * count, count, ids.data(), ids.size(), position);
}

// Where a match with the end of `ids` ends, and its length; (0, 0): there is none.
nb::tuple latest_match(nb::handle ids, int shortest, int longest) {
    const pk::ArrayView view(ids, "ids", pk::ArrayView::kInt, {-1});
    const pk::Match match = pk::latest_match(view.data<int32_t>(), view.length(0), shortest, longest);
    return nb::make_tuple(match.end, match.length);
}

}  // namespace

void bind_sampling(nb::module_& m) {
    m.def("latest_match", &latest_match);
    nb::class_<pk::Sampler>(m, "Sampler")
        .def("__init__",
             [](pk::Sampler* sampler, double temperature, int64_t top_k, double top_p, double min_p, double repetition,
                double frequency, double presence, int64_t window, uint64_t seed) {
                 new (sampler) pk::Sampler(pk::SamplingRule{temperature, top_p, min_p, repetition, frequency, presence, top_k, window, seed});
             })
        .def("pick", &pick);
}
