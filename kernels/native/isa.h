#pragma once
#include <string>
#include <vector>

#include "kernel_table.h"

namespace pk {
// Levels that this CPU can run, best first.
std::vector<const KernelTable*> available_levels();
// Throws std::invalid_argument when the level is unknown or cannot run here.
const KernelTable* find_level(const std::string& name);
}  // namespace pk
