// program.cpp -- see program.h.
#include "core/program.h"

#include <algorithm>
#include <cstring>
#include <exception>

#include "core/platform.h"
#include "core/recording.h"
#include "cpu/collective.h"
#include "cpu/threads.h"

namespace lamina {

namespace {

thread_local const Program* running = nullptr;
thread_local const HostFunctions* running_with = nullptr;

class RunningScope {
 public:
  RunningScope(const Program* program, const HostFunctions* functions)
      : outer_(running), outer_with_(running_with) {
    running = program;
    running_with = functions;
  }
  ~RunningScope() {
    running = outer_;
    running_with = outer_with_;
  }
  RunningScope(const RunningScope&) = delete;

 private:
  const Program* outer_;
  const HostFunctions* outer_with_;
};

constexpr int kMeasuredCalls = 4;
constexpr int64_t kTooLongNs = 1'000'000;
constexpr int kLongCallDebt = 1000;  // paid back by as many short calls

// A device whose team has failed leaves the program from within a collective: generated code has
// nothing to clean up.
void enter(const Program& program, void** args, void** results, void* arena) {
  Device* const device = current_device();
  if (device != nullptr && setjmp(device->exit) != 0) return;
  const Entry timed =
      is_recording() ? program.timed_entry.load(std::memory_order_acquire) : nullptr;
  (timed != nullptr ? timed : program.entry)(args, results, arena);
}

// Runs the entry and learns whether calls are cheap: from the best of the first calls (a busy
// machine only makes them longer), and later from two of a thousand calls that held their caller
// up, since the trip count of a loop may depend on the data. One may have been preempted.
void run_and_learn(const Program& program, void** args, void** results, void* arena) {
  const bool learning = program.callbacks == nullptr &&
                        program.measured.load(std::memory_order_relaxed) < kMeasuredCalls;
  const bool cheap = program.cheap.load(std::memory_order_relaxed);
  const RecordedScope recorded(program.name);
  const int64_t start = now_ns();
  enter(program, args, results, arena);
  const int64_t elapsed = now_ns() - start;
  if (!cheap) {
    const int64_t longest = program.longest_ns.load(std::memory_order_relaxed);
    program.longest_ns.store(std::max(elapsed, longest - longest / 8), std::memory_order_relaxed);
  }
  if (!learning && !cheap) return;
  if (!learning) {
    const int debt = program.long_call_debt.load(std::memory_order_relaxed);
    if (elapsed > kTooLongNs) {
      program.long_call_debt.store(kLongCallDebt);
      if (debt > 0) program.cheap.store(false);
    } else if (debt > 0) {
      program.long_call_debt.store(debt - 1, std::memory_order_relaxed);
    }
    return;
  }
  const int64_t best = std::min(program.best_ns.load(), elapsed);
  program.best_ns.store(best);
  if (program.measured.fetch_add(1) + 1 == kMeasuredCalls) {
    program.cheap.store(best < kCheapNs && !program.is_large);
  }
}

}  // namespace

const Program* running_program() { return running; }
const HostFunctions* running_functions() { return running_with; }

Error run_entry(const Program& program, void** args, void** results,
                const HostFunctions* functions) {
  try {
    Ref<Buffer> arena;
    if (program.arena_bytes > 0) arena = Ref<Buffer>::steal(Buffer::allocate(program.arena_bytes));
    Failure failure;
    {
      const FailureScope scope(&failure);
      const RunningScope now(&program, functions);
      const FlushDenormals flush;
      run_and_learn(program, args, results, arena ? arena->data() : nullptr);
    }
    return failure.failed() ? failure.error() : Error();
  } catch (const OutOfMemory& error) {
    return {"out of memory: " + std::to_string(error.bytes) + " bytes for the temporaries of " +
                program.name,
            nullptr, nullptr};
  } catch (const std::exception& error) {
    return {error.what(), nullptr, nullptr};
  }
}

Error run_call(const Call& call) {
  const Program& program = *call.program;
  for (const auto& completion : call.waits_for) {
    if (completion->failed()) return completion->error();
  }
  std::vector<void*> args(call.args.size()), results(call.results.size());
  for (size_t i = 0; i < args.size(); ++i) args[i] = call.args[i]->data();
  for (size_t i = 0; i < results.size(); ++i) results[i] = call.results[i]->data();
  for (const auto& [argument, result] : call.copies) {
    std::memcpy(results[result], args[argument], program.outputs[result].bytes);
    args[argument] = results[result];
  }
  return run_entry(program, args.data(), results.data());
}

}  // namespace lamina
