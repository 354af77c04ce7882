// lapack_factorisations.cpp -- LU, QR and products of Householder reflectors, Cholesky.
#include "cpu/lapack.h"

namespace lamina {
namespace {

// The order of rows that a sequence of interchanges leaves.
void permutation_of(const int32_t* pivots, int64_t count, int64_t size, int32_t* permutation) {
  for (int64_t i = 0; i < size; ++i) permutation[i] = static_cast<int32_t>(i);
  for (int64_t i = 0; i < count; ++i) {
    if (pivots[i] >= 0 && pivots[i] < size) std::swap(permutation[i], permutation[pivots[i]]);
  }
}

// a[m, n] -> lu[m, n], pivots[k] counted from 0, permutation[m]. sizes: m, n.
template <typename T>
struct Getrf {
  static void matrices(const LapackJob& job, int64_t lo, int64_t hi) {
    const int m = job.size(0), n = job.size(1), k = std::min(m, n);
    Scratch scratch;
    T* const a = scratch.get<T>(int64_t{m} * n);
    int32_t* const own_pivots = scratch.get<int32_t>(k);
    for (int64_t i = lo; i < hi; ++i) {
      int info = 0;
      int32_t* pivots = job.result<int32_t>(1, i, k);
      if (pivots == nullptr) pivots = own_pivots;
      transpose(job.input<T>(0, i, int64_t{m} * n), m, n, a);
      job.routine(0, &m, &n, a, &m, pivots, &info);
      if (T* const lu = job.result<T>(0, i, int64_t{m} * n)) transpose(a, n, m, lu);
      for (int j = 0; j < k; ++j) --pivots[j];
      if (int32_t* const p = job.result<int32_t>(2, i, m)) permutation_of(pivots, k, m, p);
    }
  }
};

// pivots[k] -> permutation[m]. sizes: k, m.
struct Permutation {
  static void matrices(const LapackJob& job, int64_t lo, int64_t hi) {
    const int64_t k = job.size(0), m = job.size(1);
    for (int64_t i = lo; i < hi; ++i) {
      permutation_of(job.input<int32_t>(0, i, k), k, m, job.result<int32_t>(0, i, m));
    }
  }
};

// a[n, n] -> the factor in one triangle, zeros in the other; NaN where there is none.
// sizes: n, lower.
template <typename T>
struct Potrf {
  static void matrices(const LapackJob& job, int64_t lo, int64_t hi) {
    const int n = job.size(0);
    const bool lower = job.flag(1);
    // The lower factor of a row-major matrix is the upper one of the transposed matrix.
    const char* const uplo = lower ? "U" : "L";
    for (int64_t i = lo; i < hi; ++i) {
      const T* const a = job.input<T>(0, i, int64_t{n} * n);
      T* const l = job.result<T>(0, i, int64_t{n} * n);
      for (int64_t row = 0; row < n; ++row) {
        const int64_t begin = lower ? 0 : row, end = lower ? row + 1 : n;
        std::fill(l + row * n, l + row * n + begin, T(0));
        if (a != l) std::copy(a + row * n + begin, a + row * n + end, l + row * n + begin);
        std::fill(l + row * n + end, l + (row + 1) * n, T(0));
      }
      int info = 0;
      job.routine(0, uplo, &n, l, &n, &info, size_t{1});
      for (int64_t row = 0; info != 0 && row < n; ++row) {
        if (lower)
          fill_nan(l + row * n, row + 1);
        else
          fill_nan(l + row * n + row, n - row);
      }
    }
  }
};

// a[m, n] -> the reflectors below R [m, n], taus[k]. sizes: m, n.
template <typename T>
struct Geqrf {
  static void matrices(const LapackJob& job, int64_t lo, int64_t hi) {
    const int m = job.size(0), n = job.size(1), k = std::min(m, n);
    Scratch scratch;
    T* const a = scratch.get<T>(int64_t{m} * n);
    T* const own_taus = scratch.get<T>(k);
    T answer{};
    int query = -1, info = 0;
    job.routine(0, &m, &n, a, &m, own_taus, &answer, &query, &info);
    const int length = work_size(answer);
    T* const work = scratch.get<T>(length);
    for (int64_t i = lo; i < hi; ++i) {
      T* taus = job.result<T>(1, i, k);
      if (taus == nullptr) taus = own_taus;
      transpose(job.input<T>(0, i, int64_t{m} * n), m, n, a);
      job.routine(0, &m, &n, a, &m, taus, work, &length, &info);
      if (T* const out = job.result<T>(0, i, int64_t{m} * n)) transpose(a, n, m, out);
    }
  }
};

// a[m, n], columns to keep in front [n] -> reflectors and R, the order of columns counted from 1,
// taus[k]. sizes: m, n.
template <typename T>
struct Geqp3 {
  static void matrices(const LapackJob& job, int64_t lo, int64_t hi) {
    const int m = job.size(0), n = job.size(1), k = std::min(m, n);
    Scratch scratch;
    T* const a = scratch.get<T>(int64_t{m} * n);
    T* const own_taus = scratch.get<T>(k);
    int32_t* const order = scratch.get<int32_t>(n);
    auto* const real_work = scratch.get<Real<T>>(2 * int64_t{n});
    T answer{};
    int query = -1;
    factor(job, m, n, a, order, own_taus, &answer, &query, real_work);
    const int length = work_size(answer);
    T* const work = scratch.get<T>(length);
    for (int64_t i = lo; i < hi; ++i) {
      T* taus = job.result<T>(2, i, k);
      if (taus == nullptr) taus = own_taus;
      const int32_t* const wanted = job.input<int32_t>(1, i, n);
      std::copy(wanted, wanted + n, order);
      transpose(job.input<T>(0, i, int64_t{m} * n), m, n, a);
      factor(job, m, n, a, order, taus, work, &length, real_work);
      if (T* const out = job.result<T>(0, i, int64_t{m} * n)) transpose(a, n, m, out);
      if (int32_t* const p = job.result<int32_t>(1, i, n)) std::copy(order, order + n, p);
    }
  }

  static void factor(const LapackJob& job, const int& m, const int& n, T* a, int32_t* order,
                     T* taus, T* work, const int* length, Real<T>* real_work) {
    int info = 0;
    if constexpr (is_complex<T>) {
      job.routine(0, &m, &n, a, &m, order, taus, work, length, real_work, &info);
    } else {
      job.routine(0, &m, &n, a, &m, order, taus, work, length, &info);
    }
  }
};

// reflectors a[m, n], taus[k] -> the first n columns of their product [m, n]. sizes: m, n, k.
template <typename T>
struct Orgqr {
  static void matrices(const LapackJob& job, int64_t lo, int64_t hi) {
    const int m = job.size(0), n = job.size(1), k = job.size(2);
    Scratch scratch;
    T* const a = scratch.get<T>(int64_t{m} * n);
    T answer{};
    int query = -1, info = 0;
    job.routine(0, &m, &n, &k, a, &m, a, &answer, &query, &info);
    const int length = work_size(answer);
    T* const work = scratch.get<T>(length);
    for (int64_t i = lo; i < hi; ++i) {
      transpose(job.input<T>(0, i, int64_t{m} * n), m, n, a);
      job.routine(0, &m, &n, &k, a, &m, job.input<T>(1, i, k), work, &length, &info);
      transpose(a, n, m, job.result<T>(0, i, int64_t{m} * n));
    }
  }
};

// reflectors a[r, k], taus[k], c[m, n] -> Q c, or with flags its adjoint, or c Q.
// sizes: r, k, m, n, left, transpose.
template <typename T>
struct Ormqr {
  static void matrices(const LapackJob& job, int64_t lo, int64_t hi) {
    const int r = job.size(0), k = job.size(1), m = job.size(2), n = job.size(3);
    const char* const side = job.flag(4) ? "L" : "R";
    const char* const how = job.flag(5) ? (is_complex<T> ? "C" : "T") : "N";
    Scratch scratch;
    T* const a = scratch.get<T>(int64_t{r} * k);
    T* const c = scratch.get<T>(int64_t{m} * n);
    T answer{};
    int query = -1, info = 0;
    job.routine(0, side, how, &m, &n, &k, a, &r, a, c, &m, &answer, &query, &info, size_t{1},
                size_t{1});
    const int length = work_size(answer);
    T* const work = scratch.get<T>(length);
    for (int64_t i = lo; i < hi; ++i) {
      transpose(job.input<T>(0, i, int64_t{r} * k), r, k, a);
      transpose(job.input<T>(2, i, int64_t{m} * n), m, n, c);
      job.routine(0, side, how, &m, &n, &k, a, &r, job.input<T>(1, i, k), c, &m, work, &length,
                  &info, size_t{1}, size_t{1});
      transpose(c, n, m, job.result<T>(0, i, int64_t{m} * n));
    }
  }
};

// a[n, n] -> its Hessenberg form above the reflectors, taus[n - 1]. sizes: n.
template <typename T>
struct Gehrd {
  static void matrices(const LapackJob& job, int64_t lo, int64_t hi) {
    const int n = job.size(0), first = 1;
    Scratch scratch;
    T* const a = scratch.get<T>(int64_t{n} * n);
    T* const own_taus = scratch.get<T>(n);
    T answer{};
    int query = -1, info = 0;
    job.routine(0, &n, &first, &n, a, &n, own_taus, &answer, &query, &info);
    const int length = work_size(answer);
    T* const work = scratch.get<T>(length);
    for (int64_t i = lo; i < hi; ++i) {
      T* taus = job.result<T>(1, i, n - 1);
      if (taus == nullptr) taus = own_taus;
      transpose(job.input<T>(0, i, int64_t{n} * n), n, n, a);
      job.routine(0, &n, &first, &n, a, &n, taus, work, &length, &info);
      if (T* const out = job.result<T>(0, i, int64_t{n} * n)) transpose(a, n, n, out);
    }
  }
};

// Hermitian a[n, n] -> its reflectors, the diagonal [n] and the one beside it [n - 1] of the
// tridiagonal form, taus[n - 1]. sizes: n, lower.
template <typename T>
struct Sytrd {
  static void matrices(const LapackJob& job, int64_t lo, int64_t hi) {
    const int n = job.size(0);
    const char* const uplo = job.flag(1) ? "L" : "U";
    Scratch scratch;
    T* const a = scratch.get<T>(int64_t{n} * n);
    T* const own_taus = scratch.get<T>(n);
    auto* const own_d = scratch.get<Real<T>>(n);
    auto* const own_e = scratch.get<Real<T>>(n);
    T answer{};
    int query = -1, info = 0;
    job.routine(0, uplo, &n, a, &n, own_d, own_e, own_taus, &answer, &query, &info, size_t{1});
    const int length = work_size(answer);
    T* const work = scratch.get<T>(length);
    for (int64_t i = lo; i < hi; ++i) {
      auto* d = job.result<Real<T>>(1, i, n);
      auto* e = job.result<Real<T>>(2, i, n - 1);
      T* taus = job.result<T>(3, i, n - 1);
      if (d == nullptr) d = own_d;
      if (e == nullptr) e = own_e;
      if (taus == nullptr) taus = own_taus;
      transpose(job.input<T>(0, i, int64_t{n} * n), n, n, a);
      job.routine(0, uplo, &n, a, &n, d, e, taus, work, &length, &info, size_t{1});
      if (T* const out = job.result<T>(0, i, int64_t{n} * n)) transpose(a, n, n, out);
    }
  }
};

}  // namespace

void add_factorisations(LapackSymbols& symbols) {
  add_lapack<Getrf>(symbols, "getrf");
  add_lapack<Potrf>(symbols, "potrf");
  add_lapack<Geqrf>(symbols, "geqrf");
  add_lapack<Geqp3>(symbols, "geqp3");
  add_lapack<Orgqr>(symbols, "orgqr");
  add_lapack<Ormqr>(symbols, "ormqr");
  add_lapack<Gehrd>(symbols, "gehrd");
  add_lapack<Sytrd>(symbols, "sytrd");
  symbols.emplace_back("lamina_lapack_permutation_i", &lapack_kernel<Permutation>);
}

}  // namespace lamina
