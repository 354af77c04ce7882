// collective.cpp -- see collective.h.
#include "collective.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <complex>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "half.h"
#include "threads.h"

namespace lamina {
namespace {

constexpr double kDefaultTimeout = 600;

double initial_timeout() {
  const char* text = std::getenv("LAMINA_COLLECTIVE_TIMEOUT");
  const double seconds = text == nullptr ? 0 : std::atof(text);
  return seconds > 0 ? seconds : kDefaultTimeout;
}

std::atomic<int64_t> timeout_ns{static_cast<int64_t>(initial_timeout() * 1e9)};
thread_local Device* device = nullptr;

const char* const kNames[] = {"all_reduce",  "reduce_scatter",     "all_gather",
                              "all_to_all",  "collective_permute", "collective_broadcast",
                              "partition_id"};

}  // namespace

// --- Meetings ------------------------------------------------------------------------------------

Team::Team(std::string program, int size, int64_t timeout_ns)
    : program_(std::move(program)), size_(size), timeout_ns_(timeout_ns) {}

const std::vector<Team::Slot>* Team::meet(const char* what, const CollectiveSpec* spec,
                                          int64_t group, int member, int size, Slot slot) {
  std::unique_lock lock(mutex_);
  Meeting& meeting = meetings_[{spec, group}];
  meeting.slots.resize(size);
  meeting.slots[member] = slot;
  if (!wait(meeting, what, size, lock)) return nullptr;
  ++meeting.working;
  return &meeting.slots;
}

bool Team::leave(const char* what, const CollectiveSpec* spec, int64_t group, int size) {
  std::unique_lock lock(mutex_);
  Meeting& meeting = meetings_[{spec, group}];
  if (--meeting.working == 0 && failed_) changed_.notify_all();
  return wait(meeting, what, size, lock);
}

bool Team::wait(Meeting& meeting, const char* what, int size, std::unique_lock<std::mutex>& lock) {
  if (wait_for_others(meeting, what, size, lock)) return true;
  // Those at work still write into this device's memory; nobody starts in a run that has failed.
  changed_.wait(lock, [&] { return meeting.working == 0; });
  return false;
}

bool Team::wait_for_others(Meeting& meeting, const char* what, int size,
                           std::unique_lock<std::mutex>& lock) {
  if (failed_) return false;
  if (++meeting.arrived == size) {
    meeting.arrived = 0;
    ++meeting.generation;
    changed_.notify_all();
    // Those that were let go are no longer waiting, though they have not woken yet.
    waiting_ -= size - 1;
    return true;
  }
  const uint64_t generation = meeting.generation;
  ++waiting_;
  if (waiting_ + done_ == size_) {
    fail_locked(
        Error{std::string("[") + what + "] " + std::to_string(done_) + " of " +
                  std::to_string(size_) + " devices of " + program_ +
                  " never came to it: the devices took different branches or made different "
                  "numbers of steps",
              nullptr, nullptr});
    return false;
  }
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::nanoseconds(timeout_ns_);
  while (meeting.generation == generation && !failed_) {
    if (changed_.wait_until(lock, deadline) == std::cv_status::timeout &&
        meeting.generation == generation) {
      fail_locked(Error{std::string("[") + what + "] of " + program_ + " waited " +
                            std::to_string(timeout_ns_ / 1000000) + " ms: " +
                            std::to_string(meeting.arrived) + " of " + std::to_string(size) +
                            " devices have come (LAMINA_COLLECTIVE_TIMEOUT sets the seconds)",
                        nullptr, nullptr});
    }
  }
  return !failed_;
}

void Team::fail_locked(Error error) {
  if (!failed_) {
    error_ = std::move(error);
    failed_ = true;
  }
  changed_.notify_all();
}

void Team::fail(Error error) {
  std::lock_guard lock(mutex_);
  fail_locked(std::move(error));
}

void Team::finished() {
  std::lock_guard lock(mutex_);
  ++done_;
  if (!failed_ && waiting_ > 0 && waiting_ + done_ == size_) {
    fail_locked(
        Error{"a collective of " + program_ + " waits for " + std::to_string(done_) + " of " +
                  std::to_string(size_) +
                  " devices that have come to the end: the devices took different branches or made "
                  "different numbers of steps",
              nullptr, nullptr});
  }
}

Device* current_device() { return device; }

void set_collective_timeout(double seconds) {
  timeout_ns.store(static_cast<int64_t>((seconds > 0 ? seconds : kDefaultTimeout) * 1e9));
}

void enter_device(Device* entered) { device = entered; }
int64_t collective_timeout_ns() { return timeout_ns.load(); }

// --- Reductions ----------------------------------------------------------------------------------

namespace {

using Slots = std::vector<Team::Slot>;

// Elements [lo, hi) of the operands, shifted by `shift` elements, combined in the group's order.
// All results get them, or only `result` where it is not null.
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
      for (const Team::Slot& slot : job.slots) static_cast<uint16_t*>(slot.result)[i] = rounded;
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

// --- One device's share --------------------------------------------------------------------------

bool do_share(CollectiveKind kind, const CollectiveSpec& spec, const Slots& slots, int member) {
  const auto n = static_cast<int64_t>(slots.size());
  const int64_t bytes = spec.count * spec.element_size;
  auto* result = static_cast<char*>(slots[member].result);
  const auto op = static_cast<ReduceOp>(spec.op);
  switch (kind) {
    case CollectiveKind::kAllReduce:
      // Each combines its part for everybody.
      return reduce(ElementKind(spec.dtype), {slots, spec.count * member / n,
                                              spec.count * (member + 1) / n, 0, nullptr, op});
    case CollectiveKind::kReduceScatter:
      return reduce(ElementKind(spec.dtype),
                    {slots, 0, spec.count, spec.count * member, result, op});
    case CollectiveKind::kAllGather:
      for (int64_t m = 0; m < n; ++m) std::memcpy(result + m * bytes, slots[m].operand, bytes);
      return true;
    case CollectiveKind::kAllToAll:
      for (int64_t m = 0; m < n; ++m) {
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

[[noreturn]] void give_up(Device* here) { std::longjmp(here->exit, 1); }

// Devices alone in their group, and programs that run on one device only.
bool alone(CollectiveKind kind, const CollectiveSpec& spec, const void* operand, void* result) {
  if (kind == CollectiveKind::kPermute || kind == CollectiveKind::kDeviceId) return false;
  std::memcpy(result, operand, spec.count * spec.element_size);
  return true;
}

void permute(const CollectiveSpec& spec, const Slots& slots, int me) {
  const int64_t bytes = spec.count * spec.element_size;
  for (int64_t pair = 0; pair < spec.groups; ++pair) {
    if (spec.members[2 * pair + 1] != me) continue;
    std::memcpy(slots[me].result, slots[spec.members[2 * pair]].operand, bytes);
    return;
  }
  std::memset(slots[me].result, 0, bytes);
}

}  // namespace
}  // namespace lamina

extern "C" void lamina_collective(int32_t kind_number, const void* operand, void* result,
                                  const int64_t* words) {
  using namespace lamina;
  const auto kind = static_cast<CollectiveKind>(kind_number);
  const char* const what = kNames[kind_number];
  Device* const here = device;
  const int me = here == nullptr ? 0 : here->index;
  const int devices = here == nullptr ? 1 : here->team->size();
  if (kind == CollectiveKind::kDeviceId) {
    const auto id = static_cast<uint32_t>(me);
    std::memcpy(result, &id, sizeof id);
    return;
  }
  const auto& spec = *reinterpret_cast<const CollectiveSpec*>(words);
  const bool permutes = kind == CollectiveKind::kPermute;
  const int64_t members = permutes ? 2 * spec.groups : spec.groups * spec.group_size;
  for (int64_t i = 0; i < members; ++i) {
    if (spec.members[i] < devices) continue;
    const std::string message = std::string("[") + what + "] names device " +
                                std::to_string(spec.members[i]) + ", and the program runs on " +
                                std::to_string(devices);
    lamina_fail(message.c_str());
    if (here == nullptr) return;
    here->team->fail(message);
    give_up(here);
  }
  // Where this device stands: everybody is one group in a permutation.
  int64_t group = permutes ? 0 : -1;
  int member = me, size = devices;
  for (int64_t i = 0; group < 0 && i < members; ++i) {
    if (spec.members[i] != me) continue;
    group = i / spec.group_size;
    member = static_cast<int>(i % spec.group_size);
    size = static_cast<int>(spec.group_size);
  }
  if (group < 0) {  // nothing arrives here
    std::memset(result, 0, spec.count * spec.element_size);
    return;
  }
  if (size == 1) {
    if (alone(kind, spec, operand, result)) return;
    permute(spec, {{operand, result}}, 0);
    return;
  }
  bool together = false, done = true;
  {
    const auto* slots = here->team->meet(what, &spec, group, member, size, {operand, result});
    together = slots != nullptr;
    if (together && permutes) permute(spec, *slots, me);
    if (together && !permutes) done = do_share(kind, spec, *slots, member);
  }
  if (!done) {
    here->team->fail(std::string("[") + what + "] can't combine elements of this type so");
  }
  if (together) together = here->team->leave(what, &spec, group, size);
  if (!together) give_up(here);
}
