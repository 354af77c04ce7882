// threads.h -- the thread pool that compiled kernels run their parallel loops on.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "core/completion.h"
#include "core/shared.h"

namespace lamina {

// Where code that cannot return an error leaves one: the first message of a call wins.
class Failure {
 public:
  void set(Error error);
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  const Error& error() const { return error_; }

 private:
  std::mutex mutex_;
  std::atomic<bool> failed_{false};
  Error error_;
};

// Makes `failure` the place for lamina_fail on this thread, and on workers that help it.
class FailureScope {
 public:
  explicit FailureScope(Failure* failure);
  ~FailureScope();
  FailureScope(const FailureScope&) = delete;

 private:
  Failure* outer_;
};

// What lamina_fail does, with a cause; and whether it was done in this call.
void fail_current(Error error);
bool current_call_failed();

int thread_count();
// 0 goes back to the default. Waits for the loop that is running.
void set_thread_count(int count);
// Threads alive now, the caller's not counted: none before the first parallel loop.
int worker_count();

// lamina_parallel_for for loops that one place in the code runs in many sizes: `loop` tells them
// apart, so that what is learned of one does not count for another.
void parallel_for(void (*task)(void* context, int64_t lo, int64_t hi), void* context, int64_t n,
                  int64_t grain, uintptr_t loop);

}  // namespace lamina

extern "C" {
// task(ctx, lo, hi) over [0, n) in pieces of at least `grain`, on this thread and the pool's.
// Runs inline where n <= grain, inside another task, while another thread holds the pool, or where
// sharing loops of this place in the code has not paid lately.
LAMINA_SHARED void lamina_parallel_for(void (*task)(void* ctx, int64_t lo, int64_t hi), void* ctx,
                                       int64_t n, int64_t grain);
// The running call fails with this text.
void lamina_fail(const char* message);
}
