// Token-expert pairs of a step, sorted by expert, and the memory that they need.
#pragma once
#include <vector>

#include "arena.h"
#include "types.h"

namespace pk {

struct ExpertGroup {         // up to 8 pairs of one expert
    int pair;
    int pairs;
};

struct ExpertRun {           // all pairs of one expert
    int expert;
    int pair;
    int pairs;
};

struct ExpertPairs {
    std::vector<ExpertRun> runs;        // ascending expert, only those with pairs
    std::vector<ExpertGroup> groups;
    std::vector<int> rows;              // of the batch, by pair; ascending inside a run
    std::vector<float> weights;
    Arena source;                       // rows of the source by pair, for float weights
    Quantised input, hidden;            // interleaved by group
    Arena opened;                       // [pairs, padded width] behind the activation

    // `route`: [rows, stride], ids then weights.
    void sort(const float* route, size_t stride, int rows, int experts, int used);
};

}  // namespace pk
