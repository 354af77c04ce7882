// event.h -- when something that was asked for is there, and whether it failed.
#pragma once

#include "../completion.h"
#include "abi.h"

namespace lamina::pjrt {

struct Event {
  Ref<Completion> completion;  // null: done
};

inline Event* make_event(Completion* completion) {
  return new Event{Ref<Completion>::share(completion)};
}
inline Event* make_done_event() { return new Event; }

// Sleeps until done, helping with queued calls; lets go of the GIL where this thread holds it.
void wait_until_done(const Completion& completion);

}  // namespace lamina::pjrt
