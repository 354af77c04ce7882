// lapack_solvers.cpp -- triangular and tridiagonal systems; a Cholesky factor brought up to date.
#include "cpu/lapack.h"
#include "cpu/threads.h"

namespace lamina {
namespace {

// op(a) x = b or x op(a) = b with triangular a[k, k], b[m, n].
// sizes: m, n, left, lower, op (0 as it is, 1 transposed, 2 adjoint), unit diagonal.
template <typename T>
struct Trsm {
  // A wide right-hand side of one matrix is divided among the threads.
  static constexpr int64_t kLeastPart = 32;

  static void matrices(const LapackJob& job, int64_t lo, int64_t hi) {
    const int m = job.size(0), n = job.size(1), k = job.flag(2) ? m : n;
    for (int64_t i = lo; i < hi; ++i) {
      const T* const b = job.input<T>(1, i, int64_t{m} * n);
      T* const x = job.result<T>(0, i, int64_t{m} * n);
      if (b != x) std::copy(b, b + int64_t{m} * n, x);
      One one{&job, job.input<T>(0, i, int64_t{k} * k), x};
      const int64_t parts = job.flag(2) ? n : m;
      const int64_t flops = int64_t{k} * k;
      lamina_parallel_for([](void* context, int64_t begin,
                             int64_t end) { static_cast<const One*>(context)->part(begin, end); },
                          &one, parts,
                          std::max<int64_t>(kLeastPart, 2'000'000 / std::max<int64_t>(1, flops)));
    }
  }

  // Columns [begin, end) of x when a stands on the left, rows when on the right.
  struct One {
    const LapackJob* job;
    const T* a;
    T* x;

    void part(int64_t begin, int64_t end) const {
      constexpr int kRowMajor = 101, kLeft = 141, kRight = 142, kUpper = 121, kLower = 122;
      constexpr int kAsIs = 111, kUnit = 132, kNotUnit = 131;
      const int m = job->size(0), n = job->size(1);
      const bool left = job->flag(2);
      const int rows = left ? m : static_cast<int>(end - begin);
      const int columns = left ? static_cast<int>(end - begin) : n;
      T* const at = x + (left ? begin : begin * n);
      const int side = left ? kLeft : kRight, uplo = job->flag(3) ? kLower : kUpper;
      const int how = kAsIs + job->size(4), diagonal = job->flag(5) ? kUnit : kNotUnit;
      const int lda = left ? m : n;
      if constexpr (is_complex<T>) {
        const T one(1);
        job->routine(0, kRowMajor, side, uplo, how, diagonal, rows, columns, &one, a, lda, at, n);
      } else {
        job->routine(0, kRowMajor, side, uplo, how, diagonal, rows, columns, T(1), a, lda, at, n);
      }
    }
  };
};

// Diagonals below, on and above the main one, each [n], and b[n, k] -> x[n, k]; the first and the
// last element of the outer ones is not read. sizes: n, k.
template <typename T>
struct Gtsv {
  static void matrices(const LapackJob& job, int64_t lo, int64_t hi) {
    const int n = job.size(0), k = job.size(1);
    Scratch scratch;
    T* const dl = scratch.get<T>(n);
    T* const d = scratch.get<T>(n);
    T* const du = scratch.get<T>(n);
    T* const b = scratch.get<T>(int64_t{n} * k);
    for (int64_t i = lo; i < hi; ++i) {
      const T* const lower = job.input<T>(0, i, n);
      const T* const diagonal = job.input<T>(1, i, n);
      const T* const upper = job.input<T>(2, i, n);
      std::copy(lower + 1, lower + n, dl);
      std::copy(diagonal, diagonal + n, d);
      std::copy(upper, upper + n - 1, du);
      transpose(job.input<T>(3, i, int64_t{n} * k), n, k, b);
      int info = 0;
      job.routine(0, &n, &k, dl, d, du, b, &n, &info);
      T* const x = job.result<T>(0, i, int64_t{n} * k);
      transpose(b, k, n, x);
      if (info != 0) fill_nan(x, int64_t{n} * k);
    }
  }
};

// Upper R[n, n], w[n] -> the upper factor of R^T R + w w^T, by Givens rotations. sizes: n.
template <typename T>
struct CholeskyUpdate {
  static void matrices(const LapackJob& job, int64_t lo, int64_t hi) {
    const int64_t n = job.size(0);
    Scratch scratch;
    T* const w = scratch.get<T>(n);
    for (int64_t i = lo; i < hi; ++i) {
      T* const r = job.result<T>(0, i, n * n);
      const T* const given = job.input<T>(0, i, n * n);
      const T* const added = job.input<T>(1, i, n);
      std::copy(given, given + n * n, r);
      std::copy(added, added + n, w);
      for (int64_t k = 0; k < n; ++k) {
        const T a = r[k * n + k], b = w[k];
        const Real<T> length = std::hypot(std::abs(a), std::abs(b));
        const T c = length == 0 ? T(1) : a / length, s = length == 0 ? T(0) : b / length;
        for (int64_t j = k; j < n; ++j) {
          const T above = r[k * n + j], below = w[j];
          r[k * n + j] = c * above + s * below;
          w[j] = c * below - s * above;
        }
      }
    }
  }
};

}  // namespace

void add_solvers(LapackSymbols& symbols) {
  add_lapack<Trsm>(symbols, "trsm");
  add_lapack<Gtsv>(symbols, "gtsv");
  add_lapack<CholeskyUpdate>(symbols, "cholesky_update");
}

}  // namespace lamina
