// sort.cpp -- lamina_sort: the stable sort that compiled code calls with its own comparator.
//
// A bottom-up merge sort of the permutation: insertion sort in runs, then merges. Unlike std::sort
// it reads nothing out of bounds when a comparator contradicts itself. Large inputs are sorted in
// parallel pieces first; the merges of one round are parallel too.
#include <algorithm>
#include <cstdint>
#include <numeric>

#include "buffer.h"
#include "threads.h"

namespace lamina {
namespace {

constexpr int64_t kRun = 16;
constexpr int64_t kParallelPiece = 16384;  // a power of two times kRun

struct Sort {
  bool (*less)(void*, int64_t, int64_t);
  void* context;
  int64_t n;
  int64_t* from;
  int64_t* to;
  int64_t width;  // sorted runs of this length lie in `from`

  void insertion(int64_t lo, int64_t hi) const {
    for (int64_t i = lo + 1; i < hi; ++i) {
      const int64_t item = from[i];
      int64_t j = i;
      for (; j > lo && less(context, item, from[j - 1]); --j) from[j] = from[j - 1];
      from[j] = item;
    }
  }

  // Merges runs [lo, middle) and [middle, hi) of `from` into `to`.
  void merge(int64_t lo, int64_t middle, int64_t hi) const {
    int64_t left = lo, right = middle;
    for (int64_t out = lo; out < hi; ++out) {
      const bool take_right =
          right < hi && (left >= middle || less(context, from[right], from[left]));
      to[out] = take_right ? from[right++] : from[left++];
    }
  }

  void merge_pair(int64_t pair) const {
    const int64_t lo = pair * 2 * width;
    merge(lo, std::min(lo + width, n), std::min(lo + 2 * width, n));
  }
};

// Sorts [lo, hi) of `from`, leaving the result in `from`; `to` is scratch.
void sort_piece(const Sort& whole, int64_t lo, int64_t hi) {
  Sort piece = whole;
  piece.from += lo;
  piece.to += lo;
  piece.n = hi - lo;
  for (int64_t i = 0; i < piece.n; i += kRun) piece.insertion(i, std::min(i + kRun, piece.n));
  int64_t* const home = piece.from;
  for (piece.width = kRun; piece.width < piece.n; piece.width *= 2) {
    for (int64_t pair = 0; pair * 2 * piece.width < piece.n; ++pair) piece.merge_pair(pair);
    std::swap(piece.from, piece.to);
  }
  if (piece.from != home) std::copy(piece.from, piece.from + piece.n, home);
}

void sort_permutation(Sort sort) {
  int64_t* const home = sort.from;
  const int64_t pieces = (sort.n + kParallelPiece - 1) / kParallelPiece;
  lamina_parallel_for(
      [](void* context, int64_t lo, int64_t hi) {
        const Sort& whole = *static_cast<const Sort*>(context);
        for (int64_t i = lo; i < hi; ++i) {
          sort_piece(whole, i * kParallelPiece, std::min((i + 1) * kParallelPiece, whole.n));
        }
      },
      &sort, pieces, 1);
  for (sort.width = kParallelPiece; sort.width < sort.n; sort.width *= 2) {
    lamina_parallel_for(
        [](void* context, int64_t lo, int64_t hi) {
          for (int64_t i = lo; i < hi; ++i) static_cast<const Sort*>(context)->merge_pair(i);
        },
        &sort, (sort.n + 2 * sort.width - 1) / (2 * sort.width), 1);
    std::swap(sort.from, sort.to);
  }
  if (sort.from != home) std::copy(sort.from, sort.from + sort.n, home);
}

}  // namespace
}  // namespace lamina

extern "C" void lamina_sort(int64_t n, int64_t* permutation,
                            bool (*less)(void* ctx, int64_t i, int64_t j), void* ctx) {
  std::iota(permutation, permutation + n, int64_t{0});
  if (n < 2) return;
  try {
    const auto scratch = lamina::Ref<lamina::Buffer>::steal(
        lamina::Buffer::allocate(static_cast<size_t>(n) * sizeof(int64_t)));
    lamina::sort_permutation(
        {less, ctx, n, permutation, static_cast<int64_t*>(scratch->data()), n});
  } catch (const lamina::OutOfMemory&) {
    lamina_fail("out of memory: the scratch space of a sort could not be allocated");
  }
}
