// program.h -- a program for a GPU: its loaded kernels and the plan of what to launch.
// The plan is described in backends/cuda/launch_plan.py.
#pragma once

#include <functional>
#include <list>
#include <string>
#include <vector>

#include "cuda/device.h"
#include "cuda/library.h"
#include "cuda/nccl.h"

namespace lamina::cuda {

// A tensor of which a kernel copies boxes; dimensions from the innermost out, `strides` without it.
struct TensorMap {
  size_t parameter = 0;  // whose address it lies at, `offset` bytes further
  uint64_t offset = 0;
  int type = 0;
  std::vector<unsigned long long> sizes, strides;
  std::vector<unsigned> box;
};

struct Launch {
  Handle function = nullptr;
  std::string name;
  unsigned grid[3] = {1, 1, 1}, block[3] = {1, 1, 1}, shared_bytes = 0;
  std::vector<TensorMap> maps;
};

// What is launched for one kernel of the program, in order, on the same buffers.
struct Kernel {
  std::vector<Launch> launches;
  std::unique_ptr<LibraryCall> library;  // what is done instead, if there is one
};

enum class Space : uint8_t { kArgument, kResult, kArena, kConstant, kNowhere };

struct Place {
  Space space;
  uint64_t where;  // a number, or an offset
};

struct Step {
  enum Kind : uint8_t {
    kLaunch,
    kCopy,
    kFill,
    kIf,
    kSwitch,
    kWhile,
    kCall,
    kCollective
  } kind = kLaunch;
  size_t kernel = 0;          // or a Python function's number
  std::vector<Place> places;  // a kernel's buffers; source and target; target; what decides
  std::vector<size_t> sizes;  // in bytes, of what a function takes and gives
  size_t inputs = 0;          // how many of those it takes; they come first
  size_t bytes = 0;           // of a copy, a fill, what a switch reads
  unsigned element = 0, element_bytes = 0;
  // then, else; the cases and then the default; condition, body
  std::vector<std::vector<Step>> bodies;
  Collective collective;  // whose operand and result are the places
  std::string name, at;   // for errors
};

// Where the buffers of one call are.
struct Addresses {
  std::vector<Address> arguments, results;
  Address arena = 0, constants = 0;

  Address of(const Place& place) const {
    switch (place.space) {
      case Space::kArgument:
        return arguments[place.where];
      case Space::kResult:
        return results[place.where];
      case Space::kArena:
        return arena + place.where;
      case Space::kNowhere:
        return 0;
      default:
        return constants + place.where;
    }
  }
  bool operator==(const Addresses&) const = default;
};

// "of kernel fused_add_0 at model.py:12 in f".
std::string about(const Step& step);

// What launches of a kernel are given, and pointers to it as the driver wants them.
class Parameters {
 public:
  Parameters(const Step& step, const Addresses& addresses, uint64_t scratch);
  // For one of them: the addresses, and the tensor maps that it wants. Throws CudaError.
  void** of(const Launch& launch);

 private:
  std::vector<Address> values_;
  std::vector<void*> pointers_;
  std::vector<TensorMapBits> maps_;
};

// Milliseconds of a kernel on memory of its own, and of the library in its place.
struct Timings {
  float kernel = 0, library = 0;
};
// Throws CudaError, OutOfMemory. `scratch_bytes` is what the kernel takes. Call in the device.
Timings time_both(Device& device, const Kernel& kernel, LibraryCall& library,
                  const LibraryProduct& product, size_t scratch_bytes);

class Graph;

// What the devices of a run agree on before they issue it: given the number of a graph that this
// one has for it (0: none), gives it where all have that one, else 0.
using Agreement = std::function<uint64_t(uint64_t graph)>;

// Calls the Python function of a step on memory of the host; null for results that nobody reads.
// Throws what ends the program.
using HostCall = std::function<void(const Step& step, void** inputs, void** outputs)>;

struct Program {
  Device* device = nullptr;
  uint64_t generation = 0;  // of the driver, when it was loaded
  std::string name;
  std::vector<Handle> modules;
  std::vector<Kernel> kernels;
  std::vector<Step> steps;
  Ref<Buffer> constants;
  size_t arena_bytes = 0, scratch = 0;
  size_t workspace = 0;      // of library calls: where it begins in the arena
  size_t launches = 0;       // in `steps`, those in loops once
  bool decides = false;      // whether there is control flow in it
  bool calls_host = false;   // whether it calls Python: it is issued step by step
  bool synchronous = false;  // wait after each step, so that errors name it
  bool use_graphs = true;
  Clique* clique = nullptr;  // the devices that run it together, of which this is one
  int position = 0;
  bool meets = false;            // there are collectives in it
  bool meets_in_bodies = false;  // of its control flow
  std::shared_ptr<Watch> watch;  // of the run that is issued
  uint64_t aborts = 0;           // of the clique, when the graphs were made
  uint64_t runs = 0;
  std::list<Graph> graphs;  // those used last come first

  Program() = default;
  Program(const Program&) = delete;
  ~Program();

  // Issues a kernel that is a library call.
  void issue_library(const Step& step, const Addresses& addresses, Handle stream);
  void issue_collective(const Step& step, const Addresses& addresses, Handle stream);
  // Waits for what is issued on the stream.
  void wait(Handle stream, const Step& step);
  // Issues one run. Call with a Turn. Throws CudaError, OutOfMemory, and what `host` does. `agree`
  // is there where devices run it together.
  void issue(const Addresses& addresses, const HostCall& host, const Agreement& agree);
};

// A program as a graph that the driver launches at once, for one set of addresses.
class Graph {
 public:
  // `number` tells graphs of a program apart. Throws CudaError.
  Graph(Program& program, const Addresses& addresses, uint64_t number);
  Graph(Graph&& other) noexcept;
  ~Graph();

  const Addresses& addresses() const { return addresses_; }
  uint64_t number() const { return number_; }
  // Lets it work at other addresses. False where that can't be: make a new one.
  bool update(Program& program, const Addresses& addresses);
  void launch(Handle stream);

 private:
  struct Node {
    const Step* step;
    const Launch* launch;  // null for what a library issues
    Handle node;
  };
  void add(Handle graph, const std::vector<Step>& steps, Handle* last);
  void add_launches(Handle graph, const Step& step, Handle* last);
  // A graph of what a library issues for a step, for the caller to destroy.
  static Handle capture(Program& program, const Step& step, const Addresses& addresses);
  void add_captured(Handle graph, const Step& step, Handle* last);
  void add_branches(Handle graph, const Step& step, Handle* last);
  void add_while(Handle graph, const Step& step, Handle* last);
  ConditionalHandle make_handle(Handle graph);
  // Sets the handle to whether what decides is within low..high, or outside.
  void add_decision(Handle graph, const Step& step, ConditionalHandle handle, int64_t low,
                    int64_t high, bool outside, Handle* last);
  Handle add_conditional(Handle graph, int type, ConditionalHandle handle, Handle* last);

  Program* program_;
  Addresses addresses_;
  uint64_t number_;
  Handle graph_ = nullptr, exec_ = nullptr;
  std::vector<Node> nodes_;  // with addresses of arguments, results or the arena
};

}  // namespace lamina::cuda
