// collective.cpp -- see collective.h.
#include "cpu/collective.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "core/processes.h"
#include "cpu/collective_exchange.h"
#include "cpu/collective_shares.h"
#include "cpu/threads.h"

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

}  // namespace

// --- Meetings ------------------------------------------------------------------------------------

Team::Team(std::string program, const Places* places, int64_t timeout_ns)
    : program_(std::move(program)), places_(places), timeout_ns_(timeout_ns) {}

std::vector<Team::Slot>* Team::meet(const Group& group, int member, Slot slot) {
  std::unique_lock lock(mutex_);
  Meeting& meeting = this->meeting(group);
  meeting.slots.resize(group.size);
  meeting.slots[member] = slot;
  if (!wait(meeting, group, lock)) return nullptr;
  ++meeting.working;
  return &meeting.slots;
}

bool Team::meet_again(const Group& group) {
  std::unique_lock lock(mutex_);
  Meeting& meeting = this->meeting(group);
  if (--meeting.working == 0 && failed_) changed_.notify_all();
  if (!wait(meeting, group, lock)) return false;
  ++meeting.working;
  return true;
}

bool Team::leave(const Group& group) {
  std::unique_lock lock(mutex_);
  Meeting& meeting = this->meeting(group);
  if (--meeting.working == 0 && failed_) changed_.notify_all();
  return wait(meeting, group, lock);
}

bool Team::wait(Meeting& meeting, const Group& group, std::unique_lock<std::mutex>& lock) {
  if (wait_for_others(meeting, group, lock)) return true;
  // Those at work still write into this device's memory; nobody starts in a run that has failed.
  changed_.wait(lock, [&] { return meeting.working == 0; });
  return false;
}

bool Team::wait_for_others(Meeting& meeting, const Group& group,
                           std::unique_lock<std::mutex>& lock) {
  if (failed_) return false;
  if (++meeting.arrived == group.here) {
    meeting.arrived = 0;
    ++meeting.generation;
    changed_.notify_all();
    // Those that were let go are no longer waiting, though they have not woken yet.
    waiting_ -= group.here - 1;
    return true;
  }
  const int devices = static_cast<int>(places_->here().size());
  const uint64_t generation = meeting.generation;
  ++waiting_;
  if (waiting_ + done_ == devices) {
    fail_locked(
        Error{std::string("[") + group.what + "] " + std::to_string(done_) + " of " +
                  std::to_string(devices) + " devices of " + program_ +
                  " never came to it: the devices took different branches or made different "
                  "numbers of steps",
              nullptr, nullptr});
    return false;
  }
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::nanoseconds(timeout_ns_);
  while (meeting.generation == generation && !failed_) {
    if (changed_.wait_until(lock, deadline) == std::cv_status::timeout &&
        meeting.generation == generation) {
      fail_locked(Error{std::string("[") + group.what + "] of " + program_ + " waited " +
                            std::to_string(timeout_ns_ / 1000000) + " ms: " +
                            std::to_string(meeting.arrived) + " of " + std::to_string(group.here) +
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
  const int devices = static_cast<int>(places_->here().size());
  if (!failed_ && waiting_ > 0 && waiting_ + done_ == devices) {
    fail_locked(
        Error{"a collective of " + program_ + " waits for " + std::to_string(done_) + " of " +
                  std::to_string(devices) +
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

// --- Collectives that go on while their device computes
// --------------------------------------------

// What one device has begun, done by a thread of its own: collectives of a device are one after the
// other wherever they are done, so there is at most one.
class Background {
 public:
  struct Call {
    int32_t kind;
    const void* operand;
    void* result;
    const int64_t* words;
  };

  static Background& of_this_thread() {
    // Never destroyed, as the threads of devices are not: the thread behind it outlives statics.
    if (mine_ == nullptr || mine_->owner_ != getpid()) mine_ = new Background;
    return *mine_;
  }
  static Background* if_there() { return mine_; }

  void begin(Device* device, const Call& call) {
    {
      std::lock_guard lock(mutex_);
      team_ = device->team;
      index_ = device->index;
      call_ = call;
      busy_ = true;
    }
    changed_.notify_all();
  }

  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !busy_; });
  }

 private:
  Background() {
    std::thread([this] { main(); }).detach();
  }

  void main() {
    pthread_setname_np(pthread_self(), "lamina-collect");
    leave_cpu_while_waiting();
    for (;;) {
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return busy_; });
      }
      run();
      std::lock_guard lock(mutex_);
      busy_ = false;
      changed_.notify_all();
    }
  }

  void run() {
    Device here{team_, index_, {}};
    enter_device(&here);
    if (setjmp(here.exit) == 0) {
      lamina_collective(call_.kind, call_.operand, call_.result, call_.words);
    }
    enter_device(nullptr);
  }

  static thread_local Background* mine_;
  const pid_t owner_ = getpid();  // a forked child has no threads
  std::mutex mutex_;
  std::condition_variable changed_;
  bool busy_ = false;
  Team* team_ = nullptr;
  int index_ = 0;
  Call call_{};
};

thread_local Background* Background::mine_ = nullptr;

int count_here(const Places& places, const int64_t* members, int size) {
  int count = 0;
  for (int i = 0; i < size; ++i) count += places.is_here(static_cast<int>(members[i]));
  return count;
}

// Devices alone in their group, and programs that run on one device only.
bool alone(CollectiveKind kind, const CollectiveSpec& spec, const void* operand, void* result) {
  if (kind == CollectiveKind::kPermute || kind == CollectiveKind::kDeviceId) return false;
  std::memcpy(result, operand, spec.count * spec.element_size);
  return true;
}

}  // namespace

void end_collective() {
  if (Background* mine = Background::if_there()) mine->wait();
}

}  // namespace lamina

extern "C" void lamina_collective(int32_t kind_number, const void* operand, void* result,
                                  const int64_t* words) {
  using namespace lamina;
  const auto kind = static_cast<CollectiveKind>(kind_number);
  const char* const what = kCollectiveNames[kind_number];
  Device* const here = device;
  if (here != nullptr && here->begins) {
    here->begins = false;
    if (here->team->places().spans_processes()) {
      Background::of_this_thread().begin(here, {kind_number, operand, result, words});
      return;
    }
  }
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
    for (size = member + 1; size < spec.group_size;) {
      if (spec.members[group * spec.group_size + size] < 0) break;
      ++size;
    }
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
  const Places& places = here->team->places();
  Team::Group meeting{what, &spec, group, size, size};
  if (places.spans_processes()) {
    meeting.here = permutes ? static_cast<int>(places.here().size())
                            : count_here(places, spec.members + group * spec.group_size, size);
  }
  bool together = false, done = true;
  {
    auto* slots = here->team->meet(meeting, member, {operand, result});
    together = slots != nullptr;
    if (together && meeting.here < size) {
      together = share_with_others(here, kind, meeting, slots, member, &done);
    } else if (together && permutes) {
      permute(spec, *slots, me);
    } else if (together) {
      done = do_share(kind, spec, *slots, member);
    }
  }
  if (!done) {
    here->team->fail(std::string("[") + what + "] can't combine elements of this type so");
  }
  if (together) together = here->team->leave(meeting);
  if (!together) give_up(here);
}

extern "C" void lamina_collective_begin() {
  if (lamina::device != nullptr) lamina::device->begins = true;
}

extern "C" void lamina_collective_end() {
  using namespace lamina;
  Device* const here = device;
  if (here == nullptr) return;
  end_collective();
  if (here->team->has_failed()) give_up(here);
}
