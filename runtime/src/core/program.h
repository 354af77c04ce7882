// program.h -- a loaded executable without Python: its entry, its signature, and one run of it.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "core/buffer.h"
#include "core/dtypes.h"
#include "core/shared.h"

namespace lamina {

struct ArraySpec {
  Dtype dtype = kNoDtype;
  std::vector<int64_t> dims;
  size_t bytes = 0;
  size_t alignment = 1;
};

// The entry point of compiled code; see "Kernel ABI".
using Entry = void (*)(void** args, void** results, void* arena);

struct HostCallbacks;

// Python functions that come with a call rather than with the program; whoever makes the call keeps
// them alive until it is over.
struct HostFunctions {
  void* const* functions = nullptr;
  size_t count = 0;
  // The same as handlers of XLA's foreign function interface ask for it: the number that XLA has
  // for the type, and where the two above lie.
  int64_t type = 0;
  const void* data = nullptr;
};

struct Program {
  std::string name;
  Entry entry = nullptr;
  // The same with a time for each kernel, while a profiler records; null before one asked for it.
  std::atomic<Entry> timed_entry{nullptr};
  std::vector<ArraySpec> inputs, outputs;
  std::vector<int> alias_of;  // per output: the donated input whose memory it is, or -1
  size_t arena_bytes = 0;
  // A call may take long, whatever those before took: it has a branch that does much, or a loop of
  // which nobody knows how many steps it does, which asks lamina_interrupted now and then.
  bool is_large = false;
  bool loops_for_long = false;
  // Programs that call Python are never cheap: all of them wait in one queue, which keeps their
  // effects in order.
  const HostCallbacks* callbacks = nullptr;
  // Whether a call is not worth handing over to another thread: estimated first, then measured.
  mutable std::atomic<bool> cheap{false};
  mutable std::atomic<int> measured{0};
  mutable std::atomic<int> long_call_debt{0};
  mutable std::atomic<int64_t> best_ns{INT64_MAX};
  mutable std::atomic<int64_t> longest_ns{0};  // lately, if not cheap; 0 before the first

  // Whether calls have been over soon: a thread that runs the next can wait with what else is asked
  // of it, such as to see Ctrl-C. A long one is forgotten after some that are not: it may have been
  // preempted.
  bool is_short() const {
    const int64_t longest = longest_ns.load(std::memory_order_relaxed);
    return !is_large && !loops_for_long && longest > 0 && longest < kShortNs;
  }
  // A program is large whose dearest branches are estimated to take so long.
  static constexpr double kLargeSeconds = 2.0;
  static constexpr int64_t kShortNs = 5'000'000;
};

// Calls below this run before they return.
inline constexpr int64_t kCheapNs = 20'000;

// One call on its way: everything a run needs, owned.
struct Call {
  const Program* program = nullptr;
  std::vector<Ref<Buffer>> args;
  std::vector<Ref<Buffer>> results;
  std::vector<std::pair<int, int>> copies;  // (argument, result): donated, but not ours to take
  std::vector<Ref<Completion>> waits_for;   // of arguments; queued earlier, so done when this runs
};

// Runs compiled code on this thread: args and results as the entry wants them. Gives the reason of
// a failure, or an empty error. Never throws.
LAMINA_SHARED Error run_entry(const Program& program, void** args, void** results,
                              const HostFunctions* functions = nullptr);

// The same for a queued call: an argument that failed fails it.
Error run_call(const Call& call);

// The program whose code this thread is in.
const Program* running_program();
// The functions that its call came with, or null.
const HostFunctions* running_functions();

}  // namespace lamina
