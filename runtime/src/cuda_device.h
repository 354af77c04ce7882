// cuda_device.h -- a GPU: its context, streams, events and memory, and copies to it and from it.
//
// All programs of a device run on one stream, in the order of their calls. Memory is allocated and
// freed in the order of that stream, too, from the driver's pool, which keeps what is freed.
// Large copies have a stream for each direction; events order them with the programs.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "buffer.h"
#include "cuda_driver.h"
#include "platform.h"

namespace lamina::cuda {

class Device;

// What a Buffer on a GPU is beyond its address.
struct Memory {
  Device* device = nullptr;
  Address address = 0;
  bool owned = true;              // of the pool, so that a donation may reuse it
  void (*drop)(void*) = nullptr;  // of memory that is not
  void* context = nullptr;
  Ref<Completion> written;  // what fills it, and the stream that does
  Handle written_on = nullptr;
  SpinLock lock;     // of what follows
  Ref<Buffer> host;  // a copy, perhaps still on its way
};

// Null for memory of the host.
inline Memory* memory_of(const Buffer* buffer) { return buffer->device_memory(); }

class Device {
 public:
  // Throws Unavailable, CudaError, or std::out_of_range for a number there is no device of.
  static Device& get(int number);
  // Throws Unavailable where there is no driver.
  static int count();
  // Waits for all devices and uses none from then on: the process ends.
  static void shut_down();

  // Makes this the calling thread's device. Throws Unavailable in a forked child.
  void enter();

  int number() const { return number_; }
  const std::string& name() const { return name_; }
  int major() const { return major_; }
  int minor() const { return minor_; }
  // False where there is nothing left to give back: the process ends, it is a forked child, or the
  // driver is another one.
  bool usable() const;
  Handle context() const { return context_; }
  Handle compute() const { return compute_; }
  void memory_info(size_t* free, size_t* total);

  // Uninitialised memory, which programs issued from now on may use. Throws OutOfMemory.
  Ref<Buffer> allocate(size_t bytes);
  // A Buffer on memory of someone else.
  Ref<Buffer> wrap(Address address, size_t bytes, void (*drop)(void*), void* context);
  // A copy of memory of the host, which has been read when this returns.
  Ref<Buffer> upload(const void* data, size_t bytes);
  // A copy in memory of the host, whose `pending` says when it is there. Asked for twice, the same.
  Ref<Buffer> download(Buffer* buffer);
  // A copy on the same device.
  Ref<Buffer> copy(Buffer* buffer);

  // Memory for the temporaries of one program at a time: all share it, in the order of the stream.
  // Call with issue_mutex held. Throws OutOfMemory.
  Address arena(size_t bytes);
  // Held while a program is issued.
  std::mutex& issue_mutex() { return issue_mutex_; }

  // Lets what is issued on `stream` from now on see the content of the memory.
  void order_after(const Memory& memory, Handle stream);
  // Lets what is issued on the programs' stream from now on overwrite the memory, which had a
  // content that may be on its way to the host.
  void order_overwriting(Memory* memory);
  // Sets `pending` of the buffers to the moment at which all that is issued on the stream is done.
  // `what` begins the message where that fails.
  void finish_with(Handle stream, Buffer* const* buffers, size_t count, const std::string& what);

  Handle take_event();
  void give_event(Handle event);

  // Pinned memory of the host, and what gives it back when no copy uses it any more.
  void* take_pinned(size_t bytes);
  void give_pinned(void* block, size_t bytes);

  // A stream for what libraries issue into a graph. Call with issue_mutex held. Throws CudaError.
  Handle capturing();

  // The kernel that sets a handle of a conditional node (see cuda_graph.cpp); null where the driver
  // has none.
  Handle set_condition();

 private:
  friend struct Devices;
  explicit Device(int number);
  Ref<Buffer> allocate_on(Handle stream, size_t bytes);
  Address raw_allocate(size_t bytes, Handle stream);
  static void drop_memory(void* buffer_memory);
  static void drop_pinned(void* block);
  bool give_arena_back();
  void wait_for_oldest_staging();

  static inline std::atomic<bool> closed_{false};  // at the end of the process

  uint64_t generation_;
  int number_, process_, major_ = 0, minor_ = 0;
  std::string name_;
  Handle context_ = nullptr, pool_ = nullptr;
  Handle compute_ = nullptr, up_ = nullptr, down_ = nullptr, capturing_ = nullptr;
  std::mutex issue_mutex_;
  Address arena_ = 0;
  size_t arena_bytes_ = 0;
  SpinLock lock_;  // of what follows
  std::vector<Handle> events_;
  std::array<std::vector<void*>, 48> pinned_;  // blocks of 2^i bytes
  size_t pinned_bytes_ = 0;                    // in those
  std::mutex staging_mutex_;
  std::deque<std::pair<Handle, void*>> staging_;  // blocks being read, until these events
  std::once_flag condition_once_;
  Handle set_condition_ = nullptr;
};

}  // namespace lamina::cuda
