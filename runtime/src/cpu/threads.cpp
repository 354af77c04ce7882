// threads.cpp -- see threads.h.
//
// Workers spin for a short while after each loop, then sleep on a futex. A loop never waits for a
// sleeper: each participant owns a range of chunks and steals from the others when it is done, and
// a worker that wakes after the last chunk was taken finds the gate closed. A loop that would have
// been over sooner without them runs without them (sharing.h).
#include "cpu/threads.h"

#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <vector>

#include "core/platform.h"
#include "cpu/sharing.h"

namespace lamina {
namespace {

constexpr int kMaxThreads = 256;
constexpr int64_t kSpinNs = 25'000;
constexpr int64_t kChunksPerThread = 4;

thread_local bool inside_task = false;
thread_local Failure* current_failure = nullptr;

struct alignas(64) Range {
  std::atomic<int64_t> next{0};
  int64_t end = 0;
};

struct Loop {
  void (*task)(void*, int64_t, int64_t) = nullptr;
  void* context = nullptr;
  int64_t n = 0;
  int64_t chunk = 0;
  int participants = 0;
  uint64_t fp_control = 0;  // workers compute as the caller does
  Failure* failure = nullptr;
};

struct alignas(64) Worker {
  std::atomic<uint32_t> epoch{0};
  std::atomic<uint32_t> sleeping{0};
  pthread_t thread{};
  std::atomic<int> tid{0};
  std::atomic<int> cpu{-1};
  int id = 0;
};

class ThreadPool {
 public:
  static ThreadPool& instance() {
    static ThreadPool* pool = new ThreadPool;  // never destroyed: workers outlive every static
    return *pool;
  }

  void run(void (*task)(void*, int64_t, int64_t), void* context, int64_t n, int64_t grain,
           uintptr_t loop) {
    if (n <= 0) return;
    grain = std::max<int64_t>(grain, 1);
    if (n <= grain || inside_task || count() == 1) {
      task(context, 0, n);
      return;
    }
    Sharing& sharing = accounts_.of(loop, n);
    if (!sharing.is_worthwhile()) {
      const int64_t begin = now_ns();
      task(context, 0, n);
      sharing.was_alone(now_ns() - begin);
      return;
    }
    if (!mutex_.try_lock()) {
      task(context, 0, n);
      return;
    }
    std::lock_guard guard(mutex_, std::adopt_lock);
    start_workers();
    const int64_t pieces = (n + grain - 1) / grain;
    const auto participants = static_cast<int>(std::min(threads(), pieces));
    const int64_t chunks = participants * kChunksPerThread;
    loop_ = {task, context, n, std::max(grain, (n + chunks - 1) / chunks), participants};
    run_loop(sharing);
  }

  int count() const { return count_.load(std::memory_order_relaxed); }

  void set_count(int count) {
    std::lock_guard guard(mutex_);
    stop_workers();
    accounts_.forget();
    count_.store(std::clamp(count > 0 ? count : initial_count(), 1, kMaxThreads));
  }

  int workers() {
    std::lock_guard guard(mutex_);
    return static_cast<int>(workers_.size());
  }

 private:
  static constexpr uint32_t kOpen = 1u << 31;

  ThreadPool() : count_(initial_count()), ranges_(kMaxThreads) {
    pthread_atfork([] { instance().mutex_.lock(); }, [] { instance().mutex_.unlock(); },
                   [] { instance().forget_workers(); });
  }

  static int initial_count() {
    if (const char* text = std::getenv("LAMINA_NUM_THREADS")) {
      if (const int wanted = std::atoi(text); wanted > 0) return std::min(wanted, kMaxThreads);
    }
    return std::min(default_thread_count(), kMaxThreads);
  }

  void start_workers() {
    const size_t wanted = static_cast<size_t>(count()) - 1;
    if (workers_.size() == wanted) return;
    const std::vector<int> cpus = allowed_cpus();
    placed_ = cpus.size() > wanted;
    stopping_.store(false, std::memory_order_relaxed);
    while (workers_.size() < wanted) {
      auto worker = std::make_unique<Worker>();
      worker->id = static_cast<int>(workers_.size()) + 1;
      if (placed_) worker->cpu = cpus[worker->id];
      if (pthread_create(&worker->thread, nullptr, &ThreadPool::main, worker.get()) != 0) {
        // The system grants no more threads: go on with those there are.
        count_.store(static_cast<int>(workers_.size()) + 1);
        return;
      }
      workers_.push_back(std::move(worker));
    }
  }

  void stop_workers() {
    stopping_.store(true, std::memory_order_seq_cst);
    for (auto& worker : workers_) wake(*worker);
    for (auto& worker : workers_) pthread_join(worker->thread, nullptr);
    workers_.clear();
  }

  // In a forked child only the calling thread lives on. Its Worker records are left to leak: a
  // stale futex word must not be freed under a thread that the parent still has.
  void forget_workers() {
    for (auto& worker : workers_) worker.release();
    workers_.clear();
    accounts_.forget();  // its machine may be as busy as the two are
    gate_.store(0);
    mutex_.unlock();
  }

  int64_t threads() const { return static_cast<int64_t>(workers_.size()) + 1; }

  // Runs loop_ with the mutex held.
  void run_loop(Sharing& sharing) {
    const int64_t begin = now_ns();
    loop_.fp_control = fp_control();
    loop_.failure = current_failure;
    const int64_t chunks = (loop_.n + loop_.chunk - 1) / loop_.chunk;
    for (int i = 0; i < loop_.participants; ++i) {
      ranges_[i].next.store(chunks * i / loop_.participants, std::memory_order_relaxed);
      ranges_[i].end = chunks * (i + 1) / loop_.participants;
    }
    move_worker_off_my_cpu();
    gate_.store(kOpen, std::memory_order_seq_cst);
    for (int i = 1; i < loop_.participants; ++i) wake(*workers_[i - 1]);
    inside_task = true;
    const int64_t mine_begin = now_ns();
    const int64_t mine = take_chunks(0);
    const int64_t mine_ns = now_ns() - mine_begin;
    inside_task = false;
    // Closed first, then wait for those inside: nobody enters a loop that is over.
    gate_.fetch_and(~kOpen, std::memory_order_acq_rel);
    for (int spins = 0; gate_.load(std::memory_order_acquire) != 0; ++spins) {
      cpu_relax();
      if (spins % 4096 == 4095) sched_yield();
    }
    sharing.was_shared(now_ns() - begin, mine_ns, mine, chunks);
  }

  static void place(Worker& worker, int cpu) {
    const int tid = worker.tid.load(std::memory_order_acquire);
    if (tid == 0) return;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(tid, sizeof set, &set) == 0) worker.cpu = cpu;
  }

  // Two participants on one core make a loop a hundred times slower, and the kernel may leave them
  // there for milliseconds. The caller may wander, so workers are pinned and step aside.
  void move_worker_off_my_cpu() {
    if (!placed_) return;
    const int here = sched_getcpu();
    for (auto& worker : workers_) {
      if (worker->cpu != here) continue;
      for (const int cpu : allowed_cpus()) {
        const bool taken = cpu == here || std::any_of(workers_.begin(), workers_.end(),
                                                      [&](auto& w) { return w->cpu == cpu; });
        if (!taken) {
          place(*worker, cpu);
          break;
        }
      }
      return;
    }
  }

  static void wake(Worker& worker) {
    worker.epoch.fetch_add(1, std::memory_order_seq_cst);
    if (worker.sleeping.load(std::memory_order_seq_cst) != 0) futex_wake_all(worker.epoch);
  }

  // How many it took.
  int64_t take_chunks(int first) {
    const int participants = loop_.participants;
    int64_t taken = 0;
    for (int i = 0; i < participants; ++i) {
      Range& range = ranges_[(first + i) % participants];
      while (range.next.load(std::memory_order_relaxed) < range.end) {
        const int64_t chunk = range.next.fetch_add(1, std::memory_order_relaxed);
        if (chunk >= range.end) break;
        const int64_t lo = chunk * loop_.chunk;
        loop_.task(loop_.context, lo, std::min(loop_.n, lo + loop_.chunk));
        ++taken;
      }
    }
    return taken;
  }

  bool enter() {
    uint32_t gate = gate_.load(std::memory_order_acquire);
    while ((gate & kOpen) != 0) {
      if (gate_.compare_exchange_weak(gate, gate + 1, std::memory_order_acq_rel)) return true;
    }
    return false;
  }

  void help(int id) {
    if (!enter()) return;
    if (id < loop_.participants) {
      set_fp_control(loop_.fp_control);
      current_failure = loop_.failure;
      take_chunks(id);
    }
    gate_.fetch_sub(1, std::memory_order_acq_rel);
  }

  static void* main(void* argument) {
    Worker& worker = *static_cast<Worker*>(argument);
    ThreadPool& pool = instance();
    pthread_setname_np(pthread_self(), "lamina-worker");
    worker.tid.store(static_cast<int>(syscall(SYS_gettid)), std::memory_order_release);
    if (worker.cpu >= 0) place(worker, worker.cpu);
    inside_task = true;
    uint32_t seen = 0;
    for (;;) {
      seen = pool.next_epoch(worker, seen);
      if (pool.stopping_.load(std::memory_order_seq_cst)) return nullptr;
      pool.help(worker.id);
    }
  }

  static uint32_t next_epoch(Worker& worker, uint32_t seen) {
    const int64_t deadline = now_ns() + kSpinNs;
    for (int spins = 1;; ++spins) {
      if (const uint32_t now = worker.epoch.load(std::memory_order_acquire); now != seen)
        return now;
      cpu_relax();
      if (spins % 32 == 0 && now_ns() > deadline) break;
    }
    worker.sleeping.store(1, std::memory_order_seq_cst);
    uint32_t now = 0;
    while ((now = worker.epoch.load(std::memory_order_seq_cst)) == seen) {
      futex_wait(worker.epoch, seen);
    }
    worker.sleeping.store(0, std::memory_order_relaxed);
    return now;
  }

  std::atomic<int> count_;
  std::mutex mutex_;  // held by the thread whose loop is running
  Loop loop_;
  std::vector<Range> ranges_;
  Accounts accounts_;
  alignas(64) std::atomic<uint32_t> gate_{0};  // kOpen | workers inside
  std::vector<std::unique_ptr<Worker>> workers_;
  std::atomic<bool> stopping_{false};
  bool placed_ = false;
};

}  // namespace

void Failure::set(Error error) {
  std::lock_guard guard(mutex_);
  if (failed()) return;
  error_ = std::move(error);
  failed_.store(true, std::memory_order_release);
}

FailureScope::FailureScope(Failure* failure) : outer_(current_failure) {
  current_failure = failure;
}
FailureScope::~FailureScope() { current_failure = outer_; }

void fail_current(Error error) {
  if (current_failure != nullptr) current_failure->set(std::move(error));
}
bool current_call_failed() { return current_failure != nullptr && current_failure->failed(); }

int thread_count() { return ThreadPool::instance().count(); }
void set_thread_count(int count) { ThreadPool::instance().set_count(count); }
int worker_count() { return ThreadPool::instance().workers(); }

void parallel_for(void (*task)(void*, int64_t, int64_t), void* context, int64_t n, int64_t grain,
                  uintptr_t loop) {
  ThreadPool::instance().run(task, context, n, grain, loop);
}

}  // namespace lamina

extern "C" {
void lamina_parallel_for(void (*task)(void*, int64_t, int64_t), void* ctx, int64_t n,
                         int64_t grain) {
  const auto caller = reinterpret_cast<uintptr_t>(__builtin_return_address(0));
  lamina::parallel_for(task, ctx, n, grain, caller);
}

void lamina_fail(const char* message) { lamina::fail_current({message, nullptr, nullptr}); }
}
