// event.h -- when something that was asked for is there, and whether it failed.
#pragma once

#include "core/completion.h"
#include "pjrt/abi.h"

namespace lamina::pjrt {

struct Event {
  Ref<Completion> completion;  // null: done
  bool of_buffer = false;      // asked for by who is about to wait for an array
};

inline Event* make_event(Completion* completion, bool of_buffer = false) {
  return new Event{Ref<Completion>::share(completion), of_buffer};
}
inline Event* make_done_event() { return new Event; }

// Sleeps until done, helping with queued calls; lets go of the GIL where this thread holds it.
void wait_until_done(const Completion& completion);

// Runs queued calls on this thread until that one is done or another thread is running one; only
// short ones.
void help_until_done(const Completion& completion);

}  // namespace lamina::pjrt
