// program.cpp -- see program.h.
#include "program.h"

#include <cstring>
#include <exception>

#include "platform.h"
#include "threads.h"

namespace lamina {

std::string run_entry(const Program& program, void** args, void** results) {
  try {
    Ref<Buffer> arena;
    if (program.arena_bytes > 0) arena = Ref<Buffer>::steal(Buffer::allocate(program.arena_bytes));
    Failure failure;
    {
      const FailureScope scope(&failure);
      const FlushDenormals flush;
      program.entry(args, results, arena ? arena->data() : nullptr);
    }
    return failure.failed() ? failure.message() : std::string();
  } catch (const OutOfMemory& error) {
    return "out of memory: " + std::to_string(error.bytes) + " bytes for the temporaries of " +
           program.name;
  } catch (const std::exception& error) {
    return error.what();
  }
}

std::string run_call(const Call& call) {
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
