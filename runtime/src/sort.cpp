// sort.cpp -- lamina_sort: rows in the order of one key or of several.
//
// Keys become unsigned integers of the same order. One array alone is sorted by value; zeros and
// NaNs, whose bits the keys do not keep, are put back from the input. Else (key, position) pairs
// are sorted and all operands are gathered. Long rows are sorted by several threads, short ones
// each by one.
#include "sort.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "radix.h"
#include "threads.h"

namespace lamina {
namespace {

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

template <class Key>
struct Pair {
  Key key;
  uint32_t position;
};
template <class Key>
Key key_of(const Pair<Key>& pair) {
  return pair.key;
}

template <class Bits>
void sort_values(const Plan& plan, int64_t row) {
  const int64_t n = plan.length;
  const Order<Bits> order(plan.keys[0].kind, plan.keys[0].descending);
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
  const Order<Bits> order(key.kind, key.descending);
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
