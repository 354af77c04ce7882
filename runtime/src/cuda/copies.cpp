// copies.cpp -- a GPU's pinned memory of the host, and copies by way of it: see device.h.
#include <algorithm>
#include <bit>
#include <cstring>

#include "cuda/device.h"

namespace lamina::cuda {
namespace {

constexpr size_t kDirectBytes = 64 << 10;  // up to here the driver stages a copy itself, at once
constexpr size_t kChunkBytes = 4 << 20;    // of a large copy
constexpr size_t kMostStaging = 4;         // chunks on their way
constexpr size_t kMostPinned = 64 << 20;   // of one copy to the host that is pinned as a whole
constexpr size_t kPinnedKept = 256 << 20;  // of blocks kept for reuse
constexpr size_t kSmallestPinned = 12;     // log2

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
    if (closed_ || pinned_bytes_ + (size_t{1} << size_class) <= kPinnedKept) {
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
  const InContext current = enter();
  const Driver& cuda = driver();
  const auto context = [bytes] { return "for " + std::to_string(bytes) + " bytes"; };
  const Stream stream = bytes <= kDirectBytes ? this->stream() : up_;
  Ref<Buffer> buffer = allocate(stream, bytes);
  const Address target = memory_of(buffer.get())->address;
  Buffer* const buffers[] = {buffer.get()};
  if (bytes <= kDirectBytes) {
    if (bytes == 0) return buffer;
    check(cuda.copy_to_device(target, data, bytes, stream.handle), "cuMemcpyHtoDAsync", context);
    finish_with(stream, buffers, 1, "a copy to cuda:" + std::to_string(number_));
    return buffer;
  }
  const std::lock_guard guard(staging_mutex_);
  const auto* source = static_cast<const char*>(data);
  for (size_t done = 0; done < bytes; done += kChunkBytes) {
    const size_t size = std::min(kChunkBytes, bytes - done);
    if (staging_.size() >= kMostStaging) wait_for_oldest_staging();
    void* block = take_pinned(kChunkBytes);
    std::memcpy(block, source + done, size);
    Result code = cuda.copy_to_device(target + done, block, size, up_.handle);
    Handle event = nullptr;
    if (code == kSuccess) {
      event = take_event();
      code = cuda.event_record(event, up_.handle);
    }
    if (code != kSuccess) {
      cuda.stream_synchronize(up_.handle);
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
  const InContext current = enter();
  const Driver& cuda = driver();
  const size_t bytes = buffer->bytes();
  const auto context = [bytes] { return "for " + std::to_string(bytes) + " bytes"; };
  const std::string what = "a copy from cuda:" + std::to_string(number_);
  Ref<Buffer> host;
  memory->used = true;
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
      check(cuda.copy_to_host(pinned->block, memory->address, bytes, down_.handle),
            "cuMemcpyDtoHAsync", context);
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
      Result code = cuda.copy_to_host(block, memory->address + done, size, down_.handle);
      if (code == kSuccess) code = cuda.stream_synchronize(down_.handle);
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
  const Stream stream = this->stream();
  Ref<Buffer> made = allocate(stream, buffer->bytes());
  if (buffer->bytes() == 0) return made;
  Memory* source = memory_of(buffer);
  source->used = true;
  const Turn turn(*this, stream);
  order_after(*source, stream);
  check(driver().copy_on_device(memory_of(made.get())->address, source->address, buffer->bytes(),
                                stream.handle),
        "cuMemcpyDtoDAsync");
  Buffer* const buffers[] = {made.get()};
  finish_with(stream, buffers, 1, "a copy on cuda:" + std::to_string(number_));
  return made;
}

// What the driver allocates from its pools follows the pools' own rules of access.
void Device::reach(const Device& other) {
  const std::lock_guard guard(reach_mutex_);
  if (!asked_to_reach_.insert(other.number_).second) return;
  int can = 0;
  check(driver().can_reach(&can, id_, other.id_), "cuDeviceCanAccessPeer");
  if (can == 0) return;
  const PoolAccess access{kDeviceLocation, id_, kReadAndWrite};
  check(driver().pool_access(other.pool_, &access, 1), "cuMemPoolSetAccess");
}

Ref<Buffer> Device::copy_from_other(Buffer* buffer) {
  const InContext current = enter();
  const size_t bytes = buffer->bytes();
  const Stream stream = bytes <= kDirectBytes ? this->stream() : up_;
  Ref<Buffer> made = allocate(stream, bytes);
  if (bytes == 0) return made;
  Memory* source = memory_of(buffer);
  const Device& other = *source->device;
  const std::string what =
      "a copy from cuda:" + std::to_string(other.number_) + " to cuda:" + std::to_string(number_);
  reach(other);
  source->used = true;
  order_after(*source, stream);
  check(driver().copy_between(memory_of(made.get())->address, context_, source->address,
                              other.context_, bytes, stream.handle),
        "cuMemcpyPeerAsync", [&] { return what; });
  Buffer* const buffers[] = {made.get()};
  finish_with(stream, buffers, 1, what);
  const std::lock_guard guard(source->lock);
  std::erase_if(source->readers, [](const Ref<Completion>& each) { return each->done(); });
  source->readers.push_back(Ref<Completion>::share(made->pending()));
  return made;
}

}  // namespace lamina::cuda
