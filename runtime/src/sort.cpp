// sort.cpp -- lamina_sort: a radix sort, least significant digit first.
//
// Keys become unsigned integers of the same order. One array alone is sorted by value; zeros and
// NaNs, whose bits the keys do not keep, are put back from the input. Else (key, position) pairs
// are sorted and all operands are gathered. Long rows are sorted by several threads, short ones
// each by one.
#include "sort.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
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
  int64_t kind;
  bool brain_float;
  Bits flip;  // all ones when descending

  explicit Order(const KeySpec& key)
      : kind(key.kind & ~kBrainFloat),
        brain_float(key.kind & kBrainFloat),
        flip(key.descending ? Bits(~Bits{0}) : 0) {}

  bool is_nan(Bits bits) const {
    return kind == kFloat && Bits(bits & Bits(~sign_bit<Bits>())) > infinity_of<Bits>(brain_float);
  }
  bool is_zero(Bits bits) const { return kind == kFloat && Bits(bits << 1) == 0; }

  Bits operator()(Bits bits) const {
    if (kind == kUnsigned) return bits ^ flip;
    if (kind == kSigned) return Bits(bits ^ sign_bit<Bits>()) ^ flip;
    if (is_nan(bits)) return Bits(~Bits{0}) ^ flip;
    if (is_zero(bits)) return sign_bit<Bits>() ^ flip;
    return Bits(bits & sign_bit<Bits>() ? Bits(~bits) : Bits(bits | sign_bit<Bits>())) ^ flip;
  }
  Bits inverse(Bits key) const {
    key ^= flip;
    if (kind == kUnsigned) return key;
    if (kind == kSigned) return key ^ sign_bit<Bits>();
    return Bits(key & sign_bit<Bits>() ? Bits(key & Bits(~sign_bit<Bits>())) : Bits(~key));
  }
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
      : from_(items), to_(scratch), n_(n), chunks_(n < kParallelRow ? 1 : chunk_count()) {}

  // The items in order, in one of the two arrays.
  Item* run() {
    using Key = decltype(key_of(*from_));
    if (n_ < kShortRow) {
      std::stable_sort(from_, from_ + n_,
                       [](const Item& a, const Item& b) { return key_of(a) < key_of(b); });
      return from_;
    }
    counts_.reset(new std::array<uint32_t, kDigits>[chunks_]);
    for (shift_ = 0; shift_ < int(sizeof(Key) * 8); shift_ += kDigitBits) one_digit();
    return from_;
  }

 private:
  static int64_t chunk_count() { return std::min(kMaxChunks, std::max(1, thread_count())); }

  int digit(const Item& item) const {
    return int(uint64_t(key_of(item)) >> shift_) & (kDigits - 1);
  }

  void one_digit() {
    each_chunk([](Radix& self, int64_t chunk, int64_t lo, int64_t hi) {
      auto& counts = self.counts_[chunk];
      counts.fill(0);
      for (int64_t i = lo; i < hi; ++i) ++counts[self.digit(self.from_[i])];
    });
    uint32_t total = 0;
    for (int d = 0; d < kDigits; ++d) {
      uint32_t here = 0;
      for (int64_t c = 0; c < chunks_; ++c) {
        const uint32_t count = counts_[c][d];
        counts_[c][d] = total + here;
        here += count;
      }
      if (here == uint64_t(n_)) return;  // all have this digit: nothing moves
      total += here;
    }
    each_chunk([](Radix& self, int64_t chunk, int64_t lo, int64_t hi) {
      auto& places = self.counts_[chunk];
      for (int64_t i = lo; i < hi; ++i) {
        self.to_[places[self.digit(self.from_[i])]++] = self.from_[i];
      }
    });
    std::swap(from_, to_);
  }

  template <class Body>
  void each_chunk(Body) {
    lamina_parallel_for(
        [](void* context, int64_t lo, int64_t hi) {
          Radix& self = *static_cast<Radix*>(context);
          for (int64_t c = lo; c < hi; ++c) {
            Body{}(self, c, self.n_ * c / self.chunks_, self.n_ * (c + 1) / self.chunks_);
          }
        },
        this, chunks_, 1);
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
  int64_t special = 0;
  for (int64_t j = 0; j < n; ++j) {
    arrays.first[j] = order(in[j]);
    special += order.is_zero(in[j]) || order.is_nan(in[j]);
  }
  const Bits* sorted = Radix<Bits>(arrays.first, arrays.second, n).run();
  for (int64_t j = 0; j < n; ++j) out[j] = order.inverse(sorted[j]);
  if (!special) return;
  const auto range = [&](Bits key) { return std::lower_bound(sorted, sorted + n, key) - sorted; };
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
