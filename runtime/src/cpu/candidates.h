// candidates.h -- what a search for the greatest elements of a row does to many of them at a time:
// on any processor, and with the vectors of AVX-512.
//
// A candidate is one integer, the key above, the complement of the position below: the greatest
// comes first, of equal keys the one that stands first, and no two are equal.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <type_traits>

#include "core/platform.h"
#include "cpu/radix.h"

namespace lamina {

// An element as a number of 32 bits, or of 64, in which its sign bit is the highest.
template <class Bits>
using Word = std::conditional_t<sizeof(Bits) == 8, uint64_t, uint32_t>;
template <class Bits>
Word<Bits> word_of(Bits bits) {
  return Word<Bits>(bits) << ((sizeof(Word<Bits>) - sizeof(Bits)) * 8);
}

template <class Key>
using CandidateBits = std::conditional_t<sizeof(Key) == 8, unsigned __int128, uint64_t>;

template <class Key>
struct Candidate {
  CandidateBits<Key> bits;

  Candidate() = default;
  Candidate(CandidateBits<Key> all) : bits(all) {}
  Candidate(Key key, int64_t position)
      : bits(CandidateBits<Key>(key) << (sizeof(Key) * 8) | Key(~Key(position))) {}
  Key key() const { return Key(bits >> (sizeof(Key) * 8)); }
  int64_t position() const { return int64_t(Key(~Key(bits))); }
};
// The radix sort puts the least first.
template <class Key>
Key key_of(const Candidate<Key>& candidate) {
  return Key(~candidate.key());
}
template <class Key>
bool before(const Candidate<Key>& a, const Candidate<Key>& b) {
  return a.bits > b.bits;
}

constexpr int64_t kOverrun = 8;  // candidates behind the last that a vector's store may reach

struct AnyProcessor {
  // Elements [lo, hi) whose keys are `least` or more, as candidates; how many they are.
  template <class Bits>
  [[gnu::always_inline]] static int64_t append(const Bits* row, int64_t lo, int64_t hi,
                                               const Order<Word<Bits>>& order, Word<Bits> least,
                                               Candidate<Word<Bits>>* to) {
    constexpr int64_t kTogether = 32;
    int64_t count = 0, j = lo;
    for (; j + kTogether <= hi; j += kTogether) {
      Word<Bits> greatest = 0;
      for (int64_t k = 0; k < kTogether; ++k) {
        greatest = std::max(greatest, order.plain(word_of(row[j + k])));
      }
      if (greatest >= least) count += append_each(row, j, j + kTogether, order, least, to + count);
    }
    return count + append_each(row, j, hi, order, least, to + count);
  }

  template <class Key>
  static int64_t count_above(const Candidate<Key>* items, int64_t n, Candidate<Key> floor) {
    int64_t count = 0;
    for (int64_t i = 0; i < n; ++i) count += items[i].bits > floor.bits;
    return count;
  }

  // Those above the floor, in their order, at the front.
  template <class Key>
  static void keep_above(Candidate<Key>* items, int64_t n, Candidate<Key> floor) {
    int64_t count = 0;
    for (int64_t i = 0; i < n; ++i) {
      const Candidate<Key> item = items[i];
      items[count] = item;
      count += item.bits > floor.bits;
    }
  }

  // The greatest first; `sorted` has room for as many.
  template <class Key>
  static void sort_few(Candidate<Key>* items, int64_t n, Candidate<Key>* sorted) {
    static_cast<void>(sorted);
    std::sort(items, items + n, before<Key>);
  }

 private:
  template <class Bits>
  static int64_t append_each(const Bits* row, int64_t lo, int64_t hi,
                             const Order<Word<Bits>>& order, Word<Bits> least,
                             Candidate<Word<Bits>>* to) {
    int64_t count = 0;
    for (int64_t j = lo; j < hi; ++j) {
      const Word<Bits> key = order.plain(word_of(row[j]));
      to[count] = {key, j};
      count += key >= least;
    }
    return count;
  }
};

#if defined(__x86_64__)
// The same, compiled for processors with AVX2 whatever the rest is for.
struct Avx2 : AnyProcessor {
  template <class Bits>
  [[gnu::target("avx2")]] static int64_t append(const Bits* row, int64_t lo, int64_t hi,
                                                const Order<Word<Bits>>& order, Word<Bits> least,
                                                Candidate<Word<Bits>>* to) {
    return AnyProcessor::append(row, lo, hi, order, least, to);
  }
};

// Keys of 32 bits. Its functions are compiled for processors with AVX-512F whatever the rest is
// for.
struct Avx512 {
  template <class Bits>
  [[gnu::target("avx512f")]] static int64_t append(const Bits* row, int64_t lo, int64_t hi,
                                                   const Order<uint32_t>& order, uint32_t least,
                                                   Candidate<uint32_t>* to) {
    using Loaded [[gnu::vector_size(16 * sizeof(Bits)), gnu::aligned(1), gnu::may_alias]] = Bits;
    const __m512i bound = _mm512_set1_epi32(int(least));
    const __m512i steps = {0, 1, 2, 3, 4, 5, 6, 7};
    Candidate<uint32_t>* const start = to;
    int64_t j = lo;
    for (; j + 16 <= hi; j += 16) {
      const Loaded loaded = *reinterpret_cast<const Loaded*>(row + j);
      const Keys word = __builtin_convertvector(loaded, Keys) << (32 - 8 * sizeof(Bits));
      const Keys key = word ^ ((Keys(Signed(word) >> 31) & order.floats) | order.sign);
      const unsigned found = _mm512_cmpge_epu32_mask(__m512i(key), bound);
      if (!found) continue;
      const __m512i place = ~(steps + j) & 0xFFFFFFFF;
      to = put(to, upper(key, 0) | place, found & 0xFF);
      to = put(to, upper(key, 1) | (place - 8), found >> 8);
    }
    return to - start + AnyProcessor::append(row, j, hi, order, least, to);
  }

  [[gnu::target("avx512f")]] static int64_t count_above(const Candidate<uint32_t>* items, int64_t n,
                                                        Candidate<uint32_t> floor) {
    const __m512i bound = _mm512_set1_epi64(int64_t(floor.bits));
    int64_t count = 0, i = 0;
    for (; i + 8 <= n; i += 8) {
      const __m512i item = _mm512_loadu_si512(items + i);
      count += __builtin_popcount(_mm512_cmpgt_epu64_mask(item, bound));
    }
    return count + AnyProcessor::count_above(items + i, n - i, floor);
  }

  // What a store writes beyond its candidates was read before.
  [[gnu::target("avx512f")]] static void keep_above(Candidate<uint32_t>* items, int64_t n,
                                                    Candidate<uint32_t> floor) {
    const __m512i bound = _mm512_set1_epi64(int64_t(floor.bits));
    Candidate<uint32_t>* to = items;
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
      const __m512i item = _mm512_loadu_si512(items + i);
      to = put(to, item, _mm512_cmpgt_epu64_mask(item, bound));
    }
    for (; i < n; ++i) {
      const Candidate<uint32_t> item = items[i];
      *to = item;
      to += item.bits > floor.bits;
    }
  }

  // Each goes to the place that the number of greater ones says.
  [[gnu::target("avx512f")]] static void sort_few(Candidate<uint32_t>* items, int64_t n,
                                                  Candidate<uint32_t>* sorted) {
    for (int64_t i = 0; i < n; i += 8) {
      const __m512i item = _mm512_loadu_si512(items + i);  // past the end: never looked at
      __m512i greater = {}, one = {1, 1, 1, 1, 1, 1, 1, 1};
      for (int64_t k = 0; k < n; ++k) {
        const __m512i other = _mm512_set1_epi64(int64_t(items[k].bits));
        greater =
            _mm512_mask_add_epi64(greater, _mm512_cmpgt_epu64_mask(other, item), greater, one);
      }
      alignas(64) int64_t places[8];
      _mm512_store_si512(places, greater);
      for (int64_t k = 0; k < std::min<int64_t>(8, n - i); ++k) sorted[places[k]] = items[i + k];
    }
    std::copy(sorted, sorted + n, items);
  }

 private:
  using Keys [[gnu::vector_size(64)]] = uint32_t;
  using Signed [[gnu::vector_size(64)]] = int32_t;
  using Half [[gnu::vector_size(32)]] = uint32_t;
  using Wide [[gnu::vector_size(64)]] = uint64_t;

  // One half of 16 keys, each above 32 bits of zeros.
  [[gnu::target("avx512f")]] static __m512i upper(Keys keys, int half) {
    Half halves[2];
    __builtin_memcpy(halves, &keys, sizeof halves);
    return __m512i(__builtin_convertvector(halves[half], Wide) << 32);
  }

  [[gnu::target("avx512f")]] static Candidate<uint32_t>* put(Candidate<uint32_t>* to, __m512i items,
                                                             unsigned chosen) {
    _mm512_storeu_si512(to, _mm512_maskz_compress_epi64(__mmask8(chosen), items));
    return to + __builtin_popcount(chosen);
  }
};
#endif

}  // namespace lamina
