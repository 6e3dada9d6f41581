// Memory mapped from files that another program may cut short, or whose disk may fail, while we read them.
//
// Reading such a page raises SIGBUS. The handler puts a page of zeros in its place, so that whoever reads goes on, and
// notes what was lost: the reader of the memory asks afterwards and drops what it computed. A signal handler belongs to
// the process, and so does the table of guarded memory: it is plain atomics, because the handler may not take locks.
//
// And memory that is made ready before it is needed.
#include <nanobind/nanobind.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <mutex>
#include <system_error>
#include <thread>

#if defined(__linux__)
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace nb = nanobind;

namespace {

struct Range {
    std::atomic<bool> taken{false};
    std::atomic<uintptr_t> start{0}, stop{0};
    std::atomic<uintptr_t> lost_start{UINTPTR_MAX}, lost_stop{0};  // covers all that was lost
};

constexpr int kRanges = 1024;
Range ranges[kRanges];
std::atomic<uint64_t> lost_count{0};

#if defined(__linux__)
struct sigaction before;

void widen(Range& range, uintptr_t start, uintptr_t stop) {
    uintptr_t first = range.lost_start.load(), last = range.lost_stop.load();
    while (start < first && !range.lost_start.compare_exchange_weak(first, start)) {}
    while (stop > last && !range.lost_stop.compare_exchange_weak(last, stop)) {}
}

bool replace_page(uintptr_t address) {
    const uintptr_t size = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE)), start = address - address % size;
    for (Range& range : ranges) {
        if (address < range.start.load() || address >= range.stop.load()) continue;
        widen(range, start, start + size);
        lost_count.fetch_add(1);
        const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
        return mmap(reinterpret_cast<void*>(start), size, PROT_READ, flags, -1, 0) != MAP_FAILED;
    }
    return false;
}

void on_bus_error(int, siginfo_t* info, void*) {
    const int kept = errno;
    // Not ours: the instruction is tried again, and meets whoever was there before us.
    if (!replace_page(reinterpret_cast<uintptr_t>(info->si_addr))) sigaction(SIGBUS, &before, nullptr);
    errno = kept;
}

void install() {
    static std::mutex once_at_a_time;
    std::lock_guard<std::mutex> hold(once_at_a_time);
    struct sigaction now;
    if (sigaction(SIGBUS, nullptr, &now) == 0 && (now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_bus_error) return;
    before = now;
    struct sigaction ours {};
    ours.sa_sigaction = on_bus_error;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGBUS, &ours, nullptr);
}
#endif

// A number to give to `unguard`, or -1: it cannot be guarded.
int guard(uint64_t address, uint64_t length) {
#if defined(__linux__)
    install();
    for (int i = 0; i < kRanges; i++) {
        Range& range = ranges[i];
        bool free = false;
        if (!range.taken.compare_exchange_strong(free, true)) continue;
        range.lost_start = UINTPTR_MAX;
        range.lost_stop = 0;
        range.start = static_cast<uintptr_t>(address);
        range.stop = static_cast<uintptr_t>(address + length);
        return i;
    }
#endif
    (void)address, (void)length;
    return -1;
}

void unguard(int number) {
    Range& range = ranges[number];
    range.stop = 0;
    range.start = 0;
    range.taken = false;
}

bool lost(uint64_t address, uint64_t length) {
    const uintptr_t start = static_cast<uintptr_t>(address), stop = static_cast<uintptr_t>(address + length);
    for (const Range& range : ranges)
        if (range.stop.load() && start < range.lost_stop.load() && stop > range.lost_start.load()) return true;
    return false;
}

}  // namespace

// Writes a zero into every page. The thread is one of its own because who lowered its priority may not raise it again, and
// must not hold the interpreter then; it touches because MADV_POPULATE_WRITE makes whoever maps something wait. Not in the
// idle class: a fault holds its mapping, and on a busy machine who maps memory beside it waited 600 ms for it.
// Called through ctypes: a daemon thread may be in here when the interpreter ends, which frames of C++ would not survive.
extern "C" __attribute__((visibility("default"))) void pk_touch_in_background(uint64_t address, uint64_t length) {
    constexpr uint64_t kPage = 4096;
    const auto touch = [=] {
#if defined(__linux__)
        setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), 10);
#endif
        for (uint64_t at = 0; at < length; at += kPage)
            *reinterpret_cast<volatile uint8_t*>(static_cast<uintptr_t>(address + at)) = 0;
    };
    try {
        std::thread(touch).join();
    } catch (const std::system_error&) {  // no thread to be had: the memory is touched when it is used
    }
}

void bind_guarded(nb::module_& m) {
    m.def("guard", &guard);
    m.def("unguard", &unguard);
    m.def("lost", &lost);
    m.def("lost_count", [] { return lost_count.load(); });
}
