// library.h -- products by NVIDIA's cuBLASLt, which is opened at run time where it is
// installed: nothing of it is needed to build. What a product is, is described in
// passes/gpu/product/library.py.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cuda/device.h"

namespace lamina::cuda {

// A matrix as the library has it: columns, `leading` elements apart, in batches `stride` apart.
struct LibraryMatrix {
  size_t argument = 0, bytes = 0;
  int type = 0;
  uint64_t rows = 0, columns = 0;
  int64_t leading = 0, stride = 0;
  bool transposed = false;
};

struct LibraryProduct {
  LibraryMatrix a, b, d;
  int batches = 1, compute = 0, scale = 0;
  int bias = -1;  // an argument, or none
};

// A product that the library has an algorithm for.
class LibraryCall {
 public:
  // Null where it has none, or is not installed. `path` is the library's file. Call in the device.
  static std::unique_ptr<LibraryCall> make(Device& device, const std::string& path,
                                           const LibraryProduct& product);
  ~LibraryCall();

  // Issues it on a stream. `arguments` are those of the kernel that it is instead of. Throws
  // CudaError, with `context` in the text.
  void issue(const Address* arguments, Address workspace, Handle stream,
             const std::string& context);

  static constexpr size_t kWorkspaceBytes = 32 << 20;  // what NVIDIA recommends for Hopper

 private:
  struct Parts;
  explicit LibraryCall(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

// The library's version, 130100 for 13.1; 0 where it is not installed.
size_t library_version(const std::string& path);

}  // namespace lamina::cuda
