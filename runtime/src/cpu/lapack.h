// lapack.h -- what the kernels share that call LAPACK: one call for each matrix of a batch.
//
// Arrays are dense and row-major, LAPACK reads columns: a matrix is transposed into scratch memory
// and back; so signs and phases that are free come out as from LAPACK everywhere.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/buffer.h"

namespace lamina {

// What compiled code passes: a constant of the kernel. `sizes` means what the kernel's row in
// passes/kernels/cpu/factorisations/lapack.py says; `routines` are addresses in the library.
struct LapackCall {
  int64_t batch;
  int64_t grain;  // matrices that are work enough for a task
  int64_t sizes[6];
  void* routines[3];
};

// A call with its arrays. Results that nobody reads are null.
struct LapackJob {
  const LapackCall* call;
  void* const* in;
  void* const* out;

  int size(int i) const { return static_cast<int>(call->sizes[i]); }
  bool flag(int i) const { return call->sizes[i] != 0; }
  template <typename T>
  const T* input(int i, int64_t matrix, int64_t elements) const {
    return static_cast<const T*>(in[i]) + matrix * elements;
  }
  template <typename T>
  T* result(int i, int64_t matrix, int64_t elements) const {
    return out[i] == nullptr ? nullptr : static_cast<T*>(out[i]) + matrix * elements;
  }
  // Fortran passes everything by address, and the lengths of strings last.
  template <typename... Arguments>
  void routine(int i, Arguments... arguments) const {
    reinterpret_cast<void (*)(Arguments...)>(call->routines[i])(arguments...);
  }
};

using LapackKernel = void (*)(const LapackCall*, void* const* in, void* const* out);
using LapackSymbols = std::vector<std::pair<std::string, LapackKernel>>;

// Does `matrices(job, lo, hi)` over the batch, in parallel where it is work enough.
void for_each_matrix(const LapackJob& job, void (*matrices)(const LapackJob&, int64_t, int64_t));

template <typename Kernel>
void lapack_kernel(const LapackCall* call, void* const* in, void* const* out) {
  for_each_matrix({call, in, out}, &Kernel::matrices);
}

// lamina_lapack_<name>_<letter> for the four element types of a family.
template <template <typename> typename Kernel>
void add_lapack(LapackSymbols& symbols, const char* name) {
  const std::string prefix = std::string("lamina_lapack_") + name + "_";
  symbols.emplace_back(prefix + "s", &lapack_kernel<Kernel<float>>);
  symbols.emplace_back(prefix + "d", &lapack_kernel<Kernel<double>>);
  symbols.emplace_back(prefix + "c", &lapack_kernel<Kernel<std::complex<float>>>);
  symbols.emplace_back(prefix + "z", &lapack_kernel<Kernel<std::complex<double>>>);
}

void add_factorisations(LapackSymbols& symbols);
void add_eigenvalue_problems(LapackSymbols& symbols);
void add_solvers(LapackSymbols& symbols);
LapackSymbols lapack_symbols();

// Scratch memory of a task, from the runtime's pool.
class Scratch {
 public:
  template <typename T>
  T* get(int64_t elements) {
    const size_t bytes = std::max<size_t>(1, static_cast<size_t>(elements)) * sizeof(T);
    held_.push_back(Ref<Buffer>::steal(Buffer::allocate(bytes)));
    return static_cast<T*>(held_.back()->data());
  }

 private:
  std::vector<Ref<Buffer>> held_;
};

template <typename T>
struct RealOf {
  using type = T;
};
template <typename T>
struct RealOf<std::complex<T>> {
  using type = T;
};
template <typename T>
using Real = typename RealOf<T>::type;
template <typename T>
constexpr bool is_complex = !std::is_same_v<T, Real<T>>;

// The transpose of a row-major matrix.
template <typename T>
void transpose(const T* from, int64_t rows, int64_t columns, T* to) {
  constexpr int64_t kBlock = 16;
  for (int64_t i0 = 0; i0 < rows; i0 += kBlock) {
    const int64_t i1 = std::min(rows, i0 + kBlock);
    for (int64_t j0 = 0; j0 < columns; j0 += kBlock) {
      const int64_t j1 = std::min(columns, j0 + kBlock);
      for (int64_t i = i0; i < i1; ++i) {
        for (int64_t j = j0; j < j1; ++j) to[j * rows + i] = from[i * columns + j];
      }
    }
  }
}

template <typename T>
void fill_nan(T* to, int64_t elements) {
  constexpr Real<T> kNaN = std::numeric_limits<Real<T>>::quiet_NaN();
  if (to == nullptr) return;
  for (int64_t i = 0; i < elements; ++i) {
    if constexpr (is_complex<T>)
      to[i] = T(kNaN, kNaN);
    else
      to[i] = kNaN;
  }
}

// Iterations on what is not finite may not end.
template <typename T>
bool all_finite(const T* x, int64_t elements) {
  const auto* parts = reinterpret_cast<const Real<T>*>(x);
  Real<T> sum = 0;  // anything times zero is zero, unless it is not finite
  for (int64_t i = 0; i < elements * static_cast<int64_t>(sizeof(T) / sizeof(Real<T>)); ++i)
    sum += parts[i] * 0;
  return sum == 0;
}

// The length of a work array, from what a routine's query left in it.
template <typename T>
int work_size(const T& answer) {
  return std::max(1, static_cast<int>(std::ceil(std::real(answer) * (1 + 1e-6))));
}

}  // namespace lamina
