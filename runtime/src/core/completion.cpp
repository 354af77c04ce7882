// completion.cpp -- see completion.h.
#include "core/completion.h"

#include <time.h>

#include <mutex>

#include "core/platform.h"

namespace lamina {
namespace {

constexpr int64_t kSpinNs = 100'000, kSleepNs = 20'000;

std::mutex asking;  // of the step from pending to over, which several threads may see

// In the place of the list of continuations once they have been called.
void* const kCalled = &asking;

}  // namespace

Completion* Completion::of(std::unique_ptr<Completable> asked) {
  auto* completion = new Completion;
  completion->asked_ = std::move(asked);
  return completion;
}

bool Completion::ask() const {
  Error error;
  if (!asked_->over(&error)) return false;
  auto* self = const_cast<Completion*>(this);
  const std::lock_guard guard(asking);
  if (state_.load(std::memory_order_acquire) != kPending) return true;
  if (error.empty()) {
    self->finish();
  } else {
    self->fail(std::move(error));
  }
  return true;
}

void Completion::finish() {
  state_.store(kDone, std::memory_order_release);
  futex_wake_all(state_);
  continue_others();
}

void Completion::fail(Error error) {
  error_ = std::move(error);
  if (!error_.reported) error_.reported = std::make_shared<std::atomic<bool>>(false);
  state_.store(kFailed, std::memory_order_release);
  futex_wake_all(state_);
  continue_others();
}

void Completion::when_done(void (*then)(void*), void* context) {
  auto* const added = new Continuation{then, context, continuations_.load()};
  while (added->next != kCalled) {
    if (continuations_.compare_exchange_weak(added->next, added)) return;
  }
  delete added;
  then(context);
}

void Completion::continue_others() {
  Continuation* list = continuations_.exchange(static_cast<Continuation*>(kCalled));
  Continuation* ordered = nullptr;  // as they were added
  while (list != nullptr && list != kCalled) {
    Continuation* const next = list->next;
    list->next = ordered;
    ordered = list;
    list = next;
  }
  while (ordered != nullptr) {
    const std::unique_ptr<Continuation> here(ordered);
    ordered = here->next;
    here->then(here->context);
  }
}

void Completion::wait(int64_t timeout_ns) const {
  if (asked_ != nullptr) {
    const int64_t start = now_ns();
    for (int64_t waited = 0; !done() && waited < timeout_ns; waited = now_ns() - start) {
      const timespec pause{0, kSleepNs};
      if (waited < kSpinNs) {
        cpu_relax();
      } else {
        nanosleep(&pause, nullptr);
      }
    }
    return;
  }
  if (!done()) futex_wait(state_, kPending, timeout_ns);
}

}  // namespace lamina
