// sort.cpp -- lamina_sort: rows in the order of one key or of several.
//
// Keys become unsigned integers of the same order. One array alone is sorted by value; zeros and
// NaNs, whose bits the keys do not keep, are put back from the input. Else (key, position) pairs
// are sorted and all operands are gathered. Long rows are sorted by several threads, short ones
// each by one, many short ones side by side.
#include "cpu/sort.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

#include "cpu/radix.h"
#include "cpu/sort_together.h"
#include "cpu/threads.h"

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

// Puts the zeros and the NaNs of a row where its sorted keys have theirs.
template <class Bits>
void put_back(const Order<Bits>& order, Row<const Bits> in, Row<Bits> out, int64_t n) {
  // Where they begin, by bisection of what was written.
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
  if (special.load()) put_back(order, in, out, n);
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

// Rows from `first` on, as many as fit, by value.
template <class Bits>
void sort_values_together(const Plan& plan, int64_t first, int64_t rows) {
  constexpr int64_t columns = kTogether<Bits>;
  const int64_t n = plan.length;
  const Order<Bits> order(plan.keys[0].kind, plan.keys[0].descending);
  const std::unique_ptr<Bits[]> keys(new Bits[n * columns]());
  for (int64_t c = 0; c < rows; ++c) {
    const auto in = row_of(plan, static_cast<const Bits*>(plan.inputs[0]), first + c);
    for (int64_t j = 0; j < n; ++j) keys[j * columns + c] = order(in[j]);
  }
  sort_columns(keys.get(), n);
  for (int64_t c = 0; c < rows; ++c) {
    const auto in = row_of(plan, static_cast<const Bits*>(plan.inputs[0]), first + c);
    const auto out = row_of(plan, static_cast<Bits*>(plan.outputs[0]), first + c);
    bool special = false;
    for (int64_t j = 0; j < n; ++j) {
      out[j] = order.inverse(keys[j * columns + c]);
      special |= order.is_zero(in[j]) | order.is_nan(in[j]);
    }
    if (special) put_back(order, in, out, n);
  }
}

template <class Bits>
void gather_together(const Plan& plan, int64_t operand, int64_t first, int64_t rows,
                     const uint64_t* pairs) {
  for (int64_t c = 0; c < rows; ++c) {
    const auto in = row_of(plan, static_cast<const Bits*>(plan.inputs[operand]), first + c);
    const auto out = row_of(plan, static_cast<Bits*>(plan.outputs[operand]), first + c);
    for (int64_t j = 0; j < plan.length; ++j) {
      out[j] = in[uint32_t(pairs[j * kTogether<uint64_t> + c])];
    }
  }
}

// The same by one key of up to four bytes, with other operands beside it: the position of each
// element is the lower half of what is sorted.
template <class Bits>
void sort_pairs_together(const Plan& plan, int64_t first, int64_t rows) {
  constexpr int64_t columns = kTogether<uint64_t>;
  const int64_t n = plan.length;
  const auto& [operand, kind, descending] = plan.keys[0];
  const Order<Bits> order(kind, descending);
  const std::unique_ptr<uint64_t[]> pairs(new uint64_t[n * columns]());
  for (int64_t c = 0; c < rows; ++c) {
    const auto in = row_of(plan, static_cast<const Bits*>(plan.inputs[operand]), first + c);
    for (int64_t j = 0; j < n; ++j) pairs[j * columns + c] = uint64_t(order(in[j])) << 32 | j;
  }
  sort_columns(pairs.get(), n);
  for (size_t k = 0; k < plan.widths.size(); ++k) {
    if (!plan.outputs[k]) continue;
    switch (plan.widths[k]) {
      case 1:
        gather_together<uint8_t>(plan, k, first, rows, pairs.get());
        break;
      case 2:
        gather_together<uint16_t>(plan, k, first, rows, pairs.get());
        break;
      case 4:
        gather_together<uint32_t>(plan, k, first, rows, pairs.get());
        break;
      case 8:
        gather_together<uint64_t>(plan, k, first, rows, pairs.get());
        break;
      default:
        gather_together<Wide>(plan, k, first, rows, pairs.get());
    }
  }
}

// How many rows are sorted together; 1 where they are better sorted alone.
int64_t rows_together(const Plan& plan) {
  const int64_t width = plan.widths[plan.keys[0].operand];
  const bool alone = plan.widths.size() == 1;
  if (plan.length > kMostTogether || plan.keys.size() > 1 || (!alone && width > 4)) return 1;
  const int64_t columns = alone && width < 8 ? kTogether<uint32_t> : kTogether<uint64_t>;
  return 2 * plan.outer * plan.inner >= columns ? columns : 1;
}

template <class Bits>
void sort_together_as(const Plan& plan, int64_t first, int64_t rows) {
  if (plan.widths.size() == 1) return sort_values_together<Bits>(plan, first, rows);
  if constexpr (sizeof(Bits) <= 4) sort_pairs_together<Bits>(plan, first, rows);
}

void sort_together(const Plan& plan, int64_t first, int64_t rows) {
  switch (plan.widths[plan.keys[0].operand]) {
    case 1:
      return sort_together_as<uint8_t>(plan, first, rows);
    case 2:
      return sort_together_as<uint16_t>(plan, first, rows);
    case 4:
      return sort_together_as<uint32_t>(plan, first, rows);
    default:
      return sort_together_as<uint64_t>(plan, first, rows);
  }
}

}  // namespace
}  // namespace lamina

extern "C" void lamina_sort(const int64_t* words, const void* const* inputs, void* const* outputs) {
  using lamina::Plan;
  Plan plan(words, inputs, outputs);
  const int64_t rows = plan.outer * plan.inner, together = lamina::rows_together(plan);
  struct Work {
    const Plan& plan;
    int64_t rows, together;
  } work{plan, rows, together};
  const int64_t grain = plan.length >= lamina::kParallelRow
                            ? rows
                            : std::max<int64_t>(1, 4096 / ((plan.length + 1) * together));
  lamina_parallel_for(
      [](void* context, int64_t lo, int64_t hi) {
        const auto& [plan, rows, together] = *static_cast<const Work*>(context);
        try {
          for (int64_t group = lo; group < hi; ++group) {
            const int64_t first = group * together;
            if (together > 1) {
              lamina::sort_together(plan, first, std::min(together, rows - first));
            } else {
              lamina::sort_row(plan, first);
            }
          }
        } catch (const std::exception&) {
          lamina_fail("out of memory: the scratch space of a sort could not be allocated");
        }
      },
      &work, (rows + together - 1) / together, grain);
}
