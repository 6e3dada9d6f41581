#include "isa.h"

#include <stdexcept>
#if defined(PK_ARM) && defined(__linux__)
#include <sys/auxv.h>
#elif defined(PK_ARM) && defined(__APPLE__)
#include <sys/sysctl.h>
#endif

namespace pk {

#if defined(PK_ARM)
namespace {
bool has_dot_products() {
#if defined(__linux__)
    constexpr unsigned long kDotProducts = 1ul << 20, kHalves = 1ul << 10;  // HWCAP_ASIMDDP, HWCAP_ASIMDHP
    const unsigned long has = getauxval(AT_HWCAP);
    return (has & kDotProducts) && (has & kHalves);
#else
    return true;  // Apple's processors all have them
#endif
}

bool has_matrix_products() {
#if defined(__linux__)
    return has_dot_products() && (getauxval(AT_HWCAP2) & 1ul << 13);  // HWCAP2_I8MM
#elif defined(__APPLE__)
    int has = 0;
    size_t size = sizeof has;
    return sysctlbyname("hw.optional.arm.FEAT_I8MM", &has, &size, nullptr, 0) == 0 && has;
#else
    return false;
#endif
}
}  // namespace
#endif

std::vector<const KernelTable*> available_levels() {
    std::vector<const KernelTable*> levels;
#if defined(PK_X86)
    __builtin_cpu_init();
    const bool avx2 =
        __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
    const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                        __builtin_cpu_supports("avx512vnni");
    if (avx512 && __builtin_cpu_supports("avx512bf16")) levels.push_back(table_avx512bf16());
    if (avx512) levels.push_back(table_avx512());
    if (avx2 && __builtin_cpu_supports("avxvnni")) levels.push_back(table_avxvnni());
    if (avx2) levels.push_back(table_avx2());
#elif defined(PK_ARM)
    if (has_matrix_products()) levels.push_back(table_i8mm());
    if (has_dot_products()) levels.push_back(table_dotprod());
#endif
    levels.push_back(table_portable());
    return levels;
}

const KernelTable* find_level(const std::string& name) {
    std::string known;
    for (const KernelTable* level : available_levels()) {
        if (name == level->name) return level;
        known += std::string(known.empty() ? "" : ", ") + level->name;
    }
    throw std::invalid_argument("instruction set level '" + name + "' cannot run here; available: " + known);
}

}  // namespace pk
