// gemm.cpp -- see gemm.h.
#include "cpu/gemm.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <stdexcept>

#include "cpu/threads.h"

namespace lamina {
namespace {

constexpr int kRowMajor = 101;
constexpr int kAsIs = 111;
constexpr double kLeastFlops = 2e6;  // of a block: some 20 us
constexpr int kBlockStep = 48;       // a multiple of the register tiles of OpenBLAS's kernels

// Real factors are passed by value, complex ones by address.
template <typename Factor>
using Gemm = void (*)(int order, int transpose_a, int transpose_b, int m, int n, int k,
                      Factor alpha, const void* a, int lda, const void* b, int ldb, Factor beta,
                      void* c, int ldc);

template <typename Element, typename Factor>
struct Product {
  static inline Gemm<Factor> gemm = nullptr;

  int transpose_a, transpose_b, m, n, k;
  Factor alpha;
  const Element* a;
  int lda;
  const Element* b;
  int ldb;
  Factor beta;
  Element* c;
  int ldc;
  int rows, columns;  // of the grid of blocks

  static int edge(int size, int blocks, int64_t i) {
    const int64_t step = (size + blocks - 1) / blocks;
    const int64_t rounded = (step + kBlockStep - 1) / kBlockStep * kBlockStep;
    return static_cast<int>(std::min<int64_t>(size, i * rounded));
  }

  void block(int64_t index) const {
    const int64_t row = index / columns, column = index % columns;
    const int64_t top = edge(m, rows, row), left = edge(n, columns, column);
    const int height = edge(m, rows, row + 1) - static_cast<int>(top);
    const int width = edge(n, columns, column + 1) - static_cast<int>(left);
    if (height == 0 || width == 0) return;
    gemm(kRowMajor, transpose_a, transpose_b, height, width, k, alpha,
         a + top * (transpose_a == kAsIs ? lda : 1), lda,
         b + left * (transpose_b == kAsIs ? 1 : ldb), ldb, beta, c + top * ldc + left, ldc);
  }

  // Each column of blocks packs A once more, each row of blocks B: as square a grid as may be.
  void choose_grid(int blocks) {
    rows = std::clamp(static_cast<int>(std::lround(std::sqrt(double(blocks) * m / n))), 1, blocks);
    columns = std::max(1, blocks / rows);
  }

  static void run(int order, int transpose_a, int transpose_b, int m, int n, int k, Factor alpha,
                  const void* a, int lda, const void* b, int ldb, Factor beta, void* c, int ldc) {
    const double flops = 2.0 * m * n * k * (sizeof(Factor) == sizeof(Element) ? 1 : 4);
    const int blocks = static_cast<int>(std::min<double>(thread_count(), flops / kLeastFlops));
    if (blocks < 2 || order != kRowMajor) {
      gemm(order, transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
      return;
    }
    Product product{transpose_a,
                    transpose_b,
                    m,
                    n,
                    k,
                    alpha,
                    static_cast<const Element*>(a),
                    lda,
                    static_cast<const Element*>(b),
                    ldb,
                    beta,
                    static_cast<Element*>(c),
                    ldc,
                    1,
                    1};
    product.choose_grid(blocks);
    const auto sizes = (static_cast<uintptr_t>(m) * 31 + n) * 31 + k;
    parallel_for(
        [](void* context, int64_t lo, int64_t hi) {
          for (int64_t i = lo; i < hi; ++i) static_cast<const Product*>(context)->block(i);
        },
        &product, int64_t{product.rows} * product.columns, 1, sizes);
  }

  static uintptr_t split(uintptr_t cblas_gemm) {
    gemm = reinterpret_cast<Gemm<Factor>>(cblas_gemm);
    return reinterpret_cast<uintptr_t>(&run);
  }
};

}  // namespace

uintptr_t split_gemm(const std::string& type, uintptr_t cblas_gemm) {
  if (type == "s") return Product<float, float>::split(cblas_gemm);
  if (type == "d") return Product<double, double>::split(cblas_gemm);
  if (type == "c") return Product<std::complex<float>, const void*>::split(cblas_gemm);
  if (type == "z") return Product<std::complex<double>, const void*>::split(cblas_gemm);
  throw std::invalid_argument("a gemm is of type s, d, c or z");
}

}  // namespace lamina
