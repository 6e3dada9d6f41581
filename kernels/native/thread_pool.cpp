#include "thread_pool.h"

#include <stdexcept>
#include <string>
#include <system_error>

#if defined(__linux__)
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif
#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

namespace pk {

void relax() {
#if defined(__x86_64__) || defined(__i386__)
    _mm_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

// On Linux a nice value belongs to a thread.
void lower_thread_priority() {
#if defined(__linux__)
    setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), 5);
#endif
}

ThreadPool::ThreadPool(int threads) {
    try {
        for (int t = 1; t < threads; t++) workers_.emplace_back([this, t] { work(t); });
    } catch (const std::system_error&) {  // the system has no more: those that run would end the process
        const size_t started = workers_.size() + 1;
        stop();
        throw std::runtime_error("the system gives " + std::to_string(started) + " of " +
                                 std::to_string(threads) + " threads");
    }
}

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::stop() {
    stopping_ = true;
    epoch_.fetch_add(1, std::memory_order_release);
    epoch_.notify_all();
    for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run(void (*job)(void*, int), void* context) {
    job_ = job;
    context_ = context;
    finished_.store(0, std::memory_order_relaxed);
    epoch_.fetch_add(1, std::memory_order_release);
    if (!workers_.empty()) epoch_.notify_all();
    job(context, 0);
    for (;;) {
        const uint32_t done = finished_.load(std::memory_order_acquire);
        if (done == workers_.size()) return;
        wait_while_equal(finished_, done);
    }
}

void ThreadPool::work(int thread) {
    lower_thread_priority();
    uint32_t seen = 0;
    for (;;) {
        wait_while_equal(epoch_, seen);
        seen++;
        if (stopping_) return;
        job_(context_, thread);
        finished_.fetch_add(1, std::memory_order_release);
        finished_.notify_all();
    }
}

}  // namespace pk
