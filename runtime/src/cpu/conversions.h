// conversions.h -- what LLVM calls to convert f16 and bf16 where the processor has no instruction.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace lamina {

// Names, which compiler runtimes share, and addresses. Compiled code that calls them does not say
// so in its LLVM IR: they come in when instructions are selected.
std::vector<std::pair<std::string, void*>> conversion_symbols();

}  // namespace lamina
