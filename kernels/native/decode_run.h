// Several steps of answers in one go: what each sequence drew is what it feeds to the next step.
#pragma once
#include <nanobind/nanobind.h>

#include <deque>
#include <vector>

#include "executor.h"
#include "sampler.h"
#include "step_input.h"

namespace pk {

// How the tokens of one sequence are drawn, and what of them ends the run.
class Drawing {
public:
    // `given`: a Draw of kernels/native_program.py.
    explicit Drawing(nanobind::handle given);

    // Draws the id at `position`; true where nothing may follow it in this run. Scores of struck ids are written over.
    bool draw(float* scores, int count, int position);
    // Looks for the end of what there is in what stood before; true where a draft may follow.
    bool look_up();
    int last() const { return ids_.back(); }
    size_t drawn() const { return ids_.size() - given_; }
    int at(size_t index) const { return ids_[given_ + index]; }
    const std::vector<int>& passed() const { return passed_; }

private:
    Drawing(const Drawing&) = delete;

    Sampler& sampler_;
    std::vector<int32_t> ids_;   // of the whole conversation
    size_t given_, answer_;      // where what is drawn begins, and the answer
    ArrayView ends_, struck_;
    int shortest_, longest_, least_;
    std::vector<int> passed_;    // lengths of matches that ended nothing
};

struct RunLimits {
    int steps;
    double milliseconds;         // no step begins that would end later, going by the one before
};

struct RunTimes {
    std::vector<double> milliseconds;  // of each whole step
    bool looked = false;         // no draft may follow the last one's tokens
};

// From the batch's tokens, one of each sequence, on. Stops earlier where a drawing ends it, or the batch's flag is up:
// PARK lets the step in progress end, STOP does not.
RunTimes decode(Executor& executor, StepArrays& arrays, BatchView& batch, std::deque<Drawing>& drawings,
                const RunLimits& limits);

}  // namespace pk
