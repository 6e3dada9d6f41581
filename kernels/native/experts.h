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

    // Of the slice that is computed at a time, so that memory does not grow with the batch: its runs, groups and pairs.
    int run_begin = 0, run_end = 0, group_begin = 0, group_end = 0, pair_begin = 0, pair_end = 0;
    Arena source;                       // rows of the source by pair, for float weights
    Roundings input, hidden;            // interleaved by group
    Arena opened;                       // [pairs, padded width] behind the activation
    Arena sums;                         // [strips, rows, kStripRows], only where there is more than one slice

    // `route`: [rows, stride], ids then weights. Before the first slice then.
    void sort(const float* route, size_t stride, int rows, int experts, int used);
    void restart() { run_begin = run_end = group_begin = group_end = pair_begin = pair_end = 0; }
    bool sorted() const { return run_end > 0; }  // and at a slice
    bool more() const { return run_end < static_cast<int>(runs.size()); }
    bool sliced() const { return run_begin > 0 || more(); }
    // The next runs, at least one, at most `most` pairs.
    void next_slice(int most);
    int run_count() const { return run_end - run_begin; }
    int group_count() const { return group_end - group_begin; }
};

}  // namespace pk
