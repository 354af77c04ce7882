// collective_shares.cpp -- see collective_shares.h.
#include "cpu/collective_shares.h"

#include <algorithm>
#include <complex>
#include <cstring>
#include <type_traits>

#include "cpu/half.h"

namespace lamina {

// --- Reductions ----------------------------------------------------------------------------------

namespace {

// Elements [lo, hi) of the operands, shifted by `shift` elements, combined in the group's order.
// All results that are here get them, or only `result` where it is not null.
template <typename T, typename F>
void combine(const Slots& slots, int64_t lo, int64_t hi, int64_t shift, T* result, F f) {
  constexpr int64_t kBlock = 1024;
  T block[kBlock];
  for (int64_t at = lo; at < hi; at += kBlock) {
    const int64_t n = std::min(kBlock, hi - at);
    std::memcpy(block, static_cast<const T*>(slots[0].operand) + shift + at, n * sizeof(T));
    for (size_t m = 1; m < slots.size(); ++m) {
      const T* operand = static_cast<const T*>(slots[m].operand) + shift + at;
      for (int64_t i = 0; i < n; ++i) block[i] = f(block[i], operand[i]);
    }
    if (result != nullptr) {
      std::memcpy(result + at, block, n * sizeof(T));
      continue;
    }
    for (const Team::Slot& slot : slots) {
      if (slot.result == nullptr) continue;
      std::memcpy(static_cast<T*>(slot.result) + at, block, n * sizeof(T));
    }
  }
}

struct Job {
  const Slots& slots;
  int64_t lo, hi, shift;
  void* result;
  ReduceOp op;
};

template <typename T, typename F>
void run(const Job& job, F f) {
  combine<T>(job.slots, job.lo, job.hi, job.shift, static_cast<T*>(job.result), f);
}

// NaN where either is NaN, as StableHLO's maximum.
template <typename T>
T larger(T a, T b) {
  return a != a || a > b ? a : b;
}
template <typename T>
T smaller(T a, T b) {
  return a != a || a < b ? a : b;
}

template <typename T>
bool reduce_integers(const Job& job) {
  using U = std::make_unsigned_t<T>;  // sums wrap
  switch (job.op) {
    case ReduceOp::kAdd:
      run<T>(job, [](T a, T b) { return T(U(a) + U(b)); });
      return true;
    case ReduceOp::kMultiply:
      run<T>(job, [](T a, T b) { return T(uint64_t(a) * uint64_t(b)); });
      return true;
    case ReduceOp::kMinimum:
      run<T>(job, [](T a, T b) { return std::min(a, b); });
      return true;
    case ReduceOp::kMaximum:
      run<T>(job, [](T a, T b) { return std::max(a, b); });
      return true;
    case ReduceOp::kAnd:
      run<T>(job, [](T a, T b) { return T(a & b); });
      return true;
    case ReduceOp::kOr:
      run<T>(job, [](T a, T b) { return T(a | b); });
      return true;
    case ReduceOp::kXor:
      run<T>(job, [](T a, T b) { return T(a ^ b); });
      return true;
  }
  return false;
}

bool reduce_booleans(const Job& job) {
  switch (job.op) {
    case ReduceOp::kAdd:
    case ReduceOp::kMaximum:
    case ReduceOp::kOr:
      run<uint8_t>(job, [](uint8_t a, uint8_t b) { return uint8_t(a | b); });
      return true;
    case ReduceOp::kXor:
      run<uint8_t>(job, [](uint8_t a, uint8_t b) { return uint8_t(a ^ b); });
      return true;
    default:
      run<uint8_t>(job, [](uint8_t a, uint8_t b) { return uint8_t(a & b); });
      return true;
  }
}

// run(f), with f what the op does to two numbers. False where it is nothing for such numbers.
template <typename T, typename Run>
bool with_operation(ReduceOp op, Run run) {
  switch (op) {
    case ReduceOp::kAdd:
      run([](T a, T b) { return a + b; });
      return true;
    case ReduceOp::kMultiply:
      run([](T a, T b) { return a * b; });
      return true;
    default:
      break;
  }
  if constexpr (std::is_floating_point_v<T>) {  // complex numbers have no order
    switch (op) {
      case ReduceOp::kMinimum:
        run(smaller<T>);
        return true;
      case ReduceOp::kMaximum:
        run(larger<T>);
        return true;
      default:
        break;
    }
  }
  return false;
}

template <typename T>
bool reduce_numbers(const Job& job) {
  return with_operation<T>(job.op, [&](auto f) { run<T>(job, f); });
}

// Combined in float and rounded once.
template <float (*widen)(uint16_t), uint16_t (*narrow)(float)>
bool reduce_halves(const Job& job) {
  return with_operation<float>(job.op, [&](auto f) {
    for (int64_t i = job.lo; i < job.hi; ++i) {
      float value = 0;
      for (size_t m = 0; m < job.slots.size(); ++m) {
        const auto* operand = static_cast<const uint16_t*>(job.slots[m].operand) + job.shift;
        value = m == 0 ? widen(operand[i]) : f(value, widen(operand[i]));
      }
      const uint16_t rounded = narrow(value);
      if (job.result != nullptr) {
        static_cast<uint16_t*>(job.result)[i] = rounded;
        continue;
      }
      for (const Team::Slot& slot : job.slots) {
        if (slot.result != nullptr) static_cast<uint16_t*>(slot.result)[i] = rounded;
      }
    }
  });
}

bool reduce(ElementKind kind, const Job& job) {
  switch (kind) {
    case ElementKind::kBool:
      return reduce_booleans(job);
    case ElementKind::kInt8:
      return reduce_integers<int8_t>(job);
    case ElementKind::kInt16:
      return reduce_integers<int16_t>(job);
    case ElementKind::kInt32:
      return reduce_integers<int32_t>(job);
    case ElementKind::kInt64:
      return reduce_integers<int64_t>(job);
    case ElementKind::kUint8:
      return reduce_integers<uint8_t>(job);
    case ElementKind::kUint16:
      return reduce_integers<uint16_t>(job);
    case ElementKind::kUint32:
      return reduce_integers<uint32_t>(job);
    case ElementKind::kUint64:
      return reduce_integers<uint64_t>(job);
    case ElementKind::kFloat16:
      return reduce_halves<half_to_float, float_to_half>(job);
    case ElementKind::kBfloat16:
      return reduce_halves<bfloat16_to_float, float_to_bfloat16>(job);
    case ElementKind::kFloat32:
      return reduce_numbers<float>(job);
    case ElementKind::kFloat64:
      return reduce_numbers<double>(job);
    case ElementKind::kComplex64:
      return reduce_numbers<std::complex<float>>(job);
    case ElementKind::kComplex128:
      return reduce_numbers<std::complex<double>>(job);
  }
  return false;
}

}  // namespace

// --- One device's share --------------------------------------------------------------------------

int64_t part_of(const CollectiveSpec& spec, int64_t member, int64_t size) {
  return spec.count * member / size;
}

bool reduce_all_of(const CollectiveSpec& spec, const Slots& slots, int64_t lo, int64_t hi) {
  return reduce(ElementKind(spec.dtype), {slots, lo, hi, 0, nullptr, ReduceOp(spec.op)});
}

bool do_share(CollectiveKind kind, const CollectiveSpec& spec, const Slots& slots, int member) {
  const auto n = static_cast<int64_t>(slots.size());
  const int64_t bytes = spec.count * spec.element_size;
  auto* result = static_cast<char*>(slots[member].result);
  const auto op = static_cast<ReduceOp>(spec.op);
  switch (kind) {
    case CollectiveKind::kAllReduce:
      // Each combines its part for everybody.
      return reduce(ElementKind(spec.dtype), {slots, part_of(spec, member, n),
                                              part_of(spec, member + 1, n), 0, nullptr, op});
    case CollectiveKind::kReduceScatter:
      return reduce(ElementKind(spec.dtype),
                    {slots, 0, spec.count, spec.count * member, result, op});
    case CollectiveKind::kAllGather:
      for (int64_t m = 0; m < n; ++m) {
        if (result + m * bytes == slots[m].operand) continue;  // it came from elsewhere
        std::memcpy(result + m * bytes, slots[m].operand, bytes);
      }
      return true;
    case CollectiveKind::kAllToAll:
      for (int64_t m = 0; m < n; ++m) {
        if (slots[m].operand == nullptr) continue;  // it came from elsewhere
        std::memcpy(result + m * bytes, static_cast<const char*>(slots[m].operand) + member * bytes,
                    bytes);
      }
      return true;
    case CollectiveKind::kBroadcast:
      std::memcpy(result, slots[0].operand, bytes);
      return true;
    default:
      return false;
  }
}

void permute(const CollectiveSpec& spec, const Slots& slots, int me) {
  const int64_t bytes = spec.count * spec.element_size;
  for (int64_t pair = 0; pair < spec.groups; ++pair) {
    if (spec.members[2 * pair + 1] != me) continue;
    const void* operand = slots[spec.members[2 * pair]].operand;
    if (operand != nullptr) std::memcpy(slots[me].result, operand, bytes);  // else it came already
    return;
  }
  std::memset(slots[me].result, 0, bytes);
}

}  // namespace lamina
