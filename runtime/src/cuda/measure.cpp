// measure.cpp -- times a kernel and a library call that could be in its place.
#include <algorithm>

#include "cuda/program.h"

namespace lamina::cuda {
namespace {

constexpr int kTimes = 5;  // after one that is not counted
constexpr size_t kAligned = 256;
// A byte of which numbers of every type are made that are neither zero nor far from one.
constexpr unsigned char kFilling = 0x3c;

class Event {
 public:
  Event() { check(driver().event_create(&handle_, kEventWithTiming), "cuEventCreate"); }
  ~Event() { driver().event_destroy(handle_); }
  Event(const Event&) = delete;
  Handle handle() const { return handle_; }

 private:
  Handle handle_ = nullptr;
};

// The mean of some runs.
template <typename Work>
float milliseconds(Handle stream, const Work& work) {
  const Driver& cuda = driver();
  const Event before, after;
  work();
  check(cuda.event_record(before.handle(), stream), "cuEventRecord");
  for (int i = 0; i < kTimes; ++i) work();
  check(cuda.event_record(after.handle(), stream), "cuEventRecord");
  check(cuda.event_synchronize(after.handle()), "cuEventSynchronize", "while products were timed");
  float found = 0;
  check(cuda.event_elapsed(&found, before.handle(), after.handle()), "cuEventElapsedTime");
  return found / kTimes;
}

}  // namespace

Timings time_both(Device& device, const Kernel& kernel, LibraryCall& library,
                  const LibraryProduct& product, size_t scratch_bytes) {
  size_t total = 0;
  const auto part = [&total](size_t bytes) {
    const size_t begin = total;
    total += (bytes + kAligned - 1) / kAligned * kAligned;
    return begin;
  };
  std::vector<size_t> begins(4);  // a, b, d and a bias, in whichever order
  const auto place = [&](const LibraryMatrix& matrix) {
    begins[matrix.argument] = part(matrix.bytes);
  };
  place(product.a);
  if (product.b.argument != product.a.argument) place(product.b);
  place(product.d);
  if (product.bias >= 0) begins[static_cast<size_t>(product.bias)] = part(product.d.bytes);
  const size_t scratch = part(scratch_bytes), workspace = part(LibraryCall::kWorkspaceBytes);
  const Stream taken = device.stream();
  const Ref<Buffer> memory = device.allocate(taken, total);
  const Address base = memory_of(memory.get())->address;
  const Turn turn(device, taken);
  const Handle stream = taken.handle;
  check(driver().set_8(base, kFilling, workspace, stream), "cuMemsetD8Async");

  Step step;
  Addresses addresses;
  const size_t last = std::max({product.a.argument, product.b.argument, product.d.argument,
                                static_cast<size_t>(std::max(product.bias, 0))});
  for (size_t i = 0; i <= last; ++i) {
    step.places.push_back({Space::kArgument, i});
    addresses.arguments.push_back(base + begins[i]);
  }
  Parameters parameters(step, addresses, base + scratch);
  Timings found;
  found.kernel = milliseconds(stream, [&] {
    for (const Launch& one : kernel.launches) {
      check(driver().launch(one.function, one.grid[0], one.grid[1], one.grid[2], one.block[0],
                            one.block[1], one.block[2], one.shared_bytes, stream,
                            parameters.of(one), nullptr),
            "cuLaunchKernel", [&] { return "for kernel " + one.name; });
    }
  });
  found.library = milliseconds(stream, [&] {
    library.issue(addresses.arguments.data(), base + workspace, stream, "while it was timed");
  });
  return found;
}

}  // namespace lamina::cuda
