// executable.h -- the Python type Executable: a Program that arrays are given to.
#pragma once

#include <vector>

#include "core/array.h"
#include "core/callback.h"
#include "core/leaf.h"
#include "core/program.h"

namespace lamina {

class Places;

namespace cuda {
struct Program;
}

struct ExecutableObject {
  PyObject_HEAD Program* program;
  std::vector<Owned>* output_shapes;  // tuples, shared by the arrays of all calls
  PyObject* code;                     // keeps the machine code loaded
  PyObject* timed_code;               // the same of the program's timed entry, or null
  PyObject* manifest;
  HostCallbacks* callbacks;       // null for programs without
  cuda::Program* device_program;  // null for programs for the CPU
  PyObject* weak_references;
  uint64_t calls;
};

extern PyTypeObject* executable_type;

// The name of capsules with a cuda::Program, which an Executable takes over.
inline constexpr const char* kDeviceProgram = "lamina.device_program";

bool init_executable(PyObject* module);

// The program of an Executable; null with TypeError set for other objects.
LAMINA_SHARED const Program* program_of(PyObject* executable);

// Whether calls may be queued at all: set_async(false) makes every call run before it returns.
// Gives the old value.
bool set_async(bool enabled);

// Runs the executable on leaves that have its input types. Fills one Buffer per output, which may
// be pending. False with a Python error set.
bool execute(ExecutableObject* executable, const Leaf* leaves, size_t count,
             std::vector<Ref<Buffer>>* results);

// Runs the executable once on each of several devices that meet in its collectives. `arguments`
// holds a sequence of arrays for each device that is here; gives a list of lists. Returns when all
// of these are done. Without places, all devices are here.
PyObject* execute_team(ExecutableObject* executable, PyObject* arguments, const Places* places);

// The same for programs of the GPUs of a mesh, of which each device has one, loaded for its
// position. Returns when they are issued.
PyObject* execute_clique(PyObject* executables, PyObject* arguments, const Places* places);

// Output `index` as an Array under a sharding, or null.
PyObject* wrap_output(ExecutableObject* executable, size_t index, Ref<Buffer> buffer,
                      bool weak_type, PyObject* placement = nullptr);

// The sharding that results of a call have: that of an argument which somebody placed on one
// device. Null for none.
Owned placement_of_results(const ExecutableObject* executable, const Leaf* leaves, size_t count);

// Whether the leaf is what input `index` takes; sets TypeError where not.
bool check_input(const ExecutableObject* executable, size_t index, const Leaf& leaf);

}  // namespace lamina
