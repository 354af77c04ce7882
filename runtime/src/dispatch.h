// dispatch.h -- the queue of calls that run behind the caller's back.
#pragma once

#include <memory>

#include "program.h"

namespace lamina {

// A queued call. `keepalive` (the Python executable) is dropped through drop_reference.
struct Job {
  Call call;
  Ref<Completion> completion;
  void* keepalive = nullptr;
  ~Job();
};

// Calls run one at a time, in order: an argument that an earlier call fills is ready by then.
// Blocks where too many are waiting; call without the GIL.
void enqueue(std::unique_ptr<Job> job);

// True where fewer calls wait than enqueue blocks on.
bool queue_has_room();

// Runs the next queued call on this thread where nobody else is running one and it is short.
bool help_with_queue();

// Marks this thread as running Python code for a program: calls from there run at once, since the
// queue moves on only when that program is done.
class CallbackScope {
 public:
  CallbackScope();
  ~CallbackScope();
  CallbackScope(const CallbackScope&) = delete;
};
bool inside_callback();

// Returns when every call enqueued before is done. Call without the GIL.
void drain_queue();

// Drains, and lets the dispatcher thread end.
void stop_dispatcher();

}  // namespace lamina
