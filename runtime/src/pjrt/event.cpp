// event.cpp -- see event.h.
#include "pjrt/event.h"

#include <memory>
#include <optional>

#include "core/dispatch.h"
#include "core/python.h"
#include "pjrt/functions.h"
#include "pjrt/status.h"

namespace lamina::pjrt {
namespace {

constexpr int64_t kMomentNs = 10'000'000;

const Completion* pending(const Event* event) {
  const Completion* completion = event->completion.get();
  return completion != nullptr && !completion->done() ? completion : nullptr;
}

Error* error_of(const Event* event) {
  const Completion* completion = event->completion.get();
  if (completion == nullptr || !completion->failed()) return nullptr;
  return make_error(completion->error());
}

void throw_error_of(const Event* event) {
  const std::unique_ptr<Error> error(error_of(event));
  if (error) refuse(error->code, error->message);
}

struct Continuation {
  Ref<Completion> completion;
  void (*callback)(Error*, void*);
  void* user_arg;
};

}  // namespace

namespace {

// Calls wait() without the GIL until it says to stop or the completion is done.
template <typename Wait>
void until_done(const Completion& completion, const Wait& wait) {
  if (completion.done()) return;
  std::optional<WithoutGil> unlocked;
  if (Py_IsInitialized() && PyGILState_Check()) unlocked.emplace();
  while (!completion.done() && wait()) {
  }
}

}  // namespace

void wait_until_done(const Completion& completion) {
  until_done(completion, [&] {
    if (!help_with_queue()) completion.wait(kMomentNs);
    return true;
  });
}

void help_until_done(const Completion& completion) {
  until_done(completion, [] { return help_with_queue(); });
}

void event_destroy(Event_DestroyArgs& args) { delete args.event; }

void event_is_ready(Event_IsReadyArgs& args) { args.is_ready = pending(args.event) == nullptr; }

void event_error(Event_ErrorArgs& args) { throw_error_of(args.event); }

void event_await(Event_AwaitArgs& args) {
  if (const Completion* completion = pending(args.event)) wait_until_done(*completion);
  throw_error_of(args.event);
}

void event_on_ready(Event_OnReadyArgs& args) {
  Completion* completion = args.event->completion.get();
  if (completion == nullptr) return args.callback(nullptr, args.user_arg);
  // Who asks this of an array is about to wait for it: where the call that makes it is short and no
  // thread has begun, this one does it, which saves two switches of threads.
  if (args.event->of_buffer) help_until_done(*completion);
  auto* const continuation = new Continuation{args.event->completion, args.callback, args.user_arg};
  completion->when_done(
      [](void* context) {
        const std::unique_ptr<Continuation> here(static_cast<Continuation*>(context));
        Error* error = here->completion->failed() ? make_error(here->completion->error()) : nullptr;
        here->callback(error, here->user_arg);
      },
      continuation);
}

void event_create(Event_CreateArgs& args) {
  args.event = new Event{Ref<Completion>::steal(Completion::create())};
}

void event_set(Event_SetArgs& args) {
  if (pending(args.event) == nullptr) {
    refuse(ErrorCode::kFailedPrecondition, "the event is set already");
  }
  if (args.error_code == ErrorCode::kOk) return args.event->completion->finish();
  args.event->completion->fail(
      {std::string(args.error_message, args.error_message_size), nullptr, nullptr});
}

}  // namespace lamina::pjrt
