// From logits to a token id; see kernels/sample.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace pk {

struct SamplingRule {
    double temperature, top_p, min_p, repetition, frequency, presence;
    int64_t top_k, window;
    uint64_t seed;
};

// The best of every block of scores, the rest as a last one. Scores that are no numbers are passed over.
struct Blocks {
    std::vector<float> best;
    bool numbers = true;         // all scores are

    void find(const float* scores, int count);

private:
    float of_whole(const float* scores);
    float of_rest(const float* scores, int count);
};

// Draws tokens of one answer. Keeps its memory from one to the next.
class Sampler {
public:
    explicit Sampler(const SamplingRule& rule) : rule_(rule) {}

    // How many of the ids before count for penalties. 0: there are none.
    size_t window() const;
    // The id at `position`. `recent`: the ids before it, of which the last count. std::invalid_argument: one has no score.
    int pick(const float* scores, int count, const int32_t* recent, size_t recents, uint64_t position);

private:
    void penalise(const int32_t* recent, size_t recents);
    int best() const;
    int drawn(uint64_t position);
    void rank();
    float bound(size_t most);
    void gather(float least);
    size_t reached();

    SamplingRule rule_;
    const float* scores_ = nullptr;
    int count_ = 0;
    Blocks blocks_;
    std::vector<float> changed_, order_;
    std::vector<double> weights_;
    std::vector<int> ids_, recent_;
};

}  // namespace pk
