// lapack_eigenvalues.cpp -- eigenvalues, singular values, Schur forms.
//
// What is not finite gives NaN without asking LAPACK; what does not converge gives NaN, too.
#include "cpu/lapack.h"

namespace lamina {
namespace {

// Hermitian a[n, n] -> eigenvectors in columns [n, n], eigenvalues [n]. sizes: n, lower.
template <typename T>
struct Syevd {
  static void matrices(const LapackJob& job, int64_t lo, int64_t hi) {
    const int n = job.size(0);
    const int64_t area = int64_t{n} * n;
    const char* const uplo = job.flag(1) ? "L" : "U";
    const bool vectors = job.out[0] != nullptr;
    Scratch scratch;
    T* const a = scratch.get<T>(area);
    auto* const own_w = scratch.get<Real<T>>(n);
    Work work{};
    int info = solve(job, vectors, uplo, n, a, own_w, work);  // how much room does it need?
    work.allocate(scratch);
    for (int64_t i = lo; i < hi; ++i) {
      T* const v = job.result<T>(0, i, area);
      auto* w = job.result<Real<T>>(1, i, n);
      if (w == nullptr) w = own_w;
      const T* const given = job.input<T>(0, i, area);
      // The other triangle is not looked at, and may hold anything.
      for (int64_t row = 0; row < n; ++row) {
        const int64_t begin = job.flag(1) ? 0 : row, end = job.flag(1) ? row + 1 : n;
        for (int64_t column = 0; column < n; ++column) {
          const bool read = begin <= column && column < end;
          a[column * n + row] = read ? given[row * n + column] : T(0);
        }
      }
      info = all_finite(a, area) ? solve(job, vectors, uplo, n, a, w, work) : -1;
      if (info != 0) {
        fill_nan(w, n);
        fill_nan(v, area);
      } else if (vectors) {
        transpose(a, n, n, v);
      }
    }
  }

  struct Work {
    T first{};
    Real<T> real_first{};
    int int_first = 0;
    T* work = nullptr;
    Real<T>* real_work = nullptr;
    int* int_work = nullptr;
    int length = -1, real_length = -1, int_length = -1;

    void allocate(Scratch& scratch) {
      length = work_size(first);
      real_length = is_complex<T> ? work_size(real_first) : 1;
      int_length = std::max(1, int_first);
      work = scratch.get<T>(length);
      real_work = scratch.get<Real<T>>(real_length);
      int_work = scratch.get<int>(int_length);
    }
  };

  static int solve(const LapackJob& job, bool vectors, const char* uplo, const int& n, T* a,
                   Real<T>* w, Work& room) {
    const char* const wanted = vectors ? "V" : "N";
    T* const work = room.work ? room.work : &room.first;
    int* const int_work = room.int_work ? room.int_work : &room.int_first;
    int info = 0;
    if constexpr (is_complex<T>) {
      Real<T>* const real_work = room.real_work ? room.real_work : &room.real_first;
      job.routine(0, wanted, uplo, &n, a, &n, w, work, &room.length, real_work, &room.real_length,
                  int_work, &room.int_length, &info, size_t{1}, size_t{1});
    } else {
      job.routine(0, wanted, uplo, &n, a, &n, w, work, &room.length, int_work, &room.int_length,
                  &info, size_t{1}, size_t{1});
    }
    return info;
  }
};

// a[m, n] -> singular values [k], U [m, m or k], V^H [n or k, n]. sizes: m, n, full, vectors.
template <typename T, bool kDivideAndConquer>
struct SingularValues {
  static void matrices(const LapackJob& job, int64_t lo, int64_t hi) {
    const int m = job.size(0), n = job.size(1), k = std::min(m, n);
    const bool full = job.flag(2);
    // Without vectors there is one result.
    const bool vectors = job.flag(3) && (job.out[1] != nullptr || job.out[2] != nullptr);
    const int columns = full ? m : k, rows = full ? n : k;
    const int64_t area = int64_t{m} * n;
    Scratch scratch;
    Room room{};
    room.a = scratch.get<T>(area);
    auto* const own_s = scratch.get<Real<T>>(k);
    T* const own_u = scratch.get<T>(vectors ? int64_t{m} * columns : 1);
    T* const own_v = scratch.get<T>(vectors ? int64_t{rows} * n : 1);
    const int64_t least = k, most = std::max(m, n);
    room.int_work = scratch.get<int>(8 * least);
    room.real_work =
        scratch.get<Real<T>>(is_complex<T> ? std::max(5 * least * least + 7 * least,
                                                      2 * most * least + 2 * least * least + least)
                                           : 1);
    room.jobs = !vectors ? "N" : full ? "A" : "S";
    T answer{};
    room.work = &answer;
    room.length = -1;
    int info = solve(job, room, own_s, own_u, own_v);
    room.length = work_size(answer);
    room.work = scratch.get<T>(room.length);
    for (int64_t i = lo; i < hi; ++i) {
      auto* s = job.result<Real<T>>(0, i, k);
      T* const u = vectors ? job.result<T>(1, i, int64_t{m} * columns) : nullptr;
      T* const v = vectors ? job.result<T>(2, i, int64_t{rows} * n) : nullptr;
      if (s == nullptr) s = own_s;
      const T* const given = job.input<T>(0, i, area);
      transpose(given, m, n, room.a);
      info = all_finite(given, area) ? solve(job, room, s, own_u, own_v) : -1;
      if (info != 0) {
        fill_nan(s, k);
        fill_nan(u, int64_t{m} * columns);
        fill_nan(v, int64_t{rows} * n);
        continue;
      }
      if (u != nullptr) transpose(own_u, columns, m, u);
      if (v != nullptr) transpose(own_v, n, rows, v);
    }
  }

  struct Room {
    T* a;
    T* work;
    Real<T>* real_work;
    int* int_work;
    int length;
    const char* jobs;
  };

  static int solve(const LapackJob& job, const Room& r, Real<T>* s, T* left, T* right) {
    const int m = job.size(0), n = job.size(1), k = std::min(m, n);
    const int ldvt = std::max(1, job.flag(2) ? n : k);
    int info = 0;
    if constexpr (kDivideAndConquer && is_complex<T>) {
      job.routine(0, r.jobs, &m, &n, r.a, &m, s, left, &m, right, &ldvt, r.work, &r.length,
                  r.real_work, r.int_work, &info, size_t{1});
    } else if constexpr (kDivideAndConquer) {
      job.routine(0, r.jobs, &m, &n, r.a, &m, s, left, &m, right, &ldvt, r.work, &r.length,
                  r.int_work, &info, size_t{1});
    } else if constexpr (is_complex<T>) {
      job.routine(0, r.jobs, r.jobs, &m, &n, r.a, &m, s, left, &m, right, &ldvt, r.work, &r.length,
                  r.real_work, &info, size_t{1}, size_t{1});
    } else {
      job.routine(0, r.jobs, r.jobs, &m, &n, r.a, &m, s, left, &m, right, &ldvt, r.work, &r.length,
                  &info, size_t{1}, size_t{1});
    }
    return info;
  }
};
template <typename T>
using Gesdd = SingularValues<T, true>;
template <typename T>
using Gesvd = SingularValues<T, false>;

// a[n, n] -> eigenvalues [n], then left and right eigenvectors in columns as asked, all complex.
// sizes: n, left, right.
template <typename T>
struct Geev {
  using C = std::complex<Real<T>>;

  static void matrices(const LapackJob& job, int64_t lo, int64_t hi) {
    const int n = job.size(0);
    const int64_t area = int64_t{n} * n;
    const bool left = job.flag(1), right = job.flag(2);
    Scratch scratch;
    Room room{};
    room.a = scratch.get<T>(area);
    room.w = scratch.get<T>(2 * int64_t{n});
    room.left = scratch.get<T>(left ? area : 1);
    room.right = scratch.get<T>(right ? area : 1);
    room.real_work = scratch.get<Real<T>>(2 * int64_t{n});
    T answer{};
    room.work = &answer;
    room.length = -1;
    int info = solve(job, room);
    room.length = work_size(answer);
    room.work = scratch.get<T>(room.length);
    for (int64_t i = lo; i < hi; ++i) {
      C* const w = job.result<C>(0, i, n);
      C* const vl = left ? job.result<C>(1, i, area) : nullptr;
      C* const vr = right ? job.result<C>(1 + left, i, area) : nullptr;
      const T* const given = job.input<T>(0, i, area);
      transpose(given, n, n, room.a);
      info = all_finite(given, area) ? solve(job, room) : -1;
      if (info != 0) {
        fill_nan(w, n);
        fill_nan(vl, area);
        fill_nan(vr, area);
        continue;
      }
      for (int j = 0; j < n && w != nullptr; ++j) w[j] = eigenvalue(room, n, j);
      if (vl != nullptr) unpack(room, n, room.left, vl);
      if (vr != nullptr) unpack(room, n, room.right, vr);
    }
  }

  struct Room {
    T *a, *w, *left, *right, *work;
    Real<T>* real_work;
    int length;
  };

  static C eigenvalue(const Room& room, int n, int j) {
    if constexpr (is_complex<T>) return room.w[j];
    return C(std::real(room.w[j]), std::real(room.w[n + j]));
  }

  // Real routines give the real and the imaginary part of a conjugate pair in two columns.
  static void unpack(const Room& room, int n, const T* columns, C* v) {
    for (int j = 0; j < n; ++j) {
      const T* const x = columns + int64_t{j} * n;
      const bool pair = !is_complex<T> && std::real(room.w[n + j]) != 0 && j + 1 < n;
      for (int64_t i = 0; i < n; ++i) {
        if (!pair) {
          v[i * n + j] = C(x[i]);
        } else {
          v[i * n + j] = C(std::real(x[i]), std::real(x[n + i]));
          v[i * n + j + 1] = std::conj(v[i * n + j]);
        }
      }
      j += pair;
    }
  }

  static int solve(const LapackJob& job, Room& r) {
    const int n = job.size(0);
    const char* const left = job.flag(1) ? "V" : "N";
    const char* const right = job.flag(2) ? "V" : "N";
    int info = 0;
    if constexpr (is_complex<T>) {
      job.routine(0, left, right, &n, r.a, &n, r.w, r.left, &n, r.right, &n, r.work, &r.length,
                  r.real_work, &info, size_t{1}, size_t{1});
    } else {
      job.routine(0, left, right, &n, r.a, &n, r.w, r.w + n, r.left, &n, r.right, &n, r.work,
                  &r.length, &info, size_t{1}, size_t{1});
    }
    return info;
  }
};

// a[n, n] -> its Schur form T [n, n], and Z [n, n] where asked. sizes: n, vectors.
template <typename T>
struct Gees {
  static void matrices(const LapackJob& job, int64_t lo, int64_t hi) {
    const int n = job.size(0);
    const int64_t area = int64_t{n} * n;
    Scratch scratch;
    Room room{};
    room.a = scratch.get<T>(area);
    room.z = scratch.get<T>(area);
    room.w = scratch.get<T>(2 * int64_t{n});
    room.real_work = scratch.get<Real<T>>(n);
    T answer{};
    room.work = &answer;
    room.length = -1;
    int info = solve(job, room);
    room.length = work_size(answer);
    room.work = scratch.get<T>(room.length);
    for (int64_t i = lo; i < hi; ++i) {
      T* const t = job.result<T>(0, i, area);
      T* const z = job.flag(1) ? job.result<T>(1, i, area) : nullptr;
      const T* const given = job.input<T>(0, i, area);
      transpose(given, n, n, room.a);
      info = all_finite(given, area) ? solve(job, room) : -1;
      if (info != 0) {
        fill_nan(t, area);
        fill_nan(z, area);
        continue;
      }
      if (t != nullptr) transpose(room.a, n, n, t);
      if (z != nullptr) transpose(room.z, n, n, z);
    }
  }

  struct Room {
    T *a, *z, *w, *work;
    Real<T>* real_work;
    int length;
  };

  static int solve(const LapackJob& job, Room& r) {
    const int n = job.size(0);
    const char* const vectors = job.flag(1) ? "V" : "N";
    void* const nothing = nullptr;  // neither a function that selects, nor its answers
    int selected = 0, info = 0;
    if constexpr (is_complex<T>) {
      job.routine(0, vectors, "N", nothing, &n, r.a, &n, &selected, r.w, r.z, &n, r.work, &r.length,
                  r.real_work, nothing, &info, size_t{1}, size_t{1});
    } else {
      job.routine(0, vectors, "N", nothing, &n, r.a, &n, &selected, r.w, r.w + n, r.z, &n, r.work,
                  &r.length, nothing, &info, size_t{1}, size_t{1});
    }
    return info;
  }
};

}  // namespace

void add_eigenvalue_problems(LapackSymbols& symbols) {
  add_lapack<Syevd>(symbols, "syevd");
  add_lapack<Gesdd>(symbols, "gesdd");
  add_lapack<Gesvd>(symbols, "gesvd");
  add_lapack<Geev>(symbols, "geev");
  add_lapack<Gees>(symbols, "gees");
}

}  // namespace lamina
