// leaving.cpp -- see leaving.h.
#include "leaving.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>

#include "dispatch.h"

namespace lamina {
namespace {

std::atomic<int> outside{0};
std::atomic<int> asleep{0};  // for ever, maybe with locks that destructors take
std::atomic<bool> leaving{false};
pthread_t leaver;

// Handlers run last-registered first: this one before the destructors of all that was loaded before
// the interpreter began to end.
void end_at_once(int code, void*) {
  if (outside.load() <= 0 && asleep.load() == 0 && !dispatcher_is_busy()) return;
  std::fflush(nullptr);
  _exit(code);
}

}  // namespace

OutsidePython::OutsidePython() { outside.fetch_add(1, std::memory_order_seq_cst); }
OutsidePython::~OutsidePython() { outside.fetch_sub(1, std::memory_order_seq_cst); }

void leave_python() {
  leaver = pthread_self();
  if (!leaving.exchange(true)) on_exit(end_at_once, nullptr);
}

bool python_leaves_without_me() { return leaving.load() && !pthread_equal(leaver, pthread_self()); }

void sleep_until_the_end() {
  asleep.fetch_add(1);
  for (;;) pause();
}

void forget_other_threads() {
  outside.store(0);
  asleep.store(0);
}

}  // namespace lamina
