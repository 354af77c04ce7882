// gemm.h -- matrix products of a BLAS, divided among the threads of the runtime.
#pragma once

#include <cstdint>
#include <string>

namespace lamina {

// The address of a function with the signature of `cblas_gemm`, which is a cblas_?gemm of the type
// "s", "d", "c" or "z" that uses one thread. Throws std::invalid_argument for other types.
uintptr_t split_gemm(const std::string& type, uintptr_t cblas_gemm);

}  // namespace lamina
