// dispatch.h -- the queue of calls that run behind the caller's back.
#pragma once

#include <memory>

#include "core/program.h"
#include "core/shared.h"

namespace lamina {

// A queued call. `keepalive` (the Python executable) is dropped through drop_reference; `owner` is
// whatever else has the program.
struct LAMINA_SHARED Job {
  Call call;
  Ref<Completion> completion;
  void* keepalive = nullptr;
  std::shared_ptr<const void> owner;
  ~Job();
};

// Calls run one at a time, in order: an argument that an earlier call fills is ready by then.
LAMINA_SHARED void enqueue(std::unique_ptr<Job> job);

// False where so many calls wait that a caller is to wait, too, before the next.
LAMINA_SHARED bool queue_has_room();

// Runs a queued call where it may, else sleeps until one is done, but not for long.
LAMINA_SHARED void wait_for_room();

// Runs the next queued call on this thread where nobody else is running one and it is short.
LAMINA_SHARED bool help_with_queue();

// Marks this thread as running Python code for a program: calls from there run at once, since the
// queue moves on only when that program is done.
class CallbackScope {
 public:
  CallbackScope();
  ~CallbackScope();
  CallbackScope(const CallbackScope&) = delete;
};
LAMINA_SHARED bool inside_callback();

// Returns when every call enqueued before is done. Call without the GIL.
void drain_queue();

// Queued calls have no effects but their results: those that call Python run before they return.
// Where the queue is done within a moment, the dispatcher thread ends; else it goes on, and the
// process ends without waiting for it.
void stop_dispatcher();

// Whether the dispatcher thread is running a call or has calls to run.
bool dispatcher_is_busy();

}  // namespace lamina
