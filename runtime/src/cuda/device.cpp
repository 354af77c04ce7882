// device.cpp -- see device.h.
#include "cuda/device.h"

#include "cuda/nccl.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>

namespace lamina::cuda {
namespace {

// The moment at which an event is reached.
class Event : public Completable {
 public:
  Event(Device* device, Handle event, std::string what, std::shared_ptr<Watch> watch)
      : device_(device), event_(event), what_(std::move(what)), watch_(std::move(watch)) {
    if (watch_) watch_->ends_with(device_, event_);
  }
  ~Event() override {
    if (watch_) watch_->ends_with(nullptr, nullptr);
    device_->give_event(event_);
  }

  Handle handle() const { return event_; }

  bool may_fail_alone() const override { return watch_ != nullptr; }

  bool over(Error* error) override {
    if (!device_->usable()) return true;
    try {
      const InContext current = device_->enter();
      const Result code = driver().event_query(event_);
      if (code == kNotReady) {
        if (watch_) watch_->look();
        return false;
      }
      check(code, "the GPU's work", "");
      if (watch_) watch_->check_not_aborted();
    } catch (const std::exception& failure) {
      *error = {"[" + what_ + "] " + failure.what(), nullptr, nullptr};
    }
    return true;
  }

 private:
  Device* device_;
  Handle event_;
  std::string what_;
  std::shared_ptr<Watch> watch_;
};

constexpr const char* kForked =
    "CUDA can't be used in a process forked from one that used it: start processes by "
    "multiprocessing's 'spawn' or 'forkserver'";

}  // namespace

struct Devices {
  std::mutex mutex;
  std::vector<std::unique_ptr<Device>> all;
  uint64_t generation = 0;

  static Devices& instance() {
    static auto* devices = new Devices;  // never destroyed: buffers outlive every static
    return *devices;
  }

  int count() {
    int found = 0;
    check(driver().device_count(&found), "cuDeviceGetCount");
    return found;
  }

  void check_driver() {
    const std::lock_guard guard(mutex);
    driver();
    for (const auto& device : all) {
      if (device && generation == driver_generation() && device->process_ != getpid()) {
        throw Unavailable(kForked);
      }
    }
  }

  Device& get(int number) {
    const std::lock_guard guard(mutex);
    if (generation != driver_generation()) {
      for (auto& old : all) old.release();  // arrays may still be there; for tests alone
      all.clear();
      generation = driver_generation();
    }
    const int there = count();
    if (number < 0 || number >= there) {
      throw std::out_of_range("there is no device cuda:" + std::to_string(number) + ", only " +
                              std::to_string(there) + " of them");
    }
    if (all.size() < static_cast<size_t>(there)) all.resize(static_cast<size_t>(there));
    auto& device = all[static_cast<size_t>(number)];
    if (!device) device.reset(new Device(number));
    return *device;
  }
};

Device& Device::get(int number) { return Devices::instance().get(number); }

void Device::check_driver() { Devices::instance().check_driver(); }

void Device::shut_down() {
  Devices& devices = Devices::instance();
  const std::lock_guard guard(devices.mutex);
  for (const auto& device : devices.all) {
    if (devices.generation != driver_generation()) break;
    if (!device || device->process_ != getpid()) continue;
    if (driver().context_push(device->context_) != kSuccess) continue;
    for (const Stream& stream : {device->up_, device->own_, device->down_}) {
      driver().stream_synchronize(stream.handle);
    }
  }
  closed_ = true;
}

Device::Device(int number) : generation_(driver_generation()), number_(number), process_(getpid()) {
  const Driver& cuda = driver();
  const auto context = [number] { return "for device cuda:" + std::to_string(number); };
  check(cuda.device_get(&id_, number), "cuDeviceGet", context);
  check(cuda.context_retain(&context_, id_), "cuDevicePrimaryCtxRetain", context);
  const InContext current(context_);
  for (Stream* stream : {&own_, &up_, &down_}) {
    check(cuda.stream_create(&stream->handle, kStreamNonBlocking), "cuStreamCreate", context);
    stream->id = next_stream_id();
  }
  default_ = latest_ = own_;
  check(cuda.pool_default(&pool_, id_), "cuDeviceGetDefaultMemPool", context);
  uint64_t keep_all = UINT64_MAX;
  check(cuda.pool_set(pool_, kReleaseThreshold, &keep_all), "cuMemPoolSetAttribute", context);
}

bool Device::usable() const {
  return !closed_ && process_ == getpid() && generation_ == driver_generation();
}

InContext Device::enter() const {
  if (process_ != getpid()) throw Unavailable(kForked);
  return InContext(context_);
}

// --- Allocation ----------------------------------------------------------------------------------

Address Device::raw_allocate(size_t bytes, const Stream& stream) {
  const Driver& cuda = driver();
  Address address = 0;
  Result code = cuda.allocate(&address, std::max<size_t>(bytes, 1), stream.handle);
  if (code == kOutOfMemory) {  // what is to be freed by work under way is free after it
    Handle latest = nullptr;
    {
      const std::lock_guard guard(lock_);
      latest = latest_.handle;
    }
    check(cuda.stream_synchronize(latest), "cuStreamSynchronize");
    cuda.pool_trim(pool_, 0);
    code = cuda.allocate(&address, std::max<size_t>(bytes, 1), stream.handle);
  }
  if (code == kOutOfMemory) throw OutOfMemory(bytes);
  check(code, "cuMemAllocAsync", [&] { return "for " + std::to_string(bytes) + " bytes"; });
  return address;
}

bool Device::give_arena_back() {
  if (!issue_mutex_.try_lock()) return false;
  const std::lock_guard guard(issue_mutex_, std::adopt_lock);
  if (arena_ == 0) return false;
  driver().release(std::exchange(arena_, 0), latest_.handle);
  arena_bytes_ = 0;
  return true;
}

Ref<Buffer> Device::wrap(Address address, size_t bytes, void (*drop)(void*), void* context) {
  auto* memory = new Memory;
  memory->device = this;
  memory->owned = drop == nullptr;
  memory->drop = drop;
  memory->context = context;
  auto* data = reinterpret_cast<void*>(static_cast<uintptr_t>(address));
  Buffer* buffer = Buffer::wrap(data, bytes, drop_memory, memory);
  buffer->device_memory_ = memory;
  memory->address = address;
  return Ref<Buffer>::steal(buffer);
}

Ref<Buffer> Device::allocate(const Stream& stream, size_t bytes) {
  const InContext current = enter();
  Address address = 0;
  try {
    address = raw_allocate(bytes, stream);
  } catch (const OutOfMemory&) {
    if (!give_arena_back()) throw;
    address = raw_allocate(bytes, stream);
  }
  Ref<Buffer> buffer = wrap(address, bytes, nullptr, nullptr);
  memory_of(buffer.get())->written_on = stream;
  return buffer;
}

// Memory is freed after all that is issued: programs by the order of turns, copies by their events.
void Device::drop_memory(void* context) {
  std::unique_ptr<Memory> memory(static_cast<Memory*>(context));
  Device* device = memory->device;
  if (!memory->owned && (!memory->used || !device->usable())) {
    memory->drop(memory->context);
    return;
  }
  if (!device->usable()) return;
  {
    const std::lock_guard guard(device->lock_);
    device->dead_.push_back(memory.release());
  }
  device->free_dead();
}

// Whoever has the turn frees what others drop meanwhile.
void Device::free_dead() {
  for (;;) {
    {
      const std::lock_guard guard(lock_);
      if (dead_.empty()) return;
    }
    if (!issue_mutex_.try_lock()) return;
    const std::lock_guard guard(issue_mutex_, std::adopt_lock);
    std::vector<Memory*> dead;
    {
      const std::lock_guard inner(lock_);
      dead.swap(dead_);
    }
    for (Memory* memory : dead) free_in_turn(std::unique_ptr<Memory>(memory));
  }
}

void Device::free_in_turn(std::unique_ptr<Memory> memory) {
  Handle event = nullptr;
  try {
    const InContext current = enter();
    if (memory->written) {
      order_after(*memory, latest_);
    } else if (memory->owned) {  // never filled
      after_allocation(memory->written_on);
    }
    order_overwriting(memory.get());
    if (memory->owned) {
      driver().release(memory->address, latest_.handle);
      return;
    }
    event = take_event();
    check(driver().event_record(event, latest_.handle), "cuEventRecord");
  } catch (const std::exception&) {
    // A context that is lost frees nothing and needs to free nothing.
    if (memory->owned) return;
  }
  const std::lock_guard guard(lock_);
  retired_.emplace_back(event, std::move(memory));
  retired_count_ = retired_.size();
}

// A stream that a user left has been waited for by those of later turns.
void Device::after_allocation(const Stream& stream) {
  if (stream.id == latest_.id) return;
  bool there = stream.id == own_.id || stream.id == up_.id;
  if (!there) {
    const std::lock_guard guard(lock_);
    there = std::ranges::count(chosen_, stream.id) > 0;
  }
  if (there) wait_for_work_on(stream.handle, latest_.handle);
}

void Device::drop_retired() {
  if (retired_count_ == 0 || !usable()) return;
  std::vector<std::pair<Handle, std::unique_ptr<Memory>>> here, kept;
  {
    const std::lock_guard guard(lock_);
    here.swap(retired_);
  }
  for (auto& [event, memory] : here) {
    if (event != nullptr) {
      try {
        const InContext current = enter();
        if (driver().event_query(event) == kNotReady) {
          kept.emplace_back(event, std::move(memory));
          continue;
        }
      } catch (const CudaError&) {  // the context is lost: nothing runs any more
      }
      give_event(event);
    }
    memory->drop(memory->context);
  }
  const std::lock_guard guard(lock_);
  for (auto& each : kept) retired_.push_back(std::move(each));
  retired_count_ = retired_.size();
}

Handle Device::capturing() {
  if (capturing_ == nullptr) {
    check(driver().stream_create(&capturing_, kStreamNonBlocking), "cuStreamCreate");
  }
  return capturing_;
}

Address Device::arena(size_t bytes) {
  if (bytes <= arena_bytes_) return arena_;
  if (arena_ != 0) {
    check(driver().release(std::exchange(arena_, 0), latest_.handle), "cuMemFreeAsync");
  }
  arena_bytes_ = 0;
  arena_ = raw_allocate(bytes, latest_);
  arena_bytes_ = bytes;
  return arena_;
}

// --- Order ---------------------------------------------------------------------------------------

Handle Device::take_event() {
  {
    const std::lock_guard guard(lock_);
    if (!events_.empty()) {
      const Handle event = events_.back();
      events_.pop_back();
      return event;
    }
  }
  Handle event = nullptr;
  check(driver().event_create(&event, kEventWithoutTiming), "cuEventCreate");
  return event;
}

void Device::give_event(Handle event) {
  const std::lock_guard guard(lock_);
  events_.push_back(event);
}

namespace {

void wait_on_stream(Handle stream, const Completion* completion) {
  if (completion == nullptr || completion->done()) return;
  const auto* event = dynamic_cast<const Event*>(completion->asked());
  if (event == nullptr) return;
  check(driver().stream_wait(stream, event->handle(), 0), "cuStreamWaitEvent");
}

}  // namespace

void Device::order_after(const Memory& memory, const Stream& stream) {
  if (memory.written_on.id != stream.id) wait_on_stream(stream.handle, memory.written.get());
}

void Device::order_consumer(const Memory& memory, Handle stream) {
  const InContext current = enter();
  wait_on_stream(stream, memory.written.get());
}

void Device::order_overwriting(Memory* memory) {
  Ref<Buffer> host;
  std::vector<Ref<Completion>> readers;
  {
    const std::lock_guard guard(memory->lock);
    host = std::move(memory->host);
    memory->host = {};
    readers.swap(memory->readers);
  }
  if (host) wait_on_stream(latest_.handle, host->pending());
  for (const auto& reader : readers) wait_on_stream(latest_.handle, reader.get());
}

void Device::finish_with(const Stream& stream, Buffer* const* buffers, size_t count,
                         const std::string& what, const std::shared_ptr<Watch>& watch) {
  if (count == 0) return;
  const Handle event = take_event();
  const Result code = driver().event_record(event, stream.handle);
  if (code != kSuccess) {
    give_event(event);
    check(code, "cuEventRecord");
  }
  const auto completion =
      Ref<Completion>::steal(Completion::of(std::make_unique<Event>(this, event, what, watch)));
  for (size_t i = 0; i < count; ++i) {
    buffers[i]->set_pending(completion.get());
    if (Memory* memory = memory_of(buffers[i])) {
      memory->written = completion;
      memory->written_on = stream;
    }
  }
}

}  // namespace lamina::cuda
