// cuda_device.cpp -- see cuda_device.h.
#include "cuda_device.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace lamina::cuda {
namespace {

constexpr size_t kDirectBytes = 64 << 10;  // up to here the driver stages a copy itself, at once
constexpr size_t kChunkBytes = 4 << 20;    // of a large copy
constexpr size_t kMostStaging = 4;         // chunks on their way
constexpr size_t kMostPinned = 64 << 20;   // of one copy to the host that is pinned as a whole
constexpr size_t kPinnedKept = 256 << 20;  // of blocks kept for reuse
constexpr size_t kSmallestPinned = 12;     // log2

std::atomic<bool> closed{false};  // at the end of the process

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

// Pinned memory that a Buffer of the host is.
struct Pinned {
  Device* device;
  void* block;
  size_t bytes;
  Ref<Completion> filled;
};

size_t class_of(size_t bytes) {
  return std::max<size_t>(kSmallestPinned, std::bit_width(std::max<size_t>(bytes, 1) - 1));
}

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
  closed = true;
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
  return !closed && process_ == getpid() && generation_ == driver_generation();
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

// --- Pinned memory -------------------------------------------------------------------------------

void* Device::take_pinned(size_t bytes) {
  const size_t size_class = class_of(bytes);
  {
    const std::lock_guard guard(lock_);
    auto& kept = pinned_[size_class];
    if (!kept.empty()) {
      void* block = kept.back();
      kept.pop_back();
      pinned_bytes_ -= size_t{1} << size_class;
      return block;
    }
  }
  void* block = nullptr;
  const size_t size = size_t{1} << size_class;
  const Result code = driver().host_allocate(&block, size, kHostPortable);
  if (code == kOutOfMemory) throw OutOfMemory(size);
  check(code, "cuMemHostAlloc", [&] { return "for " + std::to_string(size) + " bytes"; });
  return block;
}

void Device::give_pinned(void* block, size_t bytes) {
  const size_t size_class = class_of(bytes);
  {
    const std::lock_guard guard(lock_);
    if (closed || pinned_bytes_ + (size_t{1} << size_class) <= kPinnedKept) {
      pinned_[size_class].push_back(block);
      pinned_bytes_ += size_t{1} << size_class;
      return;
    }
  }
  driver().host_release(block);
}

void Device::drop_pinned(void* context) {
  const std::unique_ptr<Pinned> pinned(static_cast<Pinned*>(context));
  if (!pinned->device->usable()) return;
  while (pinned->filled && !pinned->filled->done()) pinned->filled->wait(1'000'000);
  pinned->device->give_pinned(pinned->block, pinned->bytes);
}

// --- Copies --------------------------------------------------------------------------------------

void Device::wait_for_oldest_staging() {
  const auto [event, block] = staging_.front();
  staging_.pop_front();
  const Result code = driver().event_synchronize(event);
  give_event(event);
  give_pinned(block, kChunkBytes);
  check(code, "cuEventSynchronize", "for a copy to the GPU");
}

Ref<Buffer> Device::upload(const void* data, size_t bytes) {
  enter();
  const Driver& cuda = driver();
  const auto context = [bytes] { return "for " + std::to_string(bytes) + " bytes"; };
  const Handle stream = bytes <= kDirectBytes ? compute_ : up_;
  Ref<Buffer> buffer = allocate_on(stream, bytes);
  const Address target = memory_of(buffer.get())->address;
  Buffer* const buffers[] = {buffer.get()};
  if (bytes <= kDirectBytes) {
    if (bytes == 0) return buffer;
    check(cuda.copy_to_device(target, data, bytes, compute_), "cuMemcpyHtoDAsync", context);
    finish_with(compute_, buffers, 1, "a copy to cuda:" + std::to_string(number_));
    return buffer;
  }
  const std::lock_guard guard(staging_mutex_);
  const auto* source = static_cast<const char*>(data);
  for (size_t done = 0; done < bytes; done += kChunkBytes) {
    const size_t size = std::min(kChunkBytes, bytes - done);
    if (staging_.size() >= kMostStaging) wait_for_oldest_staging();
    void* block = take_pinned(kChunkBytes);
    std::memcpy(block, source + done, size);
    Result code = cuda.copy_to_device(target + done, block, size, up_);
    Handle event = nullptr;
    if (code == kSuccess) {
      event = take_event();
      code = cuda.event_record(event, up_);
    }
    if (code != kSuccess) {
      cuda.stream_synchronize(up_);
      if (event != nullptr) give_event(event);
      give_pinned(block, kChunkBytes);
      check(code, "cuMemcpyHtoDAsync", context);
    }
    staging_.emplace_back(event, block);
  }
  finish_with(up_, buffers, 1, "a copy to cuda:" + std::to_string(number_));
  return buffer;
}

Ref<Buffer> Device::download(Buffer* buffer) {
  Memory* memory = memory_of(buffer);
  {
    const std::lock_guard guard(memory->lock);
    if (memory->host) return memory->host;
  }
  enter();
  const Driver& cuda = driver();
  const size_t bytes = buffer->bytes();
  const auto context = [bytes] { return "for " + std::to_string(bytes) + " bytes"; };
  const std::string what = "a copy from cuda:" + std::to_string(number_);
  Ref<Buffer> host;
  order_after(*memory, down_);
  if (bytes <= kMostPinned) {
    auto* pinned = new Pinned{this, nullptr, bytes, {}};
    host = Ref<Buffer>::steal(Buffer::wrap(
        nullptr, bytes,
        [](void* p) {
          if (static_cast<Pinned*>(p)->block != nullptr) {
            drop_pinned(p);
          } else {
            delete static_cast<Pinned*>(p);
          }
        },
        pinned));
    pinned->block = take_pinned(bytes);
    host->data_ = pinned->block;
    if (bytes > 0) {
      check(cuda.copy_to_host(pinned->block, memory->address, bytes, down_), "cuMemcpyDtoHAsync",
            context);
      Buffer* const buffers[] = {host.get()};
      finish_with(down_, buffers, 1, what);
      pinned->filled = Ref<Completion>::share(host->pending());
    }
  } else {
    host = Ref<Buffer>::steal(Buffer::allocate(bytes));
    auto* target = static_cast<char*>(host->data());
    void* block = take_pinned(kChunkBytes);
    for (size_t done = 0; done < bytes; done += kChunkBytes) {
      const size_t size = std::min(kChunkBytes, bytes - done);
      Result code = cuda.copy_to_host(block, memory->address + done, size, down_);
      if (code == kSuccess) code = cuda.stream_synchronize(down_);
      if (code != kSuccess) give_pinned(block, kChunkBytes);
      check(code, "cuMemcpyDtoHAsync", context);
      std::memcpy(target + done, block, size);
    }
    give_pinned(block, kChunkBytes);
  }
  const std::lock_guard guard(memory->lock);
  if (!memory->host) memory->host = host;
  return memory->host;
}

Ref<Buffer> Device::copy(Buffer* buffer) {
  enter();
  Ref<Buffer> made = allocate(buffer->bytes());
  if (buffer->bytes() == 0) return made;
  Memory* source = memory_of(buffer);
  order_after(*source, compute_);
  check(driver().copy_on_device(memory_of(made.get())->address, source->address, buffer->bytes(),
                                compute_),
        "cuMemcpyDtoDAsync");
  Buffer* const buffers[] = {made.get()};
  finish_with(compute_, buffers, 1, "a copy on cuda:" + std::to_string(number_));
  return made;
}

}  // namespace lamina::cuda
