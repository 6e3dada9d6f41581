// Units of a phase, a range of neighbours to each thread: what a walk asks for in advance lies in the thread's own
// range. Who is through takes half of what another has left, from its end.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

namespace pk {

struct UnitRange {
    int first, last;
    bool empty() const { return first >= last; }
};

class Shares {
public:
    explicit Shares(int threads) : ranges_(threads) {}

    // By one thread while the others wait.
    void deal(int units) {
        const int threads = static_cast<int>(ranges_.size());
        for (int t = 0; t < threads; t++) ranges_[t].units.store(pack(share(units, t)), std::memory_order_relaxed);
    }

    // What no thread has taken yet, and the same dealt again: by one thread while the others wait.
    bool any() const {
        return std::any_of(ranges_.begin(), ranges_.end(), [](const Range& range) { return !range.left().empty(); });
    }
    std::vector<UnitRange> left() const {
        std::vector<UnitRange> left;
        for (const Range& range : ranges_) left.push_back(range.left());
        return left;
    }
    void deal(const std::vector<UnitRange>& left) {
        for (size_t t = 0; t < ranges_.size(); t++) ranges_[t].units.store(pack(left[t]), std::memory_order_relaxed);
    }

    UnitRange share(int units, int thread) const {
        const int64_t threads = static_cast<int64_t>(ranges_.size()), all = units;
        return UnitRange{static_cast<int>(all * thread / threads), static_cast<int>(all * (thread + 1) / threads)};
    }

    // The next units of a thread, at most `grain`; empty: none are left.
    UnitRange take(int thread, int grain) {
        UnitRange got = take_own(thread, grain);
        if (!got.empty()) return got;
        const UnitRange stolen = steal(thread);
        if (stolen.empty()) return stolen;
        got = UnitRange{stolen.first, std::min(stolen.first + grain, stolen.last)};
        ranges_[thread].units.store(pack(UnitRange{got.last, stolen.last}), std::memory_order_relaxed);
        return got;
    }

private:
    struct alignas(64) Range {
        std::atomic<uint64_t> units{0};
        UnitRange left() const { return unpack(units.load(std::memory_order_relaxed)); }
    };

    static uint64_t pack(UnitRange range) {
        return static_cast<uint64_t>(static_cast<uint32_t>(range.first)) << 32 | static_cast<uint32_t>(range.last);
    }
    static UnitRange unpack(uint64_t units) {
        return UnitRange{static_cast<int>(units >> 32), static_cast<int>(units & 0xffffffffu)};
    }

    UnitRange take_own(int thread, int grain) {
        std::atomic<uint64_t>& units = ranges_[thread].units;
        uint64_t seen = units.load(std::memory_order_relaxed);
        for (;;) {
            const UnitRange left = unpack(seen);
            if (left.empty()) return left;
            const int next = std::min(left.first + grain, left.last);
            if (units.compare_exchange_weak(seen, pack(UnitRange{next, left.last}), std::memory_order_relaxed))
                return UnitRange{left.first, next};
        }
    }

    UnitRange steal(int thread) {
        const int threads = static_cast<int>(ranges_.size());
        for (int i = 1; i < threads; i++) {
            std::atomic<uint64_t>& units = ranges_[(thread + i) % threads].units;
            uint64_t seen = units.load(std::memory_order_relaxed);
            for (UnitRange left = unpack(seen); !left.empty(); left = unpack(seen)) {
                const int middle = left.first + (left.last - left.first) / 2;
                if (units.compare_exchange_weak(seen, pack(UnitRange{left.first, middle}), std::memory_order_relaxed))
                    return UnitRange{middle, left.last};
            }
        }
        return UnitRange{0, 0};
    }

    std::vector<Range> ranges_;
};

}  // namespace pk
