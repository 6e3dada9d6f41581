// Worker threads that run one function together. Waiting threads spin for some microseconds, then sleep.
#pragma once
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace pk {

void relax();                // inside a loop that waits
// Spins briefly, then parks until `value` differs from `old`; meanwhile `idle` is called again and again.
template <class Idle>
void wait_while_equal(const std::atomic<uint32_t>& value, uint32_t old, Idle&& idle) {
    for (int i = 0; i < 2000; i++) {
        if (value.load(std::memory_order_acquire) != old) return;
        idle();
        relax();
    }
    while (value.load(std::memory_order_acquire) == old) value.wait(old, std::memory_order_acquire);
}
inline void wait_while_equal(const std::atomic<uint32_t>& value, uint32_t old) {
    wait_while_equal(value, old, [] {});
}
void lower_thread_priority();

class ThreadPool {
public:
    explicit ThreadPool(int threads);  // std::runtime_error: more than the system has
    ~ThreadPool();
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;
    int threads() const { return static_cast<int>(workers_.size()) + 1; }
    // Calls job(context, thread) on every thread, the caller being thread 0; returns when all are done.
    void run(void (*job)(void*, int), void* context);

private:
    void work(int thread);
    void stop();
    std::vector<std::thread> workers_;
    alignas(64) std::atomic<uint32_t> epoch_{0};
    alignas(64) std::atomic<uint32_t> finished_{0};
    void (*job_)(void*, int) = nullptr;
    void* context_ = nullptr;
    bool stopping_ = false;
};

// Lets the last thread that arrives do something before all go on, and the others something while they wait.
class Barrier {
public:
    explicit Barrier(int threads) : threads_(threads) {}
    template <class Last, class Idle>
    void arrive(Last&& last, Idle&& idle) {
        const uint32_t generation = generation_.load(std::memory_order_acquire);
        if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
            last();
            arrived_.store(0, std::memory_order_relaxed);
            generation_.store(generation + 1, std::memory_order_release);
            generation_.notify_all();
        } else {
            wait_while_equal(generation_, generation, idle);
        }
    }

private:
    const int threads_;
    alignas(64) std::atomic<int> arrived_{0};
    alignas(64) std::atomic<uint32_t> generation_{0};
};

}  // namespace pk
