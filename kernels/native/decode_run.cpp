#include "decode_run.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <stdexcept>

#include "lookup.h"

namespace nb = nanobind;

namespace pk {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds(Clock::duration time) { return std::chrono::duration<double, std::milli>(time).count(); }

bool draw_all(BatchView& batch, int vocabulary, std::deque<Drawing>& drawings) {
    bool ends = false;
    for (int s = 0; s < batch.sequences; s++)
        ends |= drawings[s].draw(batch.logits + static_cast<size_t>(s) * vocabulary, vocabulary, batch.seq_start[s] + 1);
    return ends;
}

bool look_up_all(std::deque<Drawing>& drawings) {
    bool found = false;
    for (Drawing& drawing : drawings) found |= drawing.look_up();
    return found;
}

}  // namespace

Drawing::Drawing(nb::handle given)
    : sampler_(nb::cast<Sampler&>(given[0])), ends_(given[3], "ends", ArrayView::kInt, {-1}),
      struck_(given[4], "struck", ArrayView::kInt, {-1}), shortest_(nb::cast<int>(given[5])),
      longest_(nb::cast<int>(given[6])), least_(nb::cast<int>(given[7])) {
    const ArrayView ids(given[1], "ids", ArrayView::kInt, {-1});
    ids_.assign(ids.data<int32_t>(), ids.data<int32_t>() + ids.length(0));
    given_ = ids_.size();
    answer_ = nb::cast<size_t>(given[2]);
    if (answer_ > given_) throw std::invalid_argument("an answer begins behind its last token");
}

bool Drawing::draw(float* scores, int count, int position) {
    for (int i = 0; i < struck_.length(0); i++) {
        const int id = struck_.data<int32_t>()[i];
        if (id >= 0 && id < count) scores[id] = -std::numeric_limits<float>::infinity();
    }
    const int id = sampler_.pick(scores, count, ids_.data() + answer_, ids_.size() - answer_, position);
    ids_.push_back(id);
    return std::binary_search(ends_.data<int32_t>(), ends_.data<int32_t>() + ends_.length(0), id);
}

bool Drawing::look_up() {
    if (least_ < 0) return false;
    const int length = latest_match(ids_.data(), static_cast<int>(ids_.size()), shortest_, longest_).length;
    if (length >= least_) return true;
    if (length) passed_.push_back(length);
    return false;
}

RunTimes decode(Executor& executor, StepArrays& arrays, BatchView& batch, std::deque<Drawing>& drawings,
                const RunLimits& limits) {
    RunTimes times;
    const Clock::time_point began = Clock::now();
    for (;;) {
        const Clock::time_point start = Clock::now();
        if (executor.step(batch) != Outcome::Completed) return times;
        const Clock::time_point end = Clock::now();
        times.milliseconds.push_back(milliseconds(end - start));
        times.looked = false;
        if (draw_all(batch, executor.program().vocabulary, drawings)) return times;
        if (static_cast<int>(times.milliseconds.size()) >= limits.steps || look_up_all(drawings)) return times;
        times.looked = true;
        if (*batch.cancel || milliseconds(end - began) + times.milliseconds.back() > limits.milliseconds) return times;
        for (size_t s = 0; s < drawings.size(); s++) arrays.follow(s, drawings[s].last());
        check_batch(batch, executor.program());
    }
}

}  // namespace pk
