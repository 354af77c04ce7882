// recording.cpp -- see recording.h.
//
// Each thread writes into a list of its own, which outlives it; a lock that nobody else asks for
// but who collects keeps the list whole.
#include "core/recording.h"

#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <ctime>
#include <map>
#include <memory>
#include <mutex>

#include "core/platform.h"

namespace lamina {
namespace {

constexpr size_t kMostCalls = 1'000'000;  // of one thread: 24 MB

struct OfThread {
  SpinLock lock;
  RecordedThread record;
};

std::atomic<int> recordings{0};
thread_local std::shared_ptr<OfThread> of_thread;
std::mutex mutex;       // of what follows
int64_t forked_ns = 0;  // when this process began, if it is a fork of another

std::vector<std::shared_ptr<OfThread>>& threads() {
  static auto* const all = new std::vector<std::shared_ptr<OfThread>>;
  return *all;
}

using Names =
    std::map<std::pair<std::string, std::vector<std::pair<std::string, std::string>>>, int64_t>;
Names& numbers() {
  static auto* const all = new Names;
  return *all;
}

int64_t epoch_ns() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * int64_t{1'000'000'000} + now.tv_nsec;
}

OfThread& of_this_thread() {
  if (of_thread == nullptr) {
    of_thread = std::make_shared<OfThread>();
    of_thread->record.id = syscall(SYS_gettid);
    char name[16] = {};
    prctl(PR_GET_NAME, name);
    of_thread->record.name = name;
    const std::lock_guard guard(mutex);
    threads().push_back(of_thread);
  }
  return *of_thread;
}

void keep(int64_t name, int64_t begin_ns) {
  OfThread& own = of_this_thread();
  const int64_t end_ns = epoch_ns();
  const std::lock_guard guard(own.lock);
  if (own.record.calls.size() < kMostCalls) {
    own.record.calls.push_back({name, begin_ns, end_ns});
  } else {
    ++own.record.lost;
  }
}

// Lists of threads that are gone, and what nobody will ask for any more.
void clear() {
  std::erase_if(threads(), [](const auto& thread) { return thread.use_count() == 1; });
  for (const auto& thread : threads()) {
    const std::lock_guard guard(thread->lock);
    thread->record.calls = {};
    thread->record.lost = 0;
  }
}

// A forked child records nothing of what its parent does. The lists of threads that it does not
// have stay as they are, since a thread may have been writing.
void forget_parent() {
  recordings.store(0);
  new auto(std::move(threads()));
  threads().clear();
  of_thread.reset();
  forked_ns = epoch_ns();
  mutex.unlock();
}

// Registered before any other, so that this lock, under which no other is asked for, is taken last.
[[maybe_unused]] const int at_fork =
    pthread_atfork([] { mutex.lock(); }, [] { mutex.unlock(); }, forget_parent);

}  // namespace

bool is_recording() { return recordings.load(std::memory_order_relaxed) != 0; }

int64_t begin_recording() {
  const std::lock_guard guard(mutex);
  if (recordings.load() == 0) clear();
  recordings.fetch_add(1);
  return epoch_ns();
}

Recording end_recording(int64_t begin_ns) {
  const std::lock_guard guard(mutex);
  if (begin_ns < forked_ns) return {};  // the parent's
  Recording result;
  for (const auto& thread : threads()) {
    const std::lock_guard own(thread->lock);
    RecordedThread copy{thread->record.id, thread->record.name, {}, thread->record.lost};
    for (const RecordedCall& call : thread->record.calls) {
      if (call.begin_ns >= begin_ns) copy.calls.push_back(call);
    }
    if (!copy.calls.empty()) result.threads.push_back(std::move(copy));
  }
  result.names.resize(numbers().size());
  for (const auto& [name, number] : numbers()) {
    result.names[static_cast<size_t>(number)] = {name.first, name.second};
  }
  if (recordings.fetch_sub(1) == 1) clear();
  return result;
}

int64_t recorded_name(RecordedName name) {
  const std::lock_guard guard(mutex);
  const auto next = static_cast<int64_t>(numbers().size());
  std::pair key(std::move(name.name), std::move(name.details));
  return numbers().try_emplace(std::move(key), next).first->second;
}

RecordedScope::RecordedScope(const std::string& name)
    : name_(name), begin_ns_(is_recording() ? epoch_ns() : 0) {}

RecordedScope::~RecordedScope() {
  if (begin_ns_ != 0 && is_recording()) keep(recorded_name({name_, {}}), begin_ns_);
}

}  // namespace lamina

int64_t lamina_record_begin() { return lamina::epoch_ns(); }

void lamina_record_end(int64_t name, int64_t begin_ns) {
  if (lamina::is_recording()) lamina::keep(name, begin_ns);
}
