// sort.cpp -- lamina_sort: a radix sort, least significant digit first.
//
// Keys become unsigned integers of the same order. One array alone is sorted by value; zeros and
// NaNs, whose bits the keys do not keep, are put back from the input. Else (key, position) pairs
// are sorted and all operands are gathered. Long rows are sorted by several threads, short ones
// each by one.
#include "sort.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "buffer.h"
#include "threads.h"

namespace lamina {
namespace {

constexpr int kDigitBits = 11;
constexpr int kDigits = 1 << kDigitBits;
constexpr int64_t kShortRow = 256;                  // below, comparing is cheaper than counting
constexpr int64_t kParallelRow = int64_t{1} << 16;  // from here on, threads share a row
constexpr int kMaxChunks = 16;
constexpr int64_t kCached = 2048;  // items prepared and counted while they are in cache

enum Kind : int64_t { kUnsigned, kSigned, kFloat, kTotalOrder };

struct KeySpec {
  int64_t operand, kind, descending;
};

struct Plan {
  int64_t outer, length, inner;
  std::vector<int64_t> widths;
  std::vector<KeySpec> keys;
  const void* const* inputs;
  void* const* outputs;

  Plan(const int64_t* words, const void* const* in, void* const* out)
      : outer(words[0]), length(words[1]), inner(words[2]), inputs(in), outputs(out) {
    const int64_t operands = words[3], count = words[4];
    widths.assign(words + 5, words + 5 + operands);
    for (const int64_t* at = words + 5 + operands; int64_t(keys.size()) < count; at += 3) {
      keys.push_back({at[0], at[1], at[2]});
    }
  }
};

// Elements of one row of an operand.
template <class T>
struct Row {
  T* first;
  int64_t step;
  T& operator[](int64_t j) const { return first[j * step]; }
};

template <class T>
Row<T> row_of(const Plan& plan, T* data, int64_t row) {
  const int64_t o = row / plan.inner, i = row % plan.inner;
  return {data + o * plan.length * plan.inner + i, plan.inner};
}

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

  explicit Order(const KeySpec& key)
      : merges((key.kind & ~kBrainFloat) == kFloat),
        infinity(infinity_of<Bits>(key.kind & kBrainFloat)),
        sign((key.kind & ~kBrainFloat) == kUnsigned ? Bits(0) : sign_bit<Bits>()),
        floats((key.kind & ~kBrainFloat) >= kFloat ? Bits(~Bits{0}) : Bits(0)),
        flip(key.descending ? Bits(~Bits{0}) : Bits(0)) {}

  bool is_nan(Bits bits) const {
    return merges & (Bits(bits & Bits(~sign_bit<Bits>())) > infinity);
  }
  bool is_zero(Bits bits) const { return merges & (Bits(bits << 1) == 0); }

  Bits operator()(Bits bits) const {
    Bits key = Bits(bits ^ Bits((negative(bits) & floats) | sign));
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

template <class Key>
struct Pair {
  Key key;
  uint32_t position;
};
template <class Key>
Key key_of(const Pair<Key>& pair) {
  return pair.key;
}
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

template <class Bits>
void sort_values(const Plan& plan, int64_t row) {
  const int64_t n = plan.length;
  const Order<Bits> order(plan.keys[0]);
  const auto in = row_of(plan, static_cast<const Bits*>(plan.inputs[0]), row);
  const auto out = row_of(plan, static_cast<Bits*>(plan.outputs[0]), row);
  Arrays<Bits> arrays(n);
  Bits* const keys = arrays.first;
  std::atomic<int64_t> special{0};
  Radix<Bits>(keys, arrays.second, n)
      .run(
          [&, keys, order, in](int64_t lo, int64_t hi) {
            int64_t found = 0;
            for (int64_t j = lo; j < hi; ++j) {
              keys[j] = order(in[j]);
              found += order.is_zero(in[j]) | order.is_nan(in[j]);
            }
            if (found) special.fetch_add(found, std::memory_order_relaxed);
          },
          [order, out](int64_t place, Bits key) { out[place] = order.inverse(key); });
  if (!special.load()) return;
  // Where the zeros and the NaNs begin, by bisection of what was written.
  const auto range = [&](Bits key) {
    int64_t low = 0, high = n;
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      (order(out[middle]) < key ? low : high) = order(out[middle]) < key ? middle + 1 : middle;
    }
    return low;
  };
  int64_t zero = range(order(Bits{0}));
  int64_t nan = range(Bits(~Bits{0}) ^ order.flip);
  for (int64_t j = 0; j < n; ++j) {
    if (order.is_zero(in[j])) out[zero++] = in[j];
    if (order.is_nan(in[j])) out[nan++] = in[j];
  }
}

template <class Bits, class Key>
void take_keys(const Plan& plan, const KeySpec& key, int64_t row, Pair<Key>* pairs) {
  const Order<Bits> order(key);
  const auto in = row_of(plan, static_cast<const Bits*>(plan.inputs[key.operand]), row);
  for (int64_t j = 0; j < plan.length; ++j) pairs[j].key = order(in[pairs[j].position]);
}

template <class Bits, class Key>
void gather(const Plan& plan, int64_t operand, int64_t row, const Pair<Key>* pairs) {
  struct Context {
    Row<const Bits> in;
    Row<Bits> out;
    const Pair<Key>* pairs;
  } context{row_of(plan, static_cast<const Bits*>(plan.inputs[operand]), row),
            row_of(plan, static_cast<Bits*>(plan.outputs[operand]), row), pairs};
  lamina_parallel_for(
      [](void* c, int64_t lo, int64_t hi) {
        const auto& [in, out, pairs] = *static_cast<Context*>(c);
        for (int64_t j = lo; j < hi; ++j) out[j] = in[pairs[j].position];
      },
      &context, plan.length, kParallelRow / 4);
}

struct Wide {
  uint64_t low, high;
};

template <class Key>
void sort_pairs(const Plan& plan, int64_t row) {
  Arrays<Pair<Key>> arrays(plan.length);
  Pair<Key>* pairs = arrays.first;
  for (int64_t j = 0; j < plan.length; ++j) pairs[j].position = uint32_t(j);
  for (auto key = plan.keys.rbegin(); key != plan.keys.rend(); ++key) {
    switch (plan.widths[key->operand]) {
      case 1:
        take_keys<uint8_t>(plan, *key, row, pairs);
        break;
      case 2:
        take_keys<uint16_t>(plan, *key, row, pairs);
        break;
      case 4:
        take_keys<uint32_t>(plan, *key, row, pairs);
        break;
      default:
        if constexpr (sizeof(Key) == 8) take_keys<uint64_t>(plan, *key, row, pairs);
    }
    pairs =
        Radix<Pair<Key>>(pairs, pairs == arrays.first ? arrays.second : arrays.first, plan.length)
            .run();
  }
  for (size_t k = 0; k < plan.widths.size(); ++k) {
    if (!plan.outputs[k]) continue;
    switch (plan.widths[k]) {
      case 1:
        gather<uint8_t>(plan, k, row, pairs);
        break;
      case 2:
        gather<uint16_t>(plan, k, row, pairs);
        break;
      case 4:
        gather<uint32_t>(plan, k, row, pairs);
        break;
      case 8:
        gather<uint64_t>(plan, k, row, pairs);
        break;
      default:
        gather<Wide>(plan, k, row, pairs);
    }
  }
}

void sort_row(const Plan& plan, int64_t row) {
  if (plan.widths.size() == 1) {
    switch (plan.widths[0]) {
      case 1:
        return sort_values<uint8_t>(plan, row);
      case 2:
        return sort_values<uint16_t>(plan, row);
      case 4:
        return sort_values<uint32_t>(plan, row);
      default:
        return sort_values<uint64_t>(plan, row);
    }
  }
  const bool wide = std::any_of(plan.keys.begin(), plan.keys.end(),
                                [&](const KeySpec& key) { return plan.widths[key.operand] == 8; });
  wide ? sort_pairs<uint64_t>(plan, row) : sort_pairs<uint32_t>(plan, row);
}

}  // namespace
}  // namespace lamina

extern "C" void lamina_sort(const int64_t* words, const void* const* inputs, void* const* outputs) {
  using lamina::Plan;
  Plan plan(words, inputs, outputs);
  const int64_t rows = plan.outer * plan.inner;
  const int64_t grain =
      plan.length >= lamina::kParallelRow ? rows : std::max<int64_t>(1, 4096 / (plan.length + 1));
  lamina_parallel_for(
      [](void* context, int64_t lo, int64_t hi) {
        try {
          for (int64_t row = lo; row < hi; ++row) {
            lamina::sort_row(*static_cast<const Plan*>(context), row);
          }
        } catch (const std::exception&) {
          lamina_fail("out of memory: the scratch space of a sort could not be allocated");
        }
      },
      &plan, rows, grain);
}
