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
    for (int s = 0; s < batch.sequences; s++) {
        float* scores = batch.logits + static_cast<size_t>(batch.seq_rows[s]) * vocabulary;
        ends |= drawings[s].draw(scores, vocabulary, batch.seq_start[s]);
    }
    return ends;
}

// The longest drafts are cut until the step has so many rows.
void fit(std::deque<Drawing>& drawings, int rows) {
    size_t total = drawings.size();
    for (const Drawing& drawing : drawings) total += drawing.draft().size();
    const auto shorter = [](const Drawing& a, const Drawing& b) { return a.draft().size() < b.draft().size(); };
    for (; total > static_cast<size_t>(rows); total--) {
        Drawing& longest = *std::max_element(drawings.begin(), drawings.end(), shorter);
        if (longest.draft().empty()) return;
        longest.shorten();
    }
}

bool look_up_all(std::deque<Drawing>& drawings, int rows) {
    bool found = false;
    for (Drawing& drawing : drawings) found |= drawing.look_up();
    if (found) fit(drawings, rows);
    return found;
}

}  // namespace

Drawing::Drawing(nb::handle given)
    : sampler_(nb::cast<Sampler&>(given[0])), ends_(given[4], "ends", ArrayView::kInt, {-1}),
      struck_(given[5], "struck", ArrayView::kInt, {-1}), lengths_(given[7], "lengths", ArrayView::kInt, {-1}),
      shortest_(nb::cast<int>(given[6])), match_(nb::cast<int>(given[8])) {
    const ArrayView ids(given[1], "ids", ArrayView::kInt, {-1});
    ids_.assign(ids.data<int32_t>(), ids.data<int32_t>() + ids.length(0));
    given_ = ids_.size();
    answer_ = nb::cast<size_t>(given[2]);
    most_ = nb::cast<size_t>(given[3]);
    if (answer_ > given_) throw std::invalid_argument("an answer begins behind its last token");
}

bool Drawing::ends(int id) const {
    return std::binary_search(ends_.data<int32_t>(), ends_.data<int32_t>() + ends_.length(0), id);
}

bool Drawing::draw(float* scores, int count, int position) {
    size_t place = 0;
    for (fed_ = 0;; scores += count) {
        for (int i = 0; i < struck_.length(0); i++) {
            const int id = struck_.data<int32_t>()[i];
            if (id >= 0 && id < count) scores[id] = -std::numeric_limits<float>::infinity();
        }
        ids_.push_back(sampler_.pick(scores, count, ids_.data() + answer_, ids_.size() - answer_, position + ++fed_));
        if (ends(last()) || place == draft_.size() || last() != draft_[place]) break;
        place++;
    }
    if (!draft_.empty()) tries_.push_back(Try{match_, static_cast<int>(draft_.size()), static_cast<int>(place)});
    draft_.clear();
    return ends(last()) || drawn() >= most_;
}

bool Drawing::look_up() {
    const int longest = lengths_.length(0) - 1;
    if (longest < shortest_) return false;
    const Match match = latest_match(ids_.data(), static_cast<int>(ids_.size()), shortest_, longest);
    if (!match.length) return false;
    const size_t wanted = std::max(lengths_.data<int32_t>()[match.length], 0);
    if (!wanted) tries_.push_back(Try{match.length, 0, 0});
    const auto from = ids_.begin() + match.end;
    const size_t count = std::min({wanted, static_cast<size_t>(ids_.end() - from), most_ - drawn() - 1});
    draft_.assign(from, std::find_if(from, from + count, [this](int id) { return ends(id); }));
    match_ = match.length;
    return !draft_.empty();
}

void RunOutputs::reserve(const ProgramData& program, int rows, BatchView& batch) {
    batch.logits = reinterpret_cast<float*>(logits.reserve(static_cast<size_t>(rows) * program.vocabulary * sizeof(float)));
    batch.hidden = reinterpret_cast<float*>(hidden.reserve(static_cast<size_t>(rows) * program.channels * sizeof(float)));
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
        times.rows.push_back(batch.rows);
        times.looked = false;
        if (draw_all(batch, executor.program().vocabulary, drawings)) return times;
        times.looked = !look_up_all(drawings, limits.rows);
        if (*batch.cancel || milliseconds(end - began) + times.milliseconds.back() > limits.milliseconds) return times;
        for (size_t s = 0; s < drawings.size(); s++)
            arrays.follow(s, drawings[s].fed(), drawings[s].last(), drawings[s].draft());
        arrays.show(batch);
        check_batch(batch, executor.program());
    }
}

}  // namespace pk
