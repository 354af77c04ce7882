// executable.h -- the Python type Executable: a Program that arrays are given to.
#pragma once

#include <vector>

#include "array.h"
#include "callback.h"
#include "leaf.h"
#include "program.h"

namespace lamina {

struct ExecutableObject {
  PyObject_HEAD Program* program;
  std::vector<Owned>* output_shapes;  // tuples, shared by the arrays of all calls
  PyObject* code;                     // keeps the machine code loaded
  PyObject* manifest;
  HostCallbacks* callbacks;  // null for programs without
  PyObject* weak_references;
  uint64_t calls;
};

extern PyTypeObject* executable_type;

bool init_executable(PyObject* module);

// Whether calls may be queued at all: set_async(false) makes every call run before it returns.
// Gives the old value.
bool set_async(bool enabled);

// Runs the executable on leaves that have its input types. Fills one Buffer per output, which may
// be pending. False with a Python error set.
bool execute(ExecutableObject* executable, const Leaf* leaves, size_t count,
             std::vector<Ref<Buffer>>* results);

// Runs the executable once on each of several devices that meet in its collectives. `arguments`
// holds a sequence of arrays for each device; gives a list of lists. Returns when all are done.
PyObject* execute_team(ExecutableObject* executable, PyObject* arguments);

// Output `index` as an Array.
PyObject* wrap_output(ExecutableObject* executable, size_t index, Ref<Buffer> buffer,
                      bool weak_type);

// Whether the leaf is what input `index` takes; sets TypeError where not.
bool check_input(const ExecutableObject* executable, size_t index, const Leaf& leaf);

}  // namespace lamina
