// top_k.cpp -- lamina_top_k: one pass over a row, which keeps what may be among the greatest.
//
// Elements that reach a bound are appended to a list of candidates. When that is full, a bound is
// found that enough of them are above, and the others are dropped: of n elements in no order about
// k log(n / k) are appended at all. What is left in the end is sorted. A row of which much is
// wanted is all candidates, and sorted by its keys.
#include "cpu/top_k.h"

#include <algorithm>
#include <exception>

#include "cpu/candidates.h"

namespace lamina {
namespace {

constexpr int64_t kBlock = 256;           // elements looked at between two looks at the list
constexpr int kSample = 32;               // candidates that bounds are taken from
constexpr int64_t kTaskElements = 16384;  // the least work worth a task of its own

struct Plan {
  int64_t rows, length, count, width, kind;
  const void* input;
  void* values;
  int32_t* positions;

  // Of the list of one row, or of a part of it.
  int64_t capacity() const { return std::min(length, 4 * count + 128) + kBlock; }
};

template <class Key, class Vectors>
class Selection {
 public:
  using Item = Candidate<Key>;

  Selection(const Plan& plan, Item* items, Item* spare)
      : count_(plan.count), capacity_(plan.capacity()), items_(items), spare_(spare) {}

  // Elements [lo, hi) of a row, after those before them; all that were appended before are gone.
  template <class Bits>
  int64_t scan(const Bits* row, int64_t lo, int64_t hi, const Order<Key>& order) {
    size_ = 0;
    Key least = 0;
    for (int64_t j = lo; j < hi; j += kBlock) {
      if (size_ + kBlock > capacity_) {
        const Key highest = prune().key();
        if (Key(highest + 1) == 0) break;  // nothing is greater
        least = highest + 1;
      }
      size_ += Vectors::append(row, j, std::min(hi, j + kBlock), order, least, items_ + size_);
    }
    if (size_ > count_ + count_ / 4 + kSample) prune();
    return size_;
  }

  // What scans left, one behind the other, in order: the greatest first, as many as are wanted.
  const Item* sorted(int64_t size) {
    size_ = size;
    if (size_ > 2 * count_ + kSample) prune();
    if (size_ >= kShortRow) return Radix<Item>(items_, spare_, size_).run();
    Vectors::sort_few(items_, size_, spare_);
    return items_;
  }

 private:
  // Drops candidates that are not among the greatest, all or most of them; gives one that nothing
  // wanted is below. The rest stays in order.
  Item prune() {
    Item sample[kSample + kOverrun], spare[kSample + kOverrun];
    for (int i = 0; i < kSample; ++i) sample[i] = items_[size_ * i / kSample];
    Vectors::sort_few(sample, kSample, spare);
    int low = 0, high = kSample;
    int64_t kept = size_;
    while (low < high) {
      const int middle = (low + high) / 2;
      const int64_t above = Vectors::count_above(items_, size_, sample[middle]);
      if (above >= count_) {
        high = middle;
        kept = above;
      } else {
        low = middle + 1;
      }
    }
    Item floor = sample[std::min(high, kSample - 1)];
    // The sample was no fair one, or the list has no room for a block.
    if (kept > size_ - size_ / 4 || kept + kBlock > capacity_) {
      std::copy(items_, items_ + size_, spare_);
      std::nth_element(spare_, spare_ + (count_ - 1), spare_ + size_, before<Key>);
      floor = spare_[count_ - 1].bits - 1;
      kept = count_;
    }
    Vectors::keep_above(items_, size_, floor);
    size_ = kept;
    return floor;
  }

  const int64_t count_, capacity_;
  Item* const items_;
  Item* const spare_;
  int64_t size_ = 0;
};

template <class Bits, class Key>
void write(const Plan& plan, int64_t row, const Candidate<Key>* sorted) {
  const Bits* const in = static_cast<const Bits*>(plan.input) + row * plan.length;
  Bits* const values = plan.values ? static_cast<Bits*>(plan.values) + row * plan.count : nullptr;
  int32_t* const positions = plan.positions ? plan.positions + row * plan.count : nullptr;
  for (int64_t i = 0; i < plan.count; ++i) {
    const int64_t position = sorted[i].position();
    if (values) values[i] = in[position];
    if (positions) positions[i] = int32_t(position);
  }
}

template <class Bits, class Vectors>
void rows(const Plan& plan, int64_t lo, int64_t hi) {
  using Key = Word<Bits>;
  const Order<Key> order(plan.kind);
  Arrays<Candidate<Key>> arrays(plan.capacity() + kOverrun);
  Selection<Key, Vectors> selection(plan, arrays.first, arrays.second);
  for (int64_t row = lo; row < hi; ++row) {
    const Bits* const in = static_cast<const Bits*>(plan.input) + row * plan.length;
    const int64_t size = selection.scan(in, 0, plan.length, order);
    write<Bits>(plan, row, selection.sorted(size));
  }
}

// The candidates of parts of a long row, each found by one thread, are the candidates of the row.
template <class Bits, class Vectors>
void parts_of_row(const Plan& plan, int64_t row, int64_t parts) {
  using Key = Word<Bits>;
  const int64_t room = plan.capacity() + kOverrun;
  Arrays<Candidate<Key>> arrays(parts * room);
  struct Context {
    const Plan& plan;
    const Bits* in;
    Arrays<Candidate<Key>>& arrays;
    int64_t parts, room;
    int64_t sizes[kMaxChunks];
  } context{plan, static_cast<const Bits*>(plan.input) + row * plan.length, arrays, parts, room,
            {}};
  lamina_parallel_for(
      [](void* given, int64_t lo, int64_t hi) {
        auto& c = *static_cast<Context*>(given);
        const Order<Key> order(c.plan.kind);
        for (int64_t part = lo; part < hi; ++part) {
          Selection<Key, Vectors> selection(c.plan, c.arrays.first + part * c.room,
                                            c.arrays.second + part * c.room);
          const int64_t first = c.plan.length * part / c.parts;
          const int64_t end = c.plan.length * (part + 1) / c.parts;
          c.sizes[part] = selection.scan(c.in, first, end, order);
        }
      },
      &context, parts, 1);
  int64_t size = 0;
  for (int64_t part = 0; part < parts; ++part) {
    const Candidate<Key>* const found = arrays.first + part * room;
    std::copy(found, found + context.sizes[part], arrays.first + size);
    size += context.sizes[part];
  }
  write<Bits>(plan, row, Selection<Key, Vectors>(plan, arrays.first, arrays.second).sorted(size));
}

template <class Bits, class Vectors>
void all_rows(const Plan& plan) {
  const int64_t threads = std::min(kMaxChunks, thread_count());
  const int64_t parts = plan.count < kParallelRow / 16 ? threads : 1;
  if (plan.length >= kParallelRow && plan.rows < 2 * threads) {
    for (int64_t row = 0; row < plan.rows; ++row) {
      parts > 1 ? parts_of_row<Bits, Vectors>(plan, row, parts)
                : rows<Bits, Vectors>(plan, row, row + 1);
    }
    return;
  }
  lamina_parallel_for(
      [](void* context, int64_t lo, int64_t hi) {
        try {
          rows<Bits, Vectors>(*static_cast<const Plan*>(context), lo, hi);
        } catch (const std::exception&) {
          lamina_fail("out of memory: the scratch space of a top_k could not be allocated");
        }
      },
      const_cast<Plan*>(&plan), plan.rows, std::max<int64_t>(1, kTaskElements / plan.length));
}

template <class Bits>
void top_k(const Plan& plan) {
#if defined(__x86_64__)
  if constexpr (sizeof(Bits) <= 4) {
    if (vector_bits() >= 512) return all_rows<Bits, Avx512>(plan);
  }
  if (vector_bits() >= 256) return all_rows<Bits, Avx2>(plan);
#endif
  all_rows<Bits, AnyProcessor>(plan);
}

void of_width(const Plan& plan) {
  switch (plan.width) {
    case 1:
      return top_k<uint8_t>(plan);
    case 2:
      return top_k<uint16_t>(plan);
    case 4:
      return top_k<uint32_t>(plan);
    default:
      return top_k<uint64_t>(plan);
  }
}

}  // namespace
}  // namespace lamina

extern "C" void lamina_top_k(const int64_t* words, const void* input, void* values,
                             void* positions) {
  const lamina::Plan plan{words[0], words[1], words[2], words[3],
                          words[4], input,    values,   static_cast<int32_t*>(positions)};
  try {
    lamina::of_width(plan);
  } catch (const std::exception&) {
    lamina_fail("out of memory: the scratch space of a top_k could not be allocated");
  }
}
