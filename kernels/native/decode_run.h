// Several steps of answers in one go: what each sequence drew is what it feeds to the next step, and behind it what
// followed when the same tokens stood there before. Drafts change how many steps it takes, never what is drawn.
#pragma once
#include <nanobind/nanobind.h>

#include <deque>
#include <vector>

#include "arena.h"
#include "executor.h"
#include "sampler.h"
#include "step_input.h"

namespace pk {

struct Try {                     // a match with earlier text, and what became of it
    int length;
    int drafted;                 // 0: nothing was tried behind it
    int accepted;
};

// How the tokens of one sequence are drawn and drafted, and what of them ends the run.
class Drawing {
public:
    // `given`: a Draw of kernels/native_program.py.
    explicit Drawing(nanobind::handle given);

    // Begins with what was drafted behind the last id.
    void begin(std::vector<int32_t> draft) { draft_ = std::move(draft); }
    // Draws by the rows of a step of which the first has `position`, [1 + drafted, count], up to the first that differs
    // from the draft; true where nothing may follow in this run. Scores of struck ids are written over.
    bool draw(float* scores, int count, int position);
    // Looks for the end of what there is in what stood before; true where there is a draft now.
    bool look_up();
    void shorten() { draft_.pop_back(); }

    const std::vector<int32_t>& draft() const { return draft_; }
    int last() const { return ids_.back(); }
    size_t drawn() const { return ids_.size() - given_; }
    size_t most() const { return most_; }
    int at(size_t index) const { return ids_[given_ + index]; }
    int fed() const { return fed_; }               // tokens that the last step drew
    const std::vector<Try>& tries() const { return tries_; }

private:
    Drawing(const Drawing&) = delete;
    bool ends(int id) const;

    Sampler& sampler_;
    std::vector<int32_t> ids_;   // of the whole conversation
    size_t given_, answer_;      // where what is drawn begins, and the answer
    size_t most_;                // tokens that may be drawn
    ArrayView ends_, struck_, lengths_;
    int shortest_, match_, fed_ = 0;
    std::vector<int32_t> draft_;
    std::vector<Try> tries_;
};

struct RunLimits {
    int rows;                    // of a step, unless the first has more
    double milliseconds;         // no step begins that would end later, going by the one before
};

struct RunTimes {
    std::vector<double> milliseconds;  // of each whole step
    std::vector<int> rows;       // of the same
    bool looked = false;         // there was nothing to draft behind the last one's tokens
};

// Scores and hidden vectors of a run's steps, which nobody else sees.
struct RunOutputs {
    Arena logits, hidden;
    void reserve(const ProgramData& program, int rows, BatchView& batch);
};

// From the batch's rows on, of each sequence one token and a draft. Stops where a drawing ends it, or the batch's flag is
// up: PARK lets the step in progress end, STOP does not.
RunTimes decode(Executor& executor, StepArrays& arrays, BatchView& batch, std::deque<Drawing>& drawings,
                const RunLimits& limits);

}  // namespace pk
