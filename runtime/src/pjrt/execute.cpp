// execute.cpp -- one execution of a program: buffers to pointers, donation, now or queued.
#include <algorithm>
#include <cstring>
#include <memory>

#include "core/dispatch.h"
#include "core/recording.h"
#include "cpu/collective.h"
#include "pjrt/buffers.h"
#include "pjrt/event.h"
#include "pjrt/executables.h"
#include "pjrt/functions.h"
#include "pjrt/status.h"

namespace lamina::pjrt {
namespace {

using Content = Ref<lamina::Buffer>;

// What one device is given, and what it gives.
class DeviceCall {
 public:
  DeviceCall(const Compiled& compiled, Buffer* const* arguments, const ExecuteOptions& options)
      : compiled_(compiled), program_(*compiled.program), arguments_(arguments) {
    may_donate_.assign(program_.inputs.size(), true);
    for (size_t i = 0; i < options.num_non_donatable_input_indices; ++i) {
      const auto input = static_cast<size_t>(options.non_donatable_input_indices[i]);
      if (input < may_donate_.size()) may_donate_[input] = false;
    }
    hold_arguments();
    make_results();
  }

  // Whether it can run at once: nothing that it reads is still being made. Throws what failed.
  bool is_ready() const {
    for (const Content& content : args_) {
      const Completion* pending = content->pending();
      if (pending == nullptr) continue;
      if (!pending->done()) return false;
      if (pending->failed()) refuse(ErrorCode::kInternal, pending->error().message);
    }
    return true;
  }

  void wait_for_arguments() const {
    for (const Content& content : args_) {
      if (const Completion* pending = content->pending()) wait_until_done(*pending);
    }
  }

  // Runs it on this thread; all arguments are ready.
  lamina::Error run(const HostFunctions& functions) {
    realign();
    std::vector<void*> args(args_.size()), results(results_.size());
    for (size_t i = 0; i < args.size(); ++i) args[i] = args_[i]->data();
    for (size_t r = 0; r < results.size(); ++r) results[r] = results_[r]->data();
    for (const auto& [argument, result] : copies_) {
      std::memcpy(results[result], args[argument], program_.outputs[result].bytes);
      args[argument] = results[result];
    }
    return run_entry(program_, args.data(), results.data(), &functions);
  }

  // Puts it into the queue. Gives its completion.
  Ref<Completion> enqueue_call(std::shared_ptr<const void> owner) {
    realign_ready();
    auto job = std::make_unique<Job>();
    job->call.program = &program_;
    for (const Content& content : args_) {
      Completion* pending = content->pending();
      if (pending != nullptr && (!pending->done() || pending->failed())) {
        job->call.waits_for.push_back(Ref<Completion>::share(pending));
      }
    }
    job->completion = Ref<Completion>::steal(Completion::create());
    for (const Content& result : results_) result->set_pending(job->completion.get());
    job->call.args = std::move(args_);
    job->call.results = results_;
    job->call.copies = std::move(copies_);
    job->owner = std::move(owner);
    Ref<Completion> completion = job->completion;
    enqueue(std::move(job));
    return completion;
  }

  // The framework's buffers for the results; donated arguments are gone.
  void give_results(const Device* device, Buffer** places) {
    for (size_t i = 0; i < program_.inputs.size(); ++i) {
      if (compiled_.donated[i] && may_donate_[i]) arguments_[i]->drop();
    }
    for (size_t r = 0; r < results_.size(); ++r) {
      Memory* const memory = device->memories[static_cast<size_t>(compiled_.output_memories[r])];
      places[r] = new Buffer(std::move(results_[r]), compiled_.output_dtypes[r],
                             compiled_.output_dims[r], memory, compiled_.output_orders[r]);
    }
  }

 private:
  void hold_arguments() {
    const size_t count = program_.inputs.size();
    args_.reserve(count);
    for (size_t i = 0; i < count; ++i) {
      const ArraySpec& spec = program_.inputs[i];
      Buffer* const given = arguments_[i];
      const std::vector<int64_t>& dims = compiled_.input_dims[i];
      if (given->dtype != spec.dtype || given->dims != dims) {
        refuse(ErrorCode::kInvalidArgument, "[" + program_.name + "] argument " +
                                                std::to_string(i) + ": got " +
                                                describe_array(given->dtype, given->dims) +
                                                ", expected " + describe_array(spec.dtype, dims));
      }
      if (given->order != compiled_.input_orders[i]) {
        refuse(ErrorCode::kInvalidArgument,
               "[" + program_.name + "] argument " + std::to_string(i) + " has the layout " +
                   layout_text(given->order, dims.size()) + ", the program was compiled for " +
                   layout_text(compiled_.input_orders[i], dims.size()));
      }
      args_.push_back(given->held("argument of an execution"));
    }
    check_donations();
  }

  // A donated buffer may be no other argument, too.
  void check_donations() const {
    const auto donates = [this](size_t i) { return compiled_.donated[i] && may_donate_[i]; };
    std::vector<std::pair<const Buffer*, size_t>> places;
    bool any = false;
    for (size_t i = 0; i < args_.size(); ++i) any = any || donates(i);
    if (!any) return;
    for (size_t i = 0; i < args_.size(); ++i) places.emplace_back(arguments_[i], i);
    std::sort(places.begin(), places.end());
    for (size_t n = 1; n < places.size(); ++n) {
      const auto [before, i] = places[n - 1];
      const auto [given, j] = places[n];
      if (before != given || (!donates(i) && !donates(j))) continue;
      refuse(ErrorCode::kInvalidArgument,
             "Attempt to donate the same buffer twice in Execute(), or to use it in the call that "
             "it is donated to: arguments " +
                 std::to_string(i) + " and " + std::to_string(j) + " of " + program_.name +
                 ", as in `f(donate(a), a)`");
    }
  }

  static std::string describe_array(Dtype dtype, const std::vector<int64_t>& dims) {
    return describe(dtype, dims.data(), static_cast<int>(dims.size()));
  }

  // A donated input gives its memory up where nobody else can see it: one reference is the
  // framework's buffer's, one is ours.
  bool can_take_over(size_t input) {
    Buffer* const given = arguments_[input];
    if (!may_donate_[input] || !args_[input]->pooled()) return false;
    const std::lock_guard guard(given->lock);
    return given->external_references == 0 && args_[input]->refs() == 2 &&
           given->content.get() == args_[input].get() &&
           args_[input]->aligned_to(program_.inputs[input].alignment);
  }

  void make_results() {
    results_.reserve(program_.outputs.size());
    for (size_t r = 0; r < program_.outputs.size(); ++r) {
      const int donated = program_.alias_of[r];
      if (donated >= 0 && can_take_over(static_cast<size_t>(donated))) {
        results_.push_back(args_[static_cast<size_t>(donated)]);
        continue;
      }
      results_.push_back(Content::steal(lamina::Buffer::allocate(program_.outputs[r].bytes)));
      if (donated >= 0) copies_.emplace_back(donated, static_cast<int>(r));
    }
  }

  bool is_aligned(size_t i) const { return args_[i]->aligned_to(program_.inputs[i].alignment); }

  void realign() {
    for (size_t i = 0; i < args_.size(); ++i) {
      if (is_aligned(i)) continue;
      Content copy = Content::steal(lamina::Buffer::allocate(args_[i]->bytes()));
      std::memcpy(copy->data(), args_[i]->data(), args_[i]->bytes());
      args_[i] = std::move(copy);
    }
  }

  // Memory that is not aligned is somebody else's, who filled it before.
  void realign_ready() {
    for (size_t i = 0; i < args_.size(); ++i) {
      if (is_aligned(i)) continue;
      if (const Completion* pending = args_[i]->pending()) wait_until_done(*pending);
    }
    realign();
  }

  const Compiled& compiled_;
  const lamina::Program& program_;
  Buffer* const* arguments_;
  std::vector<bool> may_donate_;
  std::vector<Content> args_, results_;
  std::vector<std::pair<int, int>> copies_;  // (argument, result): donated, but not ours to take
};

// The Python functions that come with a call of a program that calls some.
HostFunctions functions_for(const Compiled& compiled, const LoadedExecutable_ExecuteArgs& args) {
  const ExecuteContext* const context = args.options->context;
  if (compiled.program->callbacks == nullptr || context == nullptr) return {};
  return context->functions();
}

void execute_on_one(const LoadedExecutable& executable, const LoadedExecutable_ExecuteArgs& args,
                    const Device* device) {
  const Compiled& compiled = *executable.compiled;
  DeviceCall call(compiled, args.argument_lists[0], *args.options);
  const bool calls_python = compiled.program->callbacks != nullptr;
  Ref<Completion> completion;
  // Callbacks print, log and raise: where the user wrote them, not some time later.
  if (calls_python) call.wait_for_arguments();
  const bool at_once = compiled.program->cheap || calls_python || inside_callback();
  if (at_once && call.is_ready()) {
    lamina::Error error = call.run(functions_for(compiled, args));
    if (!error.empty()) refuse(ErrorCode::kInternal, error.message);
  } else {
    while (!queue_has_room()) wait_for_room();
    completion = call.enqueue_call(executable.compiled);
  }
  call.give_results(device, args.output_lists[0]);
  if (args.device_complete_events != nullptr) {
    args.device_complete_events[0] = make_event(completion.get());
  }
}

struct TeamCall {
  std::vector<DeviceCall> devices;
  HostFunctions functions;
};

void execute_on_all(const LoadedExecutable& executable, const LoadedExecutable_ExecuteArgs& args) {
  const Compiled& compiled = *executable.compiled;
  TeamCall team{{}, functions_for(compiled, args)};
  team.devices.reserve(args.num_devices);
  for (size_t d = 0; d < args.num_devices; ++d) {
    team.devices.emplace_back(compiled, args.argument_lists[d], *args.options);
  }
  for (DeviceCall& call : team.devices) {
    call.wait_for_arguments();
    call.is_ready();
  }
  const lamina::Error error = run_team(
      compiled.name, lamina::Places(static_cast<int>(args.num_devices)),
      [](void* context, int device) {
        auto* const here = static_cast<TeamCall*>(context);
        return here->devices[static_cast<size_t>(device)].run(here->functions);
      },
      &team);
  if (!error.empty()) refuse(ErrorCode::kInternal, error.message);
  for (size_t d = 0; d < args.num_devices; ++d) {
    team.devices[d].give_results(executable.devices[d], args.output_lists[d]);
    if (args.device_complete_events != nullptr) args.device_complete_events[d] = make_done_event();
  }
}

}  // namespace

void loaded_executable_execute(LoadedExecutable_ExecuteArgs& args) {
  const LoadedExecutable& executable = *args.executable;
  if (executable.is_deleted) {
    refuse(ErrorCode::kFailedPrecondition, executable.compiled->name + " has been deleted");
  }
  if (args.num_args != executable.compiled->program->inputs.size()) {
    refuse(ErrorCode::kInvalidArgument,
           executable.compiled->name + " takes " +
               std::to_string(executable.compiled->program->inputs.size()) + " arguments, got " +
               std::to_string(args.num_args));
  }
  if (args.num_devices != executable.devices.size()) {
    refuse(ErrorCode::kInvalidArgument,
           executable.compiled->name + " is for " + std::to_string(executable.devices.size()) +
               " devices, not for " + std::to_string(args.num_devices));
  }
  if (is_recording()) time_kernels(*executable.compiled);
  if (args.num_devices == 1) {
    const Device* const device =
        args.execute_device != nullptr ? args.execute_device : executable.devices.front();
    execute_on_one(executable, args, device);
  } else {
    execute_on_all(executable, args);
  }
}

void execute_context_create(ExecuteContext_CreateArgs& args) { args.context = new ExecuteContext; }

void execute_context_destroy(ExecuteContext_DestroyArgs& args) { delete args.context; }

}  // namespace lamina::pjrt
