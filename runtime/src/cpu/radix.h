// radix.h -- numbers as unsigned integers of the same order, and a radix sort of these, least
// significant digit first. Long rows are sorted by several threads.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <utility>

#include "core/buffer.h"
#include "cpu/threads.h"

namespace lamina {

constexpr int kDigitBits = 11;
constexpr int kDigits = 1 << kDigitBits;
constexpr int64_t kShortRow = 256;                  // below, comparing is cheaper than counting
constexpr int64_t kParallelRow = int64_t{1} << 16;  // from here on, threads share a row
constexpr int kMaxChunks = 16;
constexpr int64_t kCached = 2048;  // items prepared and counted while they are in cache

enum Kind : int64_t { kUnsigned, kSigned, kFloat, kTotalOrder };

template <class Bits>
constexpr Bits sign_bit() {
  return Bits(Bits{1} << (sizeof(Bits) * 8 - 1));
}

constexpr int64_t kBrainFloat = 8;  // added to the kind of a bf16 key, which f16 is as wide as

// The exponent's bits: a magnitude above them is a NaN.
template <class Bits>
constexpr Bits infinity_of(bool brain_float) {
  if constexpr (sizeof(Bits) == 8) return Bits(0x7FF0000000000000);
  if constexpr (sizeof(Bits) == 4) return Bits(0x7F800000);
  if constexpr (sizeof(Bits) == 2) return brain_float ? Bits(0x7F80) : Bits(0x7C00);
  return 0;  // no key of one byte is floating point
}

// An element's bits as an unsigned integer of the same order.
template <class Bits>
struct Order {
  bool merges;  // zeros are equal, and so are NaNs
  Bits infinity;
  Bits sign;    // the sign bit, where there is one
  Bits floats;  // all ones for floats, whose order is that of magnitudes below zero
  Bits flip;    // all ones when descending

  explicit Order(int64_t kind, bool descending = false)
      : merges((kind & ~kBrainFloat) == kFloat),
        infinity(infinity_of<Bits>(kind & kBrainFloat)),
        sign((kind & ~kBrainFloat) == kUnsigned ? Bits(0) : sign_bit<Bits>()),
        floats((kind & ~kBrainFloat) >= kFloat ? Bits(~Bits{0}) : Bits(0)),
        flip(descending ? Bits(~Bits{0}) : Bits(0)) {}

  bool is_nan(Bits bits) const {
    return merges & (Bits(bits & Bits(~sign_bit<Bits>())) > infinity);
  }
  bool is_zero(Bits bits) const { return merges & (Bits(bits << 1) == 0); }

  // Where nothing merges, and ascending.
  Bits plain(Bits bits) const { return Bits(bits ^ Bits((negative(bits) & floats) | sign)); }
  Bits operator()(Bits bits) const {
    Bits key = plain(bits);
    key = is_zero(bits) ? sign_bit<Bits>() : key;
    key = is_nan(bits) ? Bits(~Bits{0}) : key;
    return key ^ flip;
  }
  Bits inverse(Bits key) const {
    key ^= flip;
    return Bits(key ^ Bits((Bits(~negative(key)) & floats) | sign));
  }

 private:
  static Bits negative(Bits bits) { return Bits(Bits(0) - Bits(bits >> (sizeof(Bits) * 8 - 1))); }
};

inline uint8_t key_of(uint8_t key) { return key; }
inline uint16_t key_of(uint16_t key) { return key; }
inline uint32_t key_of(uint32_t key) { return key; }
inline uint64_t key_of(uint64_t key) { return key; }

template <class Item>
class Radix {
 public:
  Radix(Item* items, Item* scratch, int64_t n)
      : from_(items),
        to_(scratch),
        n_(n),
        chunks_(n < kParallelRow ? 1 : chunk_count()),
        counts_(n < kShortRow ? nullptr : new std::array<uint32_t, kDigits>[chunks_]) {}

  // The items in order, in one of the two arrays.
  Item* run() {
    if (n_ < kShortRow) {
      sort_short();
      return from_;
    }
    const auto nothing = [](int64_t, int64_t) {};
    for (shift_ = 0; shift_ < kBits; shift_ += kDigitBits) {
      if (count(nothing)) move();
    }
    return from_;
  }

  // prepare(lo, hi) fills items [lo, hi) before they are looked at; emit(place, item) takes each at
  // its place in the order. Both are called by several threads.
  template <class Prepare, class Emit>
  void run(const Prepare& prepare, const Emit& emit) {
    if (n_ < kShortRow) {
      prepare(0, n_);
      sort_short();
      for (int64_t i = 0; i < n_; ++i) emit(i, from_[i]);
      return;
    }
    const auto nothing = [](int64_t, int64_t) {};
    for (shift_ = 0; shift_ < kBits; shift_ += kDigitBits) {
      const bool moves = shift_ == 0 ? count(prepare) : count(nothing);
      if (shift_ + kDigitBits >= kBits) {
        moves ? scatter(emit) : pass_on(emit);
      } else if (moves) {
        move();
      }
    }
  }

 private:
  static constexpr int kBits = int(sizeof(decltype(key_of(std::declval<Item>()))) * 8);

  static int64_t chunk_count() { return std::min(kMaxChunks, std::max(1, thread_count())); }

  static int digit(const Item& item, int shift) {
    return int(uint64_t(key_of(item)) >> shift) & (kDigits - 1);
  }

  void sort_short() {
    std::stable_sort(from_, from_ + n_,
                     [](const Item& a, const Item& b) { return key_of(a) < key_of(b); });
  }

  void move() {
    scatter([to = to_](int64_t place, const Item& item) { to[place] = item; });
    std::swap(from_, to_);
  }

  // How often each digit occurs becomes where its items go; false when all have the same.
  template <class Prepare>
  bool count(const Prepare& prepare) {
    each_chunk([&](int64_t chunk, int64_t lo, int64_t hi) {
      const Item* const from = from_;
      const int shift = shift_;
      auto& counts = counts_[chunk];
      counts.fill(0);
      for (int64_t block = lo; block < hi; block += kCached) {
        const int64_t end = std::min(hi, block + kCached);
        prepare(block, end);
        for (int64_t i = block; i < end; ++i) ++counts[digit(from[i], shift)];
      }
    });
    uint32_t total = 0;
    for (int d = 0; d < kDigits; ++d) {
      uint32_t here = 0;
      for (int64_t c = 0; c < chunks_; ++c) {
        const uint32_t count = counts_[c][d];
        counts_[c][d] = total + here;
        here += count;
      }
      if (here == uint64_t(n_)) return false;
      total += here;
    }
    return true;
  }

  template <class Emit>
  void scatter(const Emit& emit) {
    each_chunk([&](int64_t chunk, int64_t lo, int64_t hi) {
      const Item* const from = from_;
      const int shift = shift_;
      const Emit put = emit;  // a copy, which no store can change
      uint32_t* const places = counts_[chunk].data();
      for (int64_t i = lo; i < hi; ++i) put(places[digit(from[i], shift)]++, from[i]);
    });
  }

  template <class Emit>
  void pass_on(const Emit& emit) {
    each_chunk([&](int64_t, int64_t lo, int64_t hi) {
      for (int64_t i = lo; i < hi; ++i) emit(i, from_[i]);
    });
  }

  template <class Body>
  void each_chunk(const Body& body) {
    struct Context {
      const Body& body;
      int64_t n, chunks;
    } context{body, n_, chunks_};
    lamina_parallel_for(
        [](void* c, int64_t lo, int64_t hi) {
          const auto& [body, n, chunks] = *static_cast<Context*>(c);
          for (int64_t i = lo; i < hi; ++i) body(i, n * i / chunks, n * (i + 1) / chunks);
        },
        &context, chunks_, 1);
  }

  Item* from_;
  Item* to_;
  const int64_t n_, chunks_;
  int shift_ = 0;
  std::unique_ptr<std::array<uint32_t, kDigits>[]> counts_;
};

template <class Item>
struct Arrays {
  explicit Arrays(int64_t n)
      : memory(Ref<Buffer>::steal(Buffer::allocate(size_t(2 * n) * sizeof(Item)))),
        first(static_cast<Item*>(memory->data())),
        second(first + n) {}
  Ref<Buffer> memory;
  Item* first;
  Item* second;
};

}  // namespace lamina
