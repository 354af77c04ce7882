// dispatch.cpp -- see dispatch.h.
//
// One thread runs the queue, started by the first call that needs it. A caller that blocks on a
// result takes over the running where the dispatcher has not woken yet: the usual call-and-wait
// then costs no thread switch. Only where the call is known to be short: a caller that waits looks
// for Ctrl-C, one that runs compiled code does not.
#include "core/dispatch.h"

#include <pthread.h>

#include <deque>
#include <mutex>

#include "core/leaving.h"
#include "core/platform.h"
#include "core/python.h"
#include "cpu/threads.h"

namespace lamina {
namespace {

constexpr size_t kMostWaiting = 64;
constexpr int64_t kMomentNs = 50'000'000;
constexpr int64_t kGraceNs = 15'000;  // what JAX takes from a call to the question for its result

thread_local int callback_depth = 0;
thread_local bool is_runner = false;  // holds run_mutex_

class Dispatcher {
 public:
  static Dispatcher& instance() {
    static Dispatcher* dispatcher = new Dispatcher;  // never destroyed: its thread outlives statics
    return *dispatcher;
  }

  void enqueue(std::unique_ptr<Job> job) {
    {
      std::lock_guard guard(lock_);
      queue_.push_back(std::move(job));
    }
    work_.fetch_add(1, std::memory_order_seq_cst);
    if (!running_thread_.load(std::memory_order_acquire)) start();
    if (sleeping_.load(std::memory_order_seq_cst) != 0) futex_wake_all(work_);
  }

  bool has_room() {
    if (inside_callback()) return true;  // the queue moves on when the callback is over
    std::lock_guard guard(lock_);
    return queue_.size() < kMostWaiting;
  }

  void wait_for_room() {
    if (help()) return;
    Ref<Completion> running;
    {
      std::lock_guard guard(lock_);
      running = running_;
    }
    if (running) running->wait(kMomentNs);
  }

  // Whoever holds run_mutex_ is the one running; order is kept because it is held across pop + run.
  bool help() {
    if (is_runner) return run_next();  // a callback that waits: what is queued behind its program
    std::unique_lock running(run_mutex_, std::try_to_lock);
    return running.owns_lock() && may_help() && run_as_runner();
  }

  void drain() {
    if (inside_callback()) return;  // its own program would have to end first
    const Ref<Completion> last = last_of_all();
    while (last && !last->done()) {
      if (!help()) last->wait(10'000'000);
    }
  }

  void stop() {
    const Ref<Completion> last = last_of_all();
    const int64_t until = now_ns() + kMomentNs;
    while (last && !last->done()) {
      const int64_t left = until - now_ns();
      if (left <= 0) return;
      last->wait(left);
    }
    std::lock_guard guard(start_mutex_);
    if (!running_thread_.load()) return;
    stopping_.store(true);
    work_.fetch_add(1, std::memory_order_seq_cst);
    futex_wake_all(work_);
    pthread_join(thread_, nullptr);
    stopping_.store(false);
    running_thread_.store(false);
  }

  bool is_busy() {
    if (!running_thread_.load()) return false;
    const Ref<Completion> last = last_of_all();
    return last && !last->done();
  }

 private:
  Dispatcher() {
    // Prepare handlers run last-registered first. Ours waits for the running call, which may need
    // the memory pool and the thread pool: theirs must be registered before.
    pool_stats();
    thread_count();
    pthread_atfork([] { instance().before_fork(); }, [] { instance().after_fork(); },
                   [] { instance().in_child(); });
  }

  // Where there is no dispatcher, in a forked child or for want of threads, whoever waits runs all.
  bool may_help() {
    if (!running_thread_.load(std::memory_order_acquire)) return true;
    std::lock_guard guard(lock_);
    return !queue_.empty() && queue_.front()->call.program->is_short();
  }

  bool run_next_alone() {
    const std::lock_guard running(run_mutex_);
    return run_as_runner();
  }

  bool run_as_runner() {
    is_runner = true;
    const bool ran = run_next();
    is_runner = false;
    return ran;
  }

  bool run_next() {
    std::unique_ptr<Job> job;
    {
      std::lock_guard guard(lock_);
      if (queue_.empty() || (inside_callback() && !ready(queue_.front()->call))) return false;
      job = std::move(queue_.front());
      queue_.pop_front();
      running_ = job->completion;
    }
    Error error = run_call(job->call);
    const Ref<Completion> completion = job->completion;
    job.reset();  // memory goes back before anyone is told: a caller in a loop finds it in the pool
    if (error.empty()) {
      completion->finish();
    } else {
      completion->fail(std::move(error));
    }
    return true;
  }

  static bool ready(const Call& call) {
    for (const auto& completion : call.waits_for) {
      if (!completion->done()) return false;
    }
    return true;
  }

  Ref<Completion> last_of_all() {
    std::lock_guard guard(lock_);
    return queue_.empty() ? running_ : queue_.back()->completion;
  }

  // Who makes one short call usually waits for it next, and then does it itself (`help`), which
  // costs no switch of threads: for so long it is left to them. Who makes a second does not wait.
  void leave_it_to_waiters() {
    if (thread_count() == 1) return;
    const int64_t until = now_ns() + kGraceNs;
    while (now_ns() < until) {
      {
        std::lock_guard guard(lock_);
        if (queue_.size() != 1 || !queue_.front()->call.program->is_short()) return;
      }
      for (int pause = 0; pause < 16; ++pause) cpu_relax();
    }
  }

  void start() {
    std::lock_guard guard(start_mutex_);
    if (running_thread_.load()) return;
    // Where no thread can be had, callers that wait run the queue themselves.
    if (pthread_create(&thread_, nullptr, &Dispatcher::main, this) == 0)
      running_thread_.store(true);
  }

  static void* main(void* argument) {
    Dispatcher& self = *static_cast<Dispatcher*>(argument);
    pthread_setname_np(pthread_self(), "lamina-dispatch");
    for (;;) {
      const uint32_t seen = self.work_.load(std::memory_order_seq_cst);
      while (self.run_next_alone()) {
      }
      if (self.stopping_.load()) return nullptr;
      self.sleeping_.store(1, std::memory_order_seq_cst);
      if (self.work_.load(std::memory_order_seq_cst) == seen) futex_wait(self.work_, seen);
      self.sleeping_.store(0, std::memory_order_seq_cst);
      self.leave_it_to_waiters();
    }
  }

  void before_fork() {
    start_mutex_.lock();
    if (!is_runner) run_mutex_.lock();  // no call is half done in the child
    lock_.lock();
  }
  void after_fork() {
    lock_.unlock();
    if (!is_runner) run_mutex_.unlock();
    start_mutex_.unlock();
  }
  // The child has the queue but no dispatcher: the next enqueue starts one, and whoever waits for
  // what is queued already runs it.
  void in_child() {
    running_thread_.store(false);
    sleeping_.store(0);
    forget_other_threads();
    after_fork();
  }

  SpinLock lock_;  // queue_ and running_
  std::deque<std::unique_ptr<Job>> queue_;
  Ref<Completion> running_;  // of the call taken last
  std::mutex run_mutex_;
  std::mutex start_mutex_;
  pthread_t thread_{};
  std::atomic<bool> running_thread_{false};
  std::atomic<bool> stopping_{false};
  std::atomic<uint32_t> work_{0};
  std::atomic<uint32_t> sleeping_{0};
};

}  // namespace

CallbackScope::CallbackScope() { ++callback_depth; }
CallbackScope::~CallbackScope() { --callback_depth; }
bool inside_callback() { return callback_depth != 0; }

Job::~Job() {
  if (keepalive != nullptr) drop_reference(keepalive);
}

void enqueue(std::unique_ptr<Job> job) { Dispatcher::instance().enqueue(std::move(job)); }
bool queue_has_room() { return Dispatcher::instance().has_room(); }
bool help_with_queue() { return Dispatcher::instance().help(); }
void drain_queue() { Dispatcher::instance().drain(); }
void stop_dispatcher() { Dispatcher::instance().stop(); }
void wait_for_room() { Dispatcher::instance().wait_for_room(); }
bool dispatcher_is_busy() { return Dispatcher::instance().is_busy(); }

}  // namespace lamina
