// device.h -- a GPU: its context, streams, events and memory, and copies to it and from it.
//
// Programs of a device run in the order of their calls, on a stream of ours or on one that a user
// chose for a thread or for the device: where a call's stream is not that of the call before it,
// an event orders the two. Memory is allocated and freed in that order, too, from the driver's
// pool, which keeps what is freed. Large copies have a stream for each direction; events order them
// with the programs. The context is the primary one, which other libraries use, too: a thread has
// it while it is needed, and then again the one that it had.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "core/buffer.h"
#include "core/platform.h"
#include "cuda/driver.h"

namespace lamina::cuda {

class Device;
class Watch;

// What work is issued on. Numbers are never given again, as the driver does with handles.
struct Stream {
  Handle handle = nullptr;
  uint64_t id = 0;
};

// What a Buffer on a GPU is beyond its address.
struct Memory {
  Device* device = nullptr;
  Address address = 0;
  bool owned = true;              // of the pool, so that a donation may reuse it
  void (*drop)(void*) = nullptr;  // of memory that is not
  void* context = nullptr;
  Ref<Completion> written;  // what fills it, and the stream that does; without, that which has it
  Stream written_on;
  std::atomic<bool> used{false};         // by work that was issued here
  SpinLock lock;                         // of what follows
  Ref<Buffer> host;                      // a copy, perhaps still on its way
  std::vector<Ref<Completion>> readers;  // copies to other devices that may not be over
};

uint64_t next_stream_id();

// Null for memory of the host.
inline Memory* memory_of(const Buffer* buffer) { return buffer->device_memory(); }

// While it is there, a device's context is the calling thread's.
class InContext {
 public:
  explicit InContext(Handle context) { check(driver().context_push(context), "cuCtxPushCurrent"); }
  ~InContext() {
    Handle context = nullptr;
    driver().context_pop(&context);
  }
  InContext(const InContext&) = delete;
};

class Device {
 public:
  // Throws Unavailable, CudaError, or std::out_of_range for a number there is no device of.
  static Device& get(int number);
  // Throws Unavailable where there is no driver, or in a forked child.
  static void check_driver();
  // Waits for all devices and uses none from then on: the process ends.
  static void shut_down();

  // Makes this the calling thread's device for a time. Throws Unavailable in a forked child.
  [[nodiscard]] InContext enter() const;

  int number() const { return number_; }
  // False where there is nothing left to give back: the process ends, it is a forked child, or the
  // driver is another one.
  bool usable() const;
  Handle context() const { return context_; }
  // The stream of the Turn that the calling thread has.
  Handle compute() const { return latest_.handle; }

  // The stream that the calling thread issues programs on.
  Stream stream();
  // Lets it be another one, of the same device and context, until `leave_stream`.
  void enter_stream(Handle handle);
  // Afterwards nothing is issued on it any more. Throws std::out_of_range where the thread is on
  // none.
  void leave_stream();
  // The stream of threads that have entered none; null for our own.
  void set_stream(Handle handle);

  // Uninitialised memory, which work on the stream may use. Throws OutOfMemory.
  Ref<Buffer> allocate(const Stream& stream, size_t bytes);
  // A Buffer on memory of someone else.
  Ref<Buffer> wrap(Address address, size_t bytes, void (*drop)(void*), void* context);
  // A copy of memory of the host, which has been read when this returns.
  Ref<Buffer> upload(const void* data, size_t bytes);
  // A copy in memory of the host, whose `pending` says when it is there. Asked for twice, the same.
  Ref<Buffer> download(Buffer* buffer);
  // A copy on the same device.
  Ref<Buffer> copy(Buffer* buffer);
  // A copy of memory of another device: from one to the other where they reach each other, else by
  // way of the host, which the driver sees to.
  Ref<Buffer> copy_from_other(Buffer* buffer);

  // Memory for the temporaries of one program at a time: all share it, in the order of their turns.
  // Call with a Turn. Throws OutOfMemory.
  Address arena(size_t bytes);

  // Lets what is issued on `stream` from now on see the content of the memory.
  void order_after(const Memory& memory, const Stream& stream);
  // The same for a stream of somebody else.
  void order_consumer(const Memory& memory, Handle stream);
  // Lets what is issued in this turn and later overwrite the memory, which had a content that may
  // be on its way to the host.
  void order_overwriting(Memory* memory);
  // Gives memory of others back that work used which is done by now. Call with the GIL.
  void drop_retired();
  // Sets `pending` of the buffers to the moment at which all that is issued on the stream is done.
  // `what` begins the message where that fails; `watch` looks after what meets other devices.
  void finish_with(const Stream& stream, Buffer* const* buffers, size_t count,
                   const std::string& what, const std::shared_ptr<Watch>& watch = nullptr);

  Handle take_event();
  void give_event(Handle event);

  // Pinned memory of the host, and what gives it back when no copy uses it any more.
  void* take_pinned(size_t bytes);
  void give_pinned(void* block, size_t bytes);

  // A stream for what libraries issue into a graph. Call with a Turn. Throws CudaError.
  Handle capturing();

  // The kernel that sets a handle of a conditional node (see cuda/graph.cpp); null where the driver
  // has none.
  Handle set_condition();

 private:
  friend struct Devices;
  friend class Turn;
  explicit Device(int number);
  Address raw_allocate(size_t bytes, const Stream& stream);
  void take_turn(const Stream& stream);
  void no_longer_on(const Stream& stream);
  void free_dead();
  void free_in_turn(std::unique_ptr<Memory> memory);
  void after_allocation(const Stream& stream);
  // Lets `later` wait for all that is issued on `stream` so far.
  void wait_for_work_on(Handle stream, Handle later);
  static void drop_memory(void* buffer_memory);
  static void drop_pinned(void* block);
  bool give_arena_back();
  void wait_for_oldest_staging();
  // Lets this device read the other's memory itself, if it can.
  void reach(const Device& other);

  static inline std::atomic<bool> closed_{false};  // at the end of the process

  uint64_t generation_;
  int number_, process_;
  DeviceId id_ = 0;
  Handle context_ = nullptr, pool_ = nullptr, capturing_ = nullptr;
  Stream own_, up_, down_;
  std::mutex issue_mutex_;  // held while a program is issued
  Stream latest_;           // of the turns: all that was issued before is before what comes on it
  Address arena_ = 0;
  size_t arena_bytes_ = 0;
  SpinLock lock_;  // of what follows
  Stream default_;
  std::vector<uint64_t> chosen_;  // users' streams
  std::vector<Memory*> dead_;     // to be freed in somebody's turn
  // Memory of others and the events after which nobody uses it.
  std::vector<std::pair<Handle, std::unique_ptr<Memory>>> retired_;
  std::atomic<size_t> retired_count_{0};
  std::vector<Handle> events_;
  std::array<std::vector<void*>, 48> pinned_;  // blocks of 2^i bytes
  size_t pinned_bytes_ = 0;                    // in those
  std::mutex staging_mutex_;
  std::deque<std::pair<Handle, void*>> staging_;  // blocks being read, until these events
  std::mutex reach_mutex_;
  std::set<int> asked_to_reach_;  // numbers of devices
  std::once_flag condition_once_;
  Handle set_condition_ = nullptr;
};

// The right to issue work that uses what other calls use, on a stream, after all that had a turn
// before. The device's context is the thread's meanwhile.
class Turn {
 public:
  Turn(Device& device, const Stream& stream);
  ~Turn();
  Turn(const Turn&) = delete;

  // Others may have their turns in between.
  void pause();
  void resume();

 private:
  Device& device_;
  const Stream stream_;
  const InContext context_;
  std::unique_lock<std::mutex> lock_;
};

}  // namespace lamina::cuda
