#include "sampler.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <stdexcept>

namespace pk {
namespace {

constexpr int kBlock = 64;   // scores whose best is found at once

typedef float Four __attribute__((vector_size(16)));
typedef int32_t FourInts __attribute__((vector_size(16)));

constexpr float kLeast = -std::numeric_limits<float>::infinity();

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

}  // namespace

void Blocks::find(const float* scores, int count) {
    best.clear();
    numbers = true;
    int start = 0;
    for (; start + kBlock <= count; start += kBlock) best.push_back(of_whole(scores + start));
    if (start < count) best.push_back(of_rest(scores + start, count - start));
}

float Blocks::of_whole(const float* scores) {
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

float Blocks::of_rest(const float* scores, int count) {
    float most = kLeast;
    for (int i = 0; i < count; i++) {
        most = scores[i] > most ? scores[i] : most;
        numbers = numbers && scores[i] == scores[i];
    }
    return most;
}

size_t Sampler::window() const {
    const bool neutral = rule_.repetition == 1 && rule_.frequency == 0 && rule_.presence == 0;
    return neutral || rule_.window <= 0 ? 0 : static_cast<size_t>(rule_.window);
}

int Sampler::pick(const float* scores, int count, const int32_t* recent, size_t recents, uint64_t position) {
    scores_ = scores;
    count_ = count;
    const size_t counted = std::min(recents, window());
    if (counted) penalise(recent + (recents - counted), counted);
    blocks_.find(scores_, count_);
    return rule_.temperature <= 0 ? best() : drawn(position);
}

void Sampler::penalise(const int32_t* recent, size_t recents) {
    recent_.assign(recent, recent + recents);
    std::sort(recent_.begin(), recent_.end());
    if (recent_.front() < 0 || recent_.back() >= count_) throw std::invalid_argument("a recent token has no logit");
    changed_.assign(scores_, scores_ + count_);
    const float factor = static_cast<float>(rule_.repetition);
    const float frequency = static_cast<float>(rule_.frequency), presence = static_cast<float>(rule_.presence);
    for (auto at = recent_.begin(); at != recent_.end();) {
        const auto next = std::upper_bound(at, recent_.end(), *at);
        const float score = changed_[*at], divided = score > 0 ? score / factor : score * factor;
        changed_[*at] = (divided - static_cast<float>(next - at) * frequency) - presence;
        at = next;
    }
    scores_ = changed_.data();
}

// The first of the best; a score that is no number counts as the best.
int Sampler::best() const {
    if (!blocks_.numbers) return static_cast<int>(std::find_if(scores_, scores_ + count_, [](float s) { return s != s; }) - scores_);
    const auto block = std::max_element(blocks_.best.begin(), blocks_.best.end());
    const float* start = scores_ + (block - blocks_.best.begin()) * kBlock;
    return static_cast<int>(std::find(start, scores_ + count_, *block) - scores_);
}

int Sampler::drawn(uint64_t position) {
    rank();
    const size_t kept = reached();
    for (size_t i = 0; i < kept; i++)
        weights_[i] = std::exp((static_cast<double>(scores_[ids_[i]]) - static_cast<double>(scores_[ids_[0]])) / rule_.temperature);
    const double threshold = uniform(rule_.seed, position) * pairwise_sum(weights_.data(), kept);
    size_t chosen = 0;
    for (double sum = weights_[0]; chosen + 1 < kept && sum <= threshold;) sum += weights_[++chosen];
    return ids_[chosen];
}

// The ids of the top_k best scores, or of all, in descending order, ties by id; what is no number comes last.
void Sampler::rank() {
    const bool all = rule_.top_k <= 0 || rule_.top_k >= count_;
    const size_t most = all ? count_ : static_cast<size_t>(rule_.top_k);
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
float Sampler::bound(size_t most) {
    if (blocks_.best.size() < most) return kLeast;
    order_ = blocks_.best;
    std::nth_element(order_.begin(), order_.begin() + (most - 1), order_.end(), std::greater<float>());
    return order_[most - 1];
}

void Sampler::gather(float least) {
    for (size_t block = 0; block < blocks_.best.size(); block++) {
        if (blocks_.best[block] < least) continue;
        const int start = static_cast<int>(block) * kBlock;
        for (int id = start; id < std::min(start + kBlock, count_); id++)
            if (scores_[id] >= least) ids_.push_back(id);
    }
}

// How many of the ranked ids top_p and min_p leave; at least one.
size_t Sampler::reached() {
    const size_t size = ids_.size();
    weights_.resize(size);
    for (size_t i = 0; i < size; i++)
        weights_[i] = std::exp(static_cast<double>(scores_[ids_[i]]) - static_cast<double>(scores_[ids_[0]]));
    const double whole = pairwise_sum(weights_.data(), size);
    for (double& weight : weights_) weight /= whole;
    size_t kept = size;
    if (rule_.top_p < 1) {
        size_t count = 0;
        for (double sum = 0; count < size;) {
            sum += weights_[count++];
            if (sum >= rule_.top_p) break;
        }
        kept = count;
    }
    if (rule_.min_p > 0) {
        const double least = rule_.min_p * weights_[0];
        const auto above = std::count_if(weights_.begin(), weights_.end(), [least](double p) { return p >= least; });
        kept = std::min(kept, std::max<size_t>(1, above));
    }
    return kept;
}

}  // namespace pk
