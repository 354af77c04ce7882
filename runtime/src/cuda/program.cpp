// program.cpp -- see program.h.
#include "cuda/program.h"

#include <cstring>

namespace lamina::cuda {
namespace {

constexpr size_t kFewLaunches = 3;  // are as fast one by one as in a graph
constexpr size_t kMostGraphs = 4;

// Copies of a function's arguments and results in pinned memory, one behind the other.
class Staged {
 public:
  Staged(Device& device, const std::vector<size_t>& sizes) : device_(device) {
    for (const size_t size : sizes) {
      offsets_.push_back(bytes_);
      bytes_ += (size + kAligned - 1) / kAligned * kAligned;
    }
    block_ = device.take_pinned(bytes_);
  }
  // Nothing is on its way any more, unless something failed.
  ~Staged() {
    if (busy) driver().stream_synchronize(device_.compute());
    device_.give_pinned(block_, bytes_);
  }
  Staged(const Staged&) = delete;

  void* at(size_t number) const { return static_cast<char*>(block_) + offsets_[number]; }

  bool busy = false;  // there are copies from it or to it

 private:
  static constexpr size_t kAligned = 64;
  Device& device_;
  std::vector<size_t> offsets_;
  size_t bytes_ = 0;
  void* block_ = nullptr;
};

// Issues steps one by one on the device's stream.
class Issuer {
 public:
  Issuer(Program& program, const Addresses& addresses, const HostCall& host)
      : program_(program), addresses_(addresses), host_(host), stream_(program.device->compute()) {}

  void run(const std::vector<Step>& steps) {
    for (const Step& step : steps) {
      run(step);
      if (program_.synchronous) program_.wait(stream_, step);
    }
  }

 private:
  void run(const Step& step) {
    switch (step.kind) {
      case Step::kLaunch:
        return launch(step);
      case Step::kCopy:
        return check(cuda_.copy_on_device(addresses_.of(step.places[1]),
                                          addresses_.of(step.places[0]), step.bytes, stream_),
                     "cuMemcpyDtoDAsync");
      case Step::kFill:
        return fill(step);
      case Step::kIf:
        return run(step.bodies[decide(step) != 0 ? 0 : 1]);
      case Step::kSwitch: {
        const auto cases = static_cast<int64_t>(step.bodies.size()) - 1;
        const int64_t index = decide(step);
        return run(step.bodies[static_cast<size_t>(index < 0 || index > cases ? cases : index)]);
      }
      case Step::kWhile:
        for (run(step.bodies[0]); decide(step) != 0; run(step.bodies[0])) run(step.bodies[1]);
        return;
      case Step::kCall:
        return call(step);
      case Step::kCollective:
        return program_.issue_collective(step, addresses_, stream_);
    }
  }

  void launch(const Step& step) {
    if (program_.kernels[step.kernel].library) {
      return program_.issue_library(step, addresses_, stream_);
    }
    Parameters parameters(step, addresses_, program_.scratch);
    for (const Launch& one : program_.kernels[step.kernel].launches) {
      check(cuda_.launch(one.function, one.grid[0], one.grid[1], one.grid[2], one.block[0],
                         one.block[1], one.block[2], one.shared_bytes, stream_, parameters.of(one),
                         nullptr),
            "cuLaunchKernel", [&] { return about(step); });
    }
  }

  void fill(const Step& step) {
    const Address target = addresses_.of(step.places[0]);
    const size_t count = step.bytes / step.element_bytes;
    const Result code =
        step.element_bytes == 1
            ? cuda_.set_8(target, static_cast<unsigned char>(step.element), count, stream_)
        : step.element_bytes == 2
            ? cuda_.set_16(target, static_cast<unsigned short>(step.element), count, stream_)
            : cuda_.set_32(target, step.element, count, stream_);
    check(code, "cuMemsetAsync");
  }

  // Waits for what is issued so far: the function may read it, and stop the program.
  void call(const Step& step) {
    const auto what = [&] { return about(step); };
    Staged staged(*program_.device, step.sizes);
    std::vector<void*> pointers;
    staged.busy = true;
    for (size_t i = 0; i < step.places.size(); ++i) {
      const bool used = step.places[i].space != Space::kNowhere;
      pointers.push_back(used ? staged.at(i) : nullptr);
      if (i >= step.inputs || step.sizes[i] == 0) continue;
      check(cuda_.copy_to_host(staged.at(i), addresses_.of(step.places[i]), step.sizes[i], stream_),
            "cuMemcpyDtoHAsync", what);
    }
    program_.wait(stream_, step);
    staged.busy = false;
    host_(step, pointers.data(), pointers.data() + step.inputs);
    for (size_t i = step.inputs; i < step.places.size(); ++i) {
      if (pointers[i] == nullptr || step.sizes[i] == 0) continue;
      staged.busy = true;  // until it is gone
      check(
          cuda_.copy_to_device(addresses_.of(step.places[i]), staged.at(i), step.sizes[i], stream_),
          "cuMemcpyHtoDAsync", what);
    }
  }

  // What decides, which everything issued so far may compute: waits for it.
  int64_t decide(const Step& step) {
    unsigned char bytes[8] = {};
    if (program_.watch) program_.wait(stream_, step);  // the copy itself would wait for ever
    check(cuda_.copy_to_host(bytes, addresses_.of(step.places[0]), step.bytes, stream_),
          "cuMemcpyDtoHAsync", [&] { return about(step); });
    check(cuda_.stream_synchronize(stream_), "the GPU's work", [&] { return about(step); });
    if (step.kind != Step::kSwitch) return bytes[0];
    int32_t narrow;
    int64_t wide;
    std::memcpy(&narrow, bytes, sizeof narrow);
    std::memcpy(&wide, bytes, sizeof wide);
    return step.bytes == sizeof wide ? wide : narrow;
  }

  Program& program_;
  const Addresses& addresses_;
  const HostCall& host_;
  Handle stream_;
  const Driver& cuda_ = driver();
};

}  // namespace

std::string about(const Step& step) {
  static const char* const kinds[] = {"kernel", "copy",  "fill",     "if",
                                      "switch", "while", "callback", "collective"};
  std::string text = std::string("of ") + kinds[step.kind];
  if (!step.name.empty()) text += " " + step.name;
  if (!step.at.empty()) text += " at " + step.at;
  return text;
}

Parameters::Parameters(const Step& step, const Addresses& addresses, uint64_t scratch) {
  values_.reserve(step.places.size() + 1);
  for (const Place& place : step.places) values_.push_back(addresses.of(place));
  values_.push_back(addresses.arena + scratch);
}

void** Parameters::of(const Launch& launch) {
  pointers_.clear();
  maps_.resize(launch.maps.size());
  for (Address& value : values_) pointers_.push_back(&value);
  for (size_t i = 0; i < maps_.size(); ++i) {
    const TensorMap& map = launch.maps[i];
    const std::vector<unsigned> dense(map.sizes.size(), 1);
    void* const there = reinterpret_cast<void*>(values_[map.parameter] + map.offset);
    check(driver().tensor_map(&maps_[i], map.type, static_cast<unsigned>(map.sizes.size()), there,
                              map.sizes.data(), map.strides.data(), map.box.data(), dense.data(),
                              kNoInterleave, kSwizzle128, kPromote256, kFillZeros),
          "cuTensorMapEncodeTiled", [&] { return "for kernel " + launch.name; });
    pointers_.push_back(&maps_[i]);
  }
  return pointers_.data();
}

Program::~Program() {
  if (!device->usable()) return;
  try {
    const InContext current = device->enter();
    graphs.clear();
    // Unloading waits for what runs.
    for (const Handle module : modules) driver().module_unload(module);
  } catch (const std::exception&) {
  }
}

void Program::issue_library(const Step& step, const Addresses& addresses, Handle stream) {
  std::vector<Address> arguments;
  for (const Place& place : step.places) arguments.push_back(addresses.of(place));
  kernels[step.kernel].library->issue(arguments.data(), addresses.arena + workspace, stream,
                                      about(step));
}

void Program::issue_collective(const Step& step, const Addresses& addresses, Handle stream) {
  cuda::issue_collective(*clique, position, step.collective, addresses.of(step.places[0]),
                         addresses.of(step.places[1]), stream, about(step));
}

void Program::wait(Handle stream, const Step& step) {
  if (watch) return watch->wait(*device, stream, about(step));
  check(driver().stream_synchronize(stream), "the GPU's work", [&] { return about(step); });
}

// A graph with collectives is one of those that all devices made in the same run: NCCL wants them
// to capture and to launch alike. In conditional nodes there may be none: NCCL's calls may need the
// host.
void Program::issue(const Addresses& addresses, const HostCall& host, const Agreement& agree) {
  if (clique != nullptr && aborts != clique->aborts()) {  // communicators of the graphs are no more
    aborts = clique->aborts();
    graphs.clear();
    runs = 0;
  }
  ++runs;
  const Driver& cuda = driver();
  // A program that is called once is not worth a graph, unless its loops would wait for the host.
  const bool worth = decides ? cuda.has_conditionals && device->set_condition() != nullptr
                             : cuda.has_graphs && launches > kFewLaunches && runs > 1;
  const bool meets_elsewhere = meets && clique->spans_processes();
  if (!worth || !use_graphs || synchronous || calls_host || meets_in_bodies || meets_elsewhere) {
    return Issuer(*this, addresses, host).run(steps);
  }
  auto found = graphs.begin();
  while (found != graphs.end() && !(found->addresses() == addresses)) ++found;
  if (meets && agree(found == graphs.end() ? 0 : found->number()) == 0) found = graphs.end();
  if (found != graphs.end()) {
    graphs.splice(graphs.begin(), graphs, found);
  } else {
    const bool full = graphs.size() >= kMostGraphs;
    if (full && !decides && !meets && graphs.back().update(*this, addresses)) {
      graphs.splice(graphs.begin(), graphs, std::prev(graphs.end()));
    } else {
      if (full) graphs.pop_back();
      graphs.emplace_front(*this, addresses, runs);
    }
  }
  graphs.front().launch(device->compute());
}

}  // namespace lamina::cuda
