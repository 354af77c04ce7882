// collective.cpp -- see collective.h.
#include "collective.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "collective_shares.h"
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

// --- The way of compiled code --------------------------------------------------------------------

namespace {

[[noreturn]] void give_up(Device* here) { std::longjmp(here->exit, 1); }

// Devices alone in their group, and programs that run on one device only.
bool alone(CollectiveKind kind, const CollectiveSpec& spec, const void* operand, void* result) {
  if (kind == CollectiveKind::kPermute || kind == CollectiveKind::kDeviceId) return false;
  std::memcpy(result, operand, spec.count * spec.element_size);
  return true;
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
