// buffer.h -- reference-counted array memory and the pool it comes from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "core/completion.h"
#include "core/shared.h"

namespace lamina {

namespace cuda {
class Device;
struct Memory;
}  // namespace cuda

// Thrown where memory is refused; bytes is what was asked for.
struct LAMINA_SHARED OutOfMemory : std::runtime_error {
  explicit OutOfMemory(size_t bytes);
  size_t bytes;
};

// Memory of one array. Pool memory starts 64-byte aligned; foreign memory as its owner made it.
// Counting is atomic: buffers die on any thread, with or without the GIL.
class LAMINA_SHARED Buffer {
 public:
  static constexpr size_t kAlignment = 64;

  // Uninitialised memory from the pool, refs() == 1.
  static Buffer* allocate(size_t bytes);
  // Memory of someone else, never written: drop(context) is called once, on any thread, perhaps
  // without the GIL.
  static Buffer* wrap(void* data, size_t bytes, void (*drop)(void*), void* context);

  void retain() { refs_.fetch_add(1, std::memory_order_relaxed); }
  void release() {
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy();
  }
  uint32_t refs() const { return refs_.load(std::memory_order_acquire); }

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  bool pooled() const { return drop_ == nullptr; }
  // What there is to know of memory of a GPU, whose data() the host can't read; null for others.
  cuda::Memory* device_memory() const { return device_memory_; }
  bool aligned_to(size_t alignment) const {
    return reinterpret_cast<uintptr_t>(data_) % alignment == 0;
  }

  // The call that fills this buffer; null once nobody needs to wait.
  Completion* pending() const { return pending_; }
  void set_pending(Completion* completion);
  bool ready() const { return pending_ == nullptr || pending_->done(); }

 private:
  friend class Pool;
  friend class cuda::Device;
  Buffer() = default;
  void destroy();

  std::atomic<uint32_t> refs_{1};
  uint32_t size_class_ = 0;
  void* data_ = nullptr;
  size_t bytes_ = 0;
  Completion* pending_ = nullptr;
  union {
    void* context_ = nullptr;
    Buffer* next_free_;
  };
  void (*drop_)(void*) = nullptr;
  cuda::Memory* device_memory_ = nullptr;
};
static_assert(sizeof(Buffer) <= Buffer::kAlignment, "the header must fit before the data");

struct PoolStats {
  size_t live_bytes, cached_bytes, limit_bytes;
  uint64_t allocations, reuses;
};
LAMINA_SHARED PoolStats pool_stats();
// The most bytes kept for reuse; what is above goes back to the system.
void set_pool_limit(size_t bytes);
void trim_pool();

}  // namespace lamina
