// callback.h -- Python functions that compiled programs call.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/program.h"
#include "core/python.h"

namespace lamina {

// One place in a program that calls Python: function(*ndarrays) gives a tuple of dense ndarrays
// with the bytes of `outputs`. `at` is where the user's code has it, for errors: "file.py:12:4 in
// f".
struct HostCallback {
  Owned function;
  std::vector<ArraySpec> inputs, outputs;
  std::string at;
};

// The callbacks of a program, which its code names by their index.
struct HostCallbacks {
  std::vector<HostCallback> all;
};

// Calls callback `index` of a program on arrays in memory of the host, from any thread, with or
// without the GIL. A result nobody reads may be null. Gives why it failed.
Error call_python(const Program& program, size_t index, void** args, void** results);

// A call that runs on the thread that made it, which nobody knows how long it keeps: a loop in it
// asks now and then whether it is to go on. Signals are seen to then, others get the GIL where the
// call holds it, and what a signal's handler raises ends the call.
class CallInPlace {
 public:
  explicit CallInPlace(bool holds_gil);
  ~CallInPlace();
  CallInPlace(const CallInPlace&) = delete;
  // Raises what a signal's handler raised, with the GIL; false where none did.
  bool raise();
  bool goes_on();

 private:
  CallInPlace* const outer_;
  const bool holds_gil_;
  int64_t next_look_ns_ = 0;
  PyObject* raised_ = nullptr;
};

// Raises what a failed call left: the class set by set_run_error_type with the message, and the
// exception that a callback raised as its cause.
void raise_run_error(const Error& error);
void set_run_error_type(PyObject* type);

}  // namespace lamina

extern "C" {
// Calls callback `index` of the running program. A result nobody reads may be null. Where it fails
// the running call fails, and code returns as soon as it asks lamina_failed.
void lamina_python_callback(int64_t index, void** args, void** results);
// Whether the running call has failed.
int32_t lamina_failed();
// The same, from within a loop that may run for long: there it may fail by a signal.
int32_t lamina_interrupted();
}
