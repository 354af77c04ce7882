// completion.cpp -- see completion.h.
#include "completion.h"

#include "platform.h"

namespace lamina {

void Completion::finish() {
  state_.store(kDone, std::memory_order_release);
  futex_wake_all(state_);
}

void Completion::fail(std::string message) {
  error_ = std::move(message);
  state_.store(kFailed, std::memory_order_release);
  futex_wake_all(state_);
}

void Completion::wait(int64_t timeout_ns) const {
  if (!done()) futex_wait(state_, kPending, timeout_ns);
}

}  // namespace lamina
