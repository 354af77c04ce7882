// executables.h -- compiled programs: what the compiler in this process, which is Python, made.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/program.h"
#include "core/python.h"
#include "pjrt/abi.h"
#include "pjrt/devices.h"
#include "pjrt/strides.h"

namespace lamina::pjrt {

// Byte strings in the form that the framework wants them in.
struct Texts {
  std::vector<const char*> data;
  std::vector<size_t> sizes;
};

// A compiled program with all that the framework asks of it; read off a CompiledProgram of
// lamina.jax_plugin.compiler once, so that no call needs Python.
struct Compiled {
  ~Compiled();

  PyObject* object = nullptr;                // the CompiledProgram
  const lamina::Program* program = nullptr;  // which it keeps loaded
  std::string name, fingerprint, compile_options;
  int replicas = 1, partitions = 1;
  std::vector<int> device_ids;  // replica by replica; empty: the framework says with each call
  std::vector<Dtype> output_dtypes;
  std::vector<std::vector<int64_t>> output_dims, input_dims;  // the framework's
  std::vector<DimensionOrder> output_orders, input_orders;    // in memory
  std::vector<int> output_memories, input_memories;           // kinds
  std::vector<bool> is_token;                                 // per output
  std::vector<bool> donated;  // per input: gone after a call, even if no result took its memory
  std::vector<std::string> input_shardings, output_shardings;  // of programs over several devices
  // In the forms that the framework wants them in.
  std::vector<BufferType> output_types;
  std::vector<int64_t> flat_output_dims;
  std::vector<size_t> output_ranks;
  std::vector<const char*> output_kind_names, input_kind_names;
  std::vector<size_t> output_kind_sizes, input_kind_sizes;
  Texts input_sharding_texts, output_sharding_texts;
  std::vector<std::string> cost_names;
  std::vector<NamedValue> costs;
  mutable std::atomic<bool> has_timed_kernels{false};
  int64_t argument_bytes = 0, output_bytes = 0, alias_bytes = 0, temp_bytes = 0, code_bytes = 0;
};

// Lets the calls of the program's kernels be timed while a profiler records.
void time_kernels(const Compiled& compiled);

struct Executable {
  std::shared_ptr<const Compiled> compiled;
};

struct LoadedExecutable {
  std::shared_ptr<const Compiled> compiled;
  Client* client;
  std::vector<Device*> devices;  // one for each replica of each partition
  std::vector<LogicalDeviceIds> logical_ids;
  std::string device_assignment;  // as a DeviceAssignmentProto
  std::atomic<bool> is_deleted{false};
};

// What the framework gives an execution: data of types that it has numbers for.
struct ExecuteContext {
  std::vector<std::pair<int64_t, const void*>> user_data;

  // The Python functions of the program, which JAX gives to those that have some, and nothing else
  // beside them: the number of their type is another in each jaxlib. Throws where there is more.
  HostFunctions functions() const;
};

}  // namespace lamina::pjrt
