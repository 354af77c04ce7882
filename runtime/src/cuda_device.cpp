// cuda_device.cpp -- see cuda_device.h.
#include "cuda_device.h"

#include <unistd.h>

#include <algorithm>

namespace lamina::cuda {
namespace {

// The moment at which an event is reached.
class Event : public Completable {
 public:
  Event(Device* device, Handle event, std::string what)
      : device_(device), event_(event), what_(std::move(what)) {}
  ~Event() override { device_->give_event(event_); }

  Handle handle() const { return event_; }

  bool over(Error* error) override {
    if (!device_->usable()) return true;
    try {
      device_->enter();
      const Result code = driver().event_query(event_);
      if (code == kNotReady) return false;
      check(code, "the GPU's work", "");
    } catch (const std::exception& failure) {
      *error = {"[" + what_ + "] " + failure.what(), nullptr, nullptr};
    }
    return true;
  }

 private:
  Device* device_;
  Handle event_;
  std::string what_;
};

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

int Device::count() { return Devices::instance().count(); }

void Device::shut_down() {
  Devices& devices = Devices::instance();
  const std::lock_guard guard(devices.mutex);
  for (const auto& device : devices.all) {
    if (devices.generation != driver_generation()) break;
    if (!device || device->process_ != getpid()) continue;
    driver().context_set(device->context_);
    for (const Handle stream : {device->up_, device->compute_, device->down_}) {
      driver().stream_synchronize(stream);
    }
  }
  closed_ = true;
}

Device::Device(int number) : generation_(driver_generation()), number_(number), process_(getpid()) {
  const Driver& cuda = driver();
  const auto context = [number] { return "for device cuda:" + std::to_string(number); };
  DeviceId id = 0;
  char name[256] = "";
  check(cuda.device_get(&id, number), "cuDeviceGet", context);
  check(cuda.device_name(name, sizeof name, id), "cuDeviceGetName", context);
  name_ = name;
  check(cuda.device_attribute(&major_, kMajor, id), "cuDeviceGetAttribute", context);
  check(cuda.device_attribute(&minor_, kMinor, id), "cuDeviceGetAttribute", context);
  check(cuda.context_retain(&context_, id), "cuDevicePrimaryCtxRetain", context);
  check(cuda.context_set(context_), "cuCtxSetCurrent", context);
  for (Handle* stream : {&compute_, &up_, &down_}) {
    check(cuda.stream_create(stream, kStreamNonBlocking), "cuStreamCreate", context);
  }
  check(cuda.pool_default(&pool_, id), "cuDeviceGetDefaultMemPool", context);
  uint64_t keep_all = UINT64_MAX;
  check(cuda.pool_set(pool_, kReleaseThreshold, &keep_all), "cuMemPoolSetAttribute", context);
}

bool Device::usable() const {
  return !closed_ && process_ == getpid() && generation_ == driver_generation();
}

void Device::enter() {
  if (process_ != getpid()) {
    throw Unavailable(
        "CUDA can't be used in a process forked from one that used it: start processes by "
        "multiprocessing's 'spawn' or 'forkserver'");
  }
  check(driver().context_set(context_), "cuCtxSetCurrent");
}

void Device::memory_info(size_t* free, size_t* total) {
  enter();
  check(driver().memory_info(free, total), "cuMemGetInfo");
}

// --- Allocation ----------------------------------------------------------------------------------

Address Device::raw_allocate(size_t bytes, Handle stream) {
  const Driver& cuda = driver();
  Address address = 0;
  Result code = cuda.allocate(&address, std::max<size_t>(bytes, 1), stream);
  if (code == kOutOfMemory) {  // what is to be freed by work under way is free after it
    check(cuda.stream_synchronize(compute_), "cuStreamSynchronize");
    cuda.pool_trim(pool_, 0);
    code = cuda.allocate(&address, std::max<size_t>(bytes, 1), stream);
  }
  if (code == kOutOfMemory) throw OutOfMemory(bytes);
  check(code, "cuMemAllocAsync", [&] { return "for " + std::to_string(bytes) + " bytes"; });
  return address;
}

bool Device::give_arena_back() {
  if (!issue_mutex_.try_lock()) return false;
  const std::lock_guard guard(issue_mutex_, std::adopt_lock);
  if (arena_ == 0) return false;
  driver().release(std::exchange(arena_, 0), compute_);
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

Ref<Buffer> Device::allocate(size_t bytes) {
  enter();
  return allocate_on(compute_, bytes);
}

Ref<Buffer> Device::allocate_on(Handle stream, size_t bytes) {
  try {
    return wrap(raw_allocate(bytes, stream), bytes, nullptr, nullptr);
  } catch (const OutOfMemory&) {
    if (!give_arena_back()) throw;
    return wrap(raw_allocate(bytes, stream), bytes, nullptr, nullptr);
  }
}

// Frees after all that is issued: programs by their order on the stream, copies by their events.
void Device::drop_memory(void* context) {
  const std::unique_ptr<Memory> memory(static_cast<Memory*>(context));
  if (!memory->owned) {
    memory->drop(memory->context);
    return;
  }
  Device* device = memory->device;
  if (!device->usable()) return;
  try {
    device->enter();
    device->order_after(*memory, device->compute_);
    device->order_overwriting(memory.get());
    driver().release(memory->address, device->compute_);
  } catch (const std::exception&) {
    // A context that is lost frees nothing and needs to free nothing.
  }
}

Handle Device::capturing() {
  if (capturing_ == nullptr) {
    check(driver().stream_create(&capturing_, kStreamNonBlocking), "cuStreamCreate");
  }
  return capturing_;
}

Address Device::arena(size_t bytes) {
  if (bytes <= arena_bytes_) return arena_;
  if (arena_ != 0) check(driver().release(std::exchange(arena_, 0), compute_), "cuMemFreeAsync");
  arena_bytes_ = 0;
  arena_ = raw_allocate(bytes, compute_);
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

void Device::order_after(const Memory& memory, Handle stream) {
  if (memory.written_on != stream) wait_on_stream(stream, memory.written.get());
}

void Device::order_overwriting(Memory* memory) {
  Ref<Buffer> host;
  {
    const std::lock_guard guard(memory->lock);
    host = std::move(memory->host);
    memory->host = {};
  }
  if (host) wait_on_stream(compute_, host->pending());
}

void Device::finish_with(Handle stream, Buffer* const* buffers, size_t count,
                         const std::string& what) {
  if (count == 0) return;
  const Handle event = take_event();
  const Result code = driver().event_record(event, stream);
  if (code != kSuccess) {
    give_event(event);
    check(code, "cuEventRecord");
  }
  const auto completion =
      Ref<Completion>::steal(Completion::of(std::make_unique<Event>(this, event, what)));
  for (size_t i = 0; i < count; ++i) {
    buffers[i]->set_pending(completion.get());
    if (Memory* memory = memory_of(buffers[i])) {
      memory->written = completion;
      memory->written_on = stream;
    }
  }
}

}  // namespace lamina::cuda
