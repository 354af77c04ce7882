// sort_together.h -- many short rows sorted side by side: one network of comparisons for all.
//
// Keys of a row are a column of a table whose rows are as long as a few vectors. Batcher's odd-even
// merge sort (Knuth, 5.2.2 M) compares the same places of every row, which takes no branch.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/platform.h"

namespace lamina {

constexpr int64_t kMostTogether = 512;  // elements of a row; longer ones are quicker by digits

// How many rows are sorted together.
template <class Key>
constexpr int64_t kTogether = std::min<int64_t>(32, 128 / sizeof(Key));

template <class Key>
[[gnu::always_inline]] inline void order_columns(Key* keys, int64_t n) {
  // Said to the compiler: it makes vectors of some of these loops only.
  using Vector [[gnu::vector_size(32), gnu::aligned(1), gnu::may_alias]] = Key;
  constexpr int64_t columns = kTogether<Key> * sizeof(Key) / sizeof(Vector);
  Vector* const table = reinterpret_cast<Vector*>(keys);
  for (int64_t p = 1, shift = 1; p < n; p *= 2, ++shift) {
    for (int64_t k = p; k >= 1; k /= 2) {
      for (int64_t j = k % p; j + k < n; j += 2 * k) {
        for (int64_t i = j; i < j + std::min(k, n - j - k); ++i) {
          if ((i >> shift) != ((i + k) >> shift)) continue;
          Vector* const low = table + i * columns;
          Vector* const high = low + k * columns;
          for (int64_t c = 0; c < columns; ++c) {
            const Vector a = low[c], b = high[c];
            low[c] = a < b ? a : b;
            high[c] = a < b ? b : a;
          }
        }
      }
    }
  }
}

#if defined(__x86_64__)
template <class Key>
[[gnu::target("avx512f")]] void order_columns_avx512(Key* keys, int64_t n) {
  order_columns(keys, n);
}

template <class Key>
[[gnu::target("avx2")]] void order_columns_avx2(Key* keys, int64_t n) {
  order_columns(keys, n);
}
#endif

// Sorts each column of n keys.
template <class Key>
void sort_columns(Key* keys, int64_t n) {
#if defined(__x86_64__)
  if (vector_bits() >= 512) return order_columns_avx512(keys, n);
  if (vector_bits() >= 256) return order_columns_avx2(keys, n);
#endif
  order_columns(keys, n);
}

}  // namespace lamina
