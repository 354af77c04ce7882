// driver.h -- NVIDIA's driver as a table of functions, opened at run time: nothing of CUDA is
// needed to build. The types are those of the driver's stable C interface.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <unordered_map>

namespace lamina::cuda {

using Result = int;
using DeviceId = int;
using Address = unsigned long long;  // of device memory
using Handle = void*;                // contexts, streams, events, modules, functions, graphs, ...
using ConditionalHandle = unsigned long long;

inline constexpr Result kSuccess = 0, kOutOfMemory = 2, kNoDevice = 100, kNoBinary = 209,
                        kNotFound = 500, kNotReady = 600;
inline constexpr unsigned kEventWithoutTiming = 2, kStreamNonBlocking = 1, kHostPortable = 1;
inline constexpr unsigned kEventWithTiming = 0;
inline constexpr int kCaptureThisThread = 1;
inline constexpr int kDynamicShared = 8;     // attribute of a function
inline constexpr int kReleaseThreshold = 4;  // attribute of a memory pool

// Who may use the memory of a pool, beside its own device.
struct PoolAccess {
  int location_kind, location, flags;
};
inline constexpr int kDeviceLocation = 1, kReadAndWrite = 3;

struct KernelNode {
  Handle function;
  unsigned grid[3], block[3], shared_bytes;
  void** parameters;
  void** extra;
  Handle kernel, context;
};

struct MemsetNode {
  Address target;
  size_t pitch;
  unsigned value, element_bytes;
  size_t width, height;
};

// A copy of up to three dimensions; ours have one.
struct CopyNode {
  size_t source_x, source_y, source_z, source_level;
  int source_type;
  const void* source_host;
  Address source;
  Handle source_array;
  void* reserved0;
  size_t source_pitch, source_height;
  size_t target_x, target_y, target_z, target_level;
  int target_type;
  void* target_host;
  Address target;
  Handle target_array;
  void* reserved1;
  size_t target_pitch, target_height;
  size_t width, height, depth;
};
inline constexpr int kDeviceMemory = 2;

// The parameters of a graph node of any kind; ours are conditional ones.
struct GraphNode {
  int type;
  int reserved0[3];
  ConditionalHandle handle;
  int conditional_type;
  unsigned size;
  Handle* bodies;  // filled in
  Handle context;
  long long reserved1[25];
  long long reserved2;
};
static_assert(sizeof(GraphNode) == 256, "as the driver has it");
inline constexpr int kConditionalNode = 13, kIf = 0, kWhile = 1;

// What the driver makes of a tensor's description; a kernel's parameter.
struct alignas(64) TensorMapBits {
  unsigned long long words[16];
};
// Of that description: rows of 128 bytes are swizzled, neighbours of 256 come to L2 with them.
inline constexpr int kNoInterleave = 0, kSwizzle128 = 3, kPromote256 = 3, kFillZeros = 0;

// name, symbol, parameters. The first group must be there; of the second, what a driver lacks stays
// null: graphs came with 12.0, conditional nodes with 12.4.
#define LAMINA_CUDA_FUNCTIONS(X)                                                                  \
  X(init, "cuInit", unsigned)                                                                     \
  X(driver_version, "cuDriverGetVersion", int*)                                                   \
  X(error_name, "cuGetErrorName", Result, const char**)                                           \
  X(error_text, "cuGetErrorString", Result, const char**)                                         \
  X(device_count, "cuDeviceGetCount", int*)                                                       \
  X(device_get, "cuDeviceGet", DeviceId*, int)                                                    \
  X(context_retain, "cuDevicePrimaryCtxRetain", Handle*, DeviceId)                                \
  X(context_push, "cuCtxPushCurrent_v2", Handle)                                                  \
  X(context_pop, "cuCtxPopCurrent_v2", Handle*)                                                   \
  X(stream_create, "cuStreamCreate", Handle*, unsigned)                                           \
  X(stream_synchronize, "cuStreamSynchronize", Handle)                                            \
  X(stream_wait, "cuStreamWaitEvent", Handle, Handle, unsigned)                                   \
  X(event_create, "cuEventCreate", Handle*, unsigned)                                             \
  X(event_record, "cuEventRecord", Handle, Handle)                                                \
  X(event_query, "cuEventQuery", Handle)                                                          \
  X(event_synchronize, "cuEventSynchronize", Handle)                                              \
  X(event_destroy, "cuEventDestroy_v2", Handle)                                                   \
  X(pool_default, "cuDeviceGetDefaultMemPool", Handle*, DeviceId)                                 \
  X(pool_set, "cuMemPoolSetAttribute", Handle, int, void*)                                        \
  X(pool_trim, "cuMemPoolTrimTo", Handle, size_t)                                                 \
  X(pool_access, "cuMemPoolSetAccess", Handle, const PoolAccess*, size_t)                         \
  X(can_reach, "cuDeviceCanAccessPeer", int*, DeviceId, DeviceId)                                 \
  X(allocate, "cuMemAllocAsync", Address*, size_t, Handle)                                        \
  X(release, "cuMemFreeAsync", Address, Handle)                                                   \
  X(host_allocate, "cuMemHostAlloc", void**, size_t, unsigned)                                    \
  X(host_release, "cuMemFreeHost", void*)                                                         \
  X(copy_to_device, "cuMemcpyHtoDAsync_v2", Address, const void*, size_t, Handle)                 \
  X(copy_to_host, "cuMemcpyDtoHAsync_v2", void*, Address, size_t, Handle)                         \
  X(copy_on_device, "cuMemcpyDtoDAsync_v2", Address, Address, size_t, Handle)                     \
  X(copy_between, "cuMemcpyPeerAsync", Address, Handle, Address, Handle, size_t, Handle)          \
  X(set_8, "cuMemsetD8Async", Address, unsigned char, size_t, Handle)                             \
  X(set_16, "cuMemsetD16Async", Address, unsigned short, size_t, Handle)                          \
  X(set_32, "cuMemsetD32Async", Address, unsigned, size_t, Handle)                                \
  X(module_load, "cuModuleLoadData", Handle*, const void*)                                        \
  X(module_unload, "cuModuleUnload", Handle)                                                      \
  X(module_function, "cuModuleGetFunction", Handle*, Handle, const char*)                         \
  X(function_set, "cuFuncSetAttribute", Handle, int, int)                                         \
  X(launch, "cuLaunchKernel", Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
    unsigned, Handle, void**, void**)                                                             \
  X(event_elapsed, "cuEventElapsedTime", float*, Handle, Handle)
#define LAMINA_CUDA_GRAPH_FUNCTIONS(X)                                                            \
  X(graph_create, "cuGraphCreate", Handle*, unsigned)                                             \
  X(graph_destroy, "cuGraphDestroy", Handle)                                                      \
  X(graph_kernel, "cuGraphAddKernelNode_v2", Handle*, Handle, const Handle*, size_t,              \
    const KernelNode*)                                                                            \
  X(graph_copy, "cuGraphAddMemcpyNode", Handle*, Handle, const Handle*, size_t, const CopyNode*,  \
    Handle)                                                                                       \
  X(graph_memset, "cuGraphAddMemsetNode", Handle*, Handle, const Handle*, size_t,                 \
    const MemsetNode*, Handle)                                                                    \
  X(graph_instantiate, "cuGraphInstantiateWithFlags", Handle*, Handle, unsigned long long)        \
  X(graph_launch, "cuGraphLaunch", Handle, Handle)                                                \
  X(graph_exec_destroy, "cuGraphExecDestroy", Handle)                                             \
  X(graph_update_kernel, "cuGraphExecKernelNodeSetParams_v2", Handle, Handle, const KernelNode*)  \
  X(graph_update_copy, "cuGraphExecMemcpyNodeSetParams", Handle, Handle, const CopyNode*, Handle) \
  X(graph_update_memset, "cuGraphExecMemsetNodeSetParams", Handle, Handle, const MemsetNode*,     \
    Handle)                                                                                       \
  X(graph_conditional, "cuGraphConditionalHandleCreate", ConditionalHandle*, Handle, Handle,      \
    unsigned, unsigned)                                                                           \
  X(graph_node, "cuGraphAddNode", Handle*, Handle, const Handle*, size_t, GraphNode*)             \
  X(capture_begin, "cuStreamBeginCapture_v2", Handle, int)                                        \
  X(capture_end, "cuStreamEndCapture", Handle, Handle*)                                           \
  X(graph_child, "cuGraphAddChildGraphNode", Handle*, Handle, const Handle*, size_t, Handle)      \
  X(graph_update_child, "cuGraphExecChildGraphNodeSetParams", Handle, Handle, Handle)

// By which a GPU copies boxes of a tensor; came with 12.0, too.
#define LAMINA_CUDA_TENSOR_MAP_FUNCTIONS(X)                                                      \
  X(tensor_map, "cuTensorMapEncodeTiled", TensorMapBits*, int, unsigned, void*,                  \
    const unsigned long long*, const unsigned long long*, const unsigned*, const unsigned*, int, \
    int, int, int)

struct Driver {
#define LAMINA_DECLARE(name, symbol, ...) Result (*name)(__VA_ARGS__) = nullptr;
  LAMINA_CUDA_FUNCTIONS(LAMINA_DECLARE)
  LAMINA_CUDA_GRAPH_FUNCTIONS(LAMINA_DECLARE)
  LAMINA_CUDA_TENSOR_MAP_FUNCTIONS(LAMINA_DECLARE)
#undef LAMINA_DECLARE
  int version = 0;  // 12040 for 12.4
  bool has_graphs = false;
  bool has_conditionals = false;
};

// A driver call that failed: what() names the call, the driver's word for the error, and what it
// was done for.
struct CudaError : std::runtime_error {
  CudaError(Result code, const std::string& text) : std::runtime_error(text), code(code) {}
  Result code;
};

// CUDA can't be used here at all; what() says why and what to do.
struct Unavailable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The driver. The first call opens libcuda.so.1; throws Unavailable where that fails, each time.
const Driver& driver();

// Takes these functions, by symbol, for the driver, and forgets all devices; null: the machine's
// own again. For tests.
void replace_driver(const std::unordered_map<std::string, uintptr_t>* functions);
// Counts the replacements.
uint64_t driver_generation();
// Whether functions were taken for the driver, and which of this symbol: libraries are looked for
// among them, too.
bool driver_is_replaced(const char* symbol, void** found);

[[noreturn]] void raise_failure(Result code, const char* call, const std::string& context);

// Throws CudaError where a call fails. `context` is made text only then.
template <typename Context>
void check(Result code, const char* call, const Context& context) {
  if (code != kSuccess) raise_failure(code, call, context());
}
inline void check(Result code, const char* call, const char* context = "") {
  if (code != kSuccess) raise_failure(code, call, context);
}

}  // namespace lamina::cuda
