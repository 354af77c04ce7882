// completion.cpp -- see completion.h.
#include "completion.h"

#include "platform.h"

namespace lamina {

void Completion::finish() {
  state_.store(kDone, std::memory_order_release);
  futex_wake_all(state_);
}

void Completion::fail(Error error) {
  error_ = std::move(error);
  if (!error_.reported) error_.reported = std::make_shared<std::atomic<bool>>(false);
  state_.store(kFailed, std::memory_order_release);
  futex_wake_all(state_);
}

void Completion::wait(int64_t timeout_ns) const {
  if (!done()) futex_wait(state_, kPending, timeout_ns);
}

}  // namespace lamina
