// From logits to a token id, and drafts from a conversation's own tokens: what stands between two steps of an answer.
#include <nanobind/nanobind.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "step_input.h"

namespace nb = nanobind;

namespace {

constexpr int kBlock = 64;   // scores whose best is found at once

typedef float Four __attribute__((vector_size(16)));
typedef int32_t FourInts __attribute__((vector_size(16)));

constexpr float kLeast = -std::numeric_limits<float>::infinity();

// The best of every block of scores, the rest as a last one. Scores that are no numbers are passed over.
struct Blocks {
    std::vector<float> best;
    bool numbers = true;         // all scores are

    void find(const float* scores, int count) {
        best.clear();
        numbers = true;
        int start = 0;
        for (; start + kBlock <= count; start += kBlock) best.push_back(of_whole(scores + start));
        if (start < count) best.push_back(of_rest(scores + start, count - start));
    }

private:
    float of_whole(const float* scores) {
        constexpr int kSide = 4;  // vectors side by side: one alone waits for itself
        Four most[kSide];
        FourInts odd = {};
        for (Four& side : most) side = Four{kLeast, kLeast, kLeast, kLeast};
        for (int i = 0; i < kBlock; i += 4 * kSide)
            for (int side = 0; side < kSide; side++) {
                Four x;
                __builtin_memcpy(&x, scores + i + 4 * side, sizeof x);
                most[side] = x > most[side] ? x : most[side];
                odd |= x != x;
            }
        for (int side = 1; side < kSide; side++) most[0] = most[side] > most[0] ? most[side] : most[0];
        numbers = numbers && !(odd[0] | odd[1] | odd[2] | odd[3]);
        return std::max(std::max(most[0][0], most[0][1]), std::max(most[0][2], most[0][3]));
    }

    float of_rest(const float* scores, int count) {
        float most = kLeast;
        for (int i = 0; i < count; i++) {
            most = scores[i] > most ? scores[i] : most;
            numbers = numbers && scores[i] == scores[i];
        }
        return most;
    }
};

// numpy's way of adding up: in pairs of halves, eight sums side by side.
double pairwise_sum(const double* values, size_t count) {
    if (count < 8) return std::accumulate(values, values + count, -0.0);
    if (count > 128) {
        const size_t half = count / 2 - count / 2 % 8;
        return pairwise_sum(values, half) + pairwise_sum(values + half, count - half);
    }
    double r[8];
    std::copy_n(values, 8, r);
    size_t i = 8;
    for (; i + 8 <= count; i += 8)
        for (int j = 0; j < 8; j++) r[j] += values[i + j];
    double sum = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
    for (; i < count; i++) sum += values[i];
    return sum;
}

// The splitmix64 finaliser.
uint64_t mixed(uint64_t value) {
    value += 0x9E3779B97F4A7C15u;
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
    value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
    return value ^ (value >> 31);
}

double uniform(uint64_t seed, uint64_t position) {
    return static_cast<double>(mixed(mixed(seed) ^ position) >> 11) / static_cast<double>(uint64_t{1} << 53);
}

struct Settings {
    double temperature, top_p, min_p, repetition, frequency, presence;
    int64_t top_k, window;
    uint64_t seed;
};

// Draws tokens of one answer; see kernels/sample. Keeps its memory from one to the next.
class Sampler {
public:
    Sampler(double temperature, int64_t top_k, double top_p, double min_p, double repetition, double frequency,
            double presence, int64_t window, uint64_t seed)
        : settings_{temperature, top_p, min_p, repetition, frequency, presence, top_k, window, seed} {}

    int pick(nb::handle logits, int row, nb::list recent, uint64_t position) {
        const pk::ArrayView view(logits, "logits", pk::ArrayView::kFloat, {-1, -1});
        if (row < 0 || row >= view.length(0) || view.length(1) == 0) throw std::invalid_argument("logits have no such row");
        count_ = view.length(1);
        scores_ = view.data<float>() + static_cast<size_t>(row) * count_;
        penalise(recent);
        blocks_.find(scores_, count_);
        return settings_.temperature <= 0 ? best() : drawn(position);
    }

private:
    void penalise(const nb::list& recent) {
        const size_t size = nb::len(recent);
        const bool neutral = settings_.repetition == 1 && settings_.frequency == 0 && settings_.presence == 0;
        if (neutral || size == 0 || settings_.window <= 0) return;
        recent_.clear();
        for (size_t i = size - std::min<size_t>(size, settings_.window); i < size; i++) recent_.push_back(id_of(recent[i]));
        std::sort(recent_.begin(), recent_.end());
        changed_.assign(scores_, scores_ + count_);
        const float factor = static_cast<float>(settings_.repetition);
        const float frequency = static_cast<float>(settings_.frequency), presence = static_cast<float>(settings_.presence);
        for (auto at = recent_.begin(); at != recent_.end();) {
            const auto next = std::upper_bound(at, recent_.end(), *at);
            const float score = changed_[*at], divided = score > 0 ? score / factor : score * factor;
            changed_[*at] = (divided - static_cast<float>(next - at) * frequency) - presence;
            at = next;
        }
        scores_ = changed_.data();
    }

    int id_of(nb::handle number) const {
        const int id = nb::cast<int>(number);
        if (id < 0 || id >= count_) throw std::invalid_argument("a recent token has no logit");
        return id;
    }

    // The first of the best; a score that is no number counts as the best.
    int best() const {
        if (!blocks_.numbers) return static_cast<int>(std::find_if(scores_, scores_ + count_, [](float s) { return s != s; }) - scores_);
        const auto block = std::max_element(blocks_.best.begin(), blocks_.best.end());
        const float* start = scores_ + (block - blocks_.best.begin()) * kBlock;
        return static_cast<int>(std::find(start, scores_ + count_, *block) - scores_);
    }

    int drawn(uint64_t position) {
        rank();
        const size_t kept = reached();
        for (size_t i = 0; i < kept; i++)
            weights_[i] = std::exp((static_cast<double>(scores_[ids_[i]]) - static_cast<double>(scores_[ids_[0]])) / settings_.temperature);
        const double threshold = uniform(settings_.seed, position) * pairwise_sum(weights_.data(), kept);
        size_t chosen = 0;
        for (double sum = weights_[0]; chosen + 1 < kept && sum <= threshold;) sum += weights_[++chosen];
        return ids_[chosen];
    }

    // The ids of the top_k best scores, or of all, in descending order, ties by id; what is no number comes last.
    void rank() {
        const bool all = settings_.top_k <= 0 || settings_.top_k >= count_;
        const size_t most = all ? count_ : static_cast<size_t>(settings_.top_k);
        ids_.clear();
        if (!all) gather(bound(most));
        if (ids_.size() < most) {
            ids_.resize(count_);
            std::iota(ids_.begin(), ids_.end(), 0);
        }
        const auto before = [this](int a, int b) {
            const float x = scores_[a], y = scores_[b];
            if (x != x || y != y) return x == x || (y != y && a < b);
            return x > y || (x == y && a < b);
        };
        std::partial_sort(ids_.begin(), ids_.begin() + most, ids_.end(), before);
        ids_.resize(most);
    }

    // No more than the `most`-th best score: so many blocks have one that is at least this.
    float bound(size_t most) {
        if (blocks_.best.size() < most) return kLeast;
        order_ = blocks_.best;
        std::nth_element(order_.begin(), order_.begin() + (most - 1), order_.end(), std::greater<float>());
        return order_[most - 1];
    }

    void gather(float least) {
        for (size_t block = 0; block < blocks_.best.size(); block++) {
            if (blocks_.best[block] < least) continue;
            const int start = static_cast<int>(block) * kBlock;
            for (int id = start; id < std::min(start + kBlock, count_); id++)
                if (scores_[id] >= least) ids_.push_back(id);
        }
    }

    // How many of the ranked ids top_p and min_p leave; at least one.
    size_t reached() {
        const size_t size = ids_.size();
        weights_.resize(size);
        for (size_t i = 0; i < size; i++)
            weights_[i] = std::exp(static_cast<double>(scores_[ids_[i]]) - static_cast<double>(scores_[ids_[0]]));
        const double whole = pairwise_sum(weights_.data(), size);
        for (double& weight : weights_) weight /= whole;
        size_t kept = size;
        if (settings_.top_p < 1) {
            size_t count = 0;
            for (double sum = 0; count < size;) {
                sum += weights_[count++];
                if (sum >= settings_.top_p) break;
            }
            kept = count;
        }
        if (settings_.min_p > 0) {
            const double least = settings_.min_p * weights_[0];
            const auto above = std::count_if(weights_.begin(), weights_.end(), [least](double p) { return p >= least; });
            kept = std::min(kept, std::max<size_t>(1, above));
        }
        return kept;
    }

    Settings settings_;
    const float* scores_ = nullptr;
    int count_ = 0;
    Blocks blocks_;
    std::vector<float> changed_, order_;
    std::vector<double> weights_;
    std::vector<int> ids_, recent_;
};

// Where the latest of the longest matches with the end of `ids` ends, and its length, at most `longest`; (0, 0) where
// none has at least `shortest` ids.
nb::tuple latest_match(nb::handle ids, int shortest, int longest) {
    const pk::ArrayView view(ids, "ids", pk::ArrayView::kInt, {-1});
    const int32_t* all = view.data<int32_t>();
    const int count = view.length(0), last = count - 1;
    int end = 0, best = shortest - 1;
    for (int at = last - 1; at >= best && best < longest; at--) {
        if (all[at] != all[last]) continue;
        const int most = std::min(at + 1, longest);
        int length = 1;
        while (length < most && all[at - length] == all[last - length]) length++;
        if (length > best) end = at + 1, best = length;
    }
    return nb::make_tuple(end, end ? best : 0);
}

}  // namespace

void bind_sampling(nb::module_& m) {
    m.def("latest_match", &latest_match);
    nb::class_<Sampler>(m, "Sampler")
        .def(nb::init<double, int64_t, double, double, double, double, double, int64_t, uint64_t>())
        .def("pick", &Sampler::pick);
}
