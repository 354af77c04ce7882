// leaving.cpp -- see leaving.h.
#include "core/leaving.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <memory>

#include "core/dispatch.h"

// Of glibc's interface, though its headers give only macros that open and close a scope.
extern "C" {
void _pthread_cleanup_push(_pthread_cleanup_buffer* buffer, void (*handler)(void*), void* argument);
void _pthread_cleanup_pop(_pthread_cleanup_buffer* buffer, int run);
}

namespace lamina {
namespace {

std::atomic<int> inside{0};  // threads in native code
thread_local int depth = 0;
thread_local std::unique_ptr<_pthread_cleanup_buffer> handler;
std::atomic<bool> leaving{false};
pthread_t leaver;

// Handlers run last-registered first: this one before the destructors of all that was loaded before
// the interpreter began to end.
void end_at_once(int code, void*) {
  if (inside.load() <= 0 && !dispatcher_is_busy()) return;
  std::fflush(nullptr);
  _exit(code);
}

}  // namespace

// pthread_exit runs a handler when it unwinds a frame above (inside of) the handler's buffer on the
// stack. One whose buffer is on no stack is run before the first.
void InNativeCode::enter() {
  if (depth++ > 0) return;
  inside.fetch_add(1, std::memory_order_seq_cst);
  if (!handler) handler = std::make_unique<_pthread_cleanup_buffer>();
  _pthread_cleanup_push(handler.get(), [](void*) { sleep_until_the_end(); }, nullptr);
}

void InNativeCode::leave() {
  if (--depth > 0) return;
  _pthread_cleanup_pop(handler.get(), 0);
  inside.fetch_sub(1, std::memory_order_seq_cst);
}

void leave_python() {
  leaver = pthread_self();
  if (!leaving.exchange(true)) on_exit(end_at_once, nullptr);
}

bool python_leaves_without_me() { return leaving.load() && !pthread_equal(leaver, pthread_self()); }

void sleep_until_the_end() {
  for (;;) pause();
}

void forget_other_threads() { inside.store(depth > 0 ? 1 : 0); }

}  // namespace lamina
