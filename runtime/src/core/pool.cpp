// pool.cpp -- Buffer and the caching allocator behind it.
//
// Fresh pages cost more than the work done on them (1-2 GB/s against 50), so memory that was
// touched once is kept, by size class, up to a limit. Eight classes to each power of two: at most
// 12.5 % of a block is unused. The Buffer header lies in the 64 bytes before the data.
#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <new>

#include "core/buffer.h"
#include "core/mapping.h"
#include "core/platform.h"

namespace lamina {
namespace {

constexpr size_t kHeader = Buffer::kAlignment;
constexpr size_t kSmallest = 64;
constexpr size_t kMapFrom = size_t{1} << 20;  // blocks from here on are mapped on their own
constexpr size_t kLargest = size_t{1} << 46;
constexpr uint32_t kClasses = 8 * (47 - 6) + 8;

// Class 8k+j holds blocks of 2^(6+k) * (8+j)/8 bytes.
uint32_t class_of(size_t bytes) {
  if (bytes <= kSmallest) return 0;
  const int log = std::bit_width(bytes - 1) - 1;  // 2^log < bytes <= 2^(log+1)
  const size_t step = std::max<size_t>((size_t{1} << log) / 8, 1);
  const size_t eighths = (bytes - (size_t{1} << log) + step - 1) / step;
  return static_cast<uint32_t>(8 * (log - 6) + eighths);
}

size_t class_bytes(uint32_t size_class) {
  const size_t base = kSmallest << (size_class / 8);
  return (base + base / 8 * (size_class % 8) + 63) / 64 * 64;
}

size_t mapped_bytes(uint32_t size_class) {
  const size_t page = 4096;
  return (class_bytes(size_class) + kHeader + page - 1) / page * page;
}

}  // namespace

class Pool {
 public:
  // Never destroyed: buffers outlive every static.
  static Pool& instance() {
    static Pool* pool = new Pool;
    return *pool;
  }

  Buffer* allocate(size_t bytes) {
    if (bytes > kLargest) throw OutOfMemory(bytes);
    const uint32_t size_class = class_of(bytes);
    Buffer* buffer = nullptr;
    {
      std::lock_guard guard(lock_);
      ++stats_.allocations;
      if ((buffer = free_[size_class]) != nullptr) {
        free_[size_class] = buffer->next_free_;
        stats_.cached_bytes -= class_bytes(size_class);
        stats_.live_bytes += class_bytes(size_class);
        ++stats_.reuses;
      }
    }
    if (buffer == nullptr) buffer = fresh(bytes, size_class);
    buffer->refs_.store(1, std::memory_order_relaxed);
    buffer->bytes_ = bytes;
    buffer->context_ = nullptr;
    return buffer;
  }

  void give_back(Buffer* buffer) {
    const uint32_t size_class = buffer->size_class_;
    const size_t bytes = class_bytes(size_class);
    {
      std::lock_guard guard(lock_);
      stats_.live_bytes -= bytes;
      if (stats_.cached_bytes + bytes <= stats_.limit_bytes) {
        buffer->next_free_ = free_[size_class];
        free_[size_class] = buffer;
        stats_.cached_bytes += bytes;
        return;
      }
    }
    unmap(buffer);
  }

  void trim(size_t keep_bytes) {
    // Largest blocks first: they are the dearest to keep and the fewest to free.
    for (uint32_t size_class = kClasses; size_class-- > 0;) {
      for (;;) {
        Buffer* buffer = nullptr;
        {
          std::lock_guard guard(lock_);
          buffer = free_[size_class];
          if (buffer == nullptr || stats_.cached_bytes <= keep_bytes) break;
          free_[size_class] = buffer->next_free_;
          stats_.cached_bytes -= class_bytes(size_class);
        }
        unmap(buffer);
      }
    }
  }

  void set_limit(size_t bytes) {
    {
      std::lock_guard guard(lock_);
      stats_.limit_bytes = bytes;
    }
    trim(bytes);
  }

  PoolStats stats() {
    std::lock_guard guard(lock_);
    return stats_;
  }

 private:
  Pool() : memory_limit_(memory_limit()) {
    stats_.limit_bytes = memory_limit_ / 4;
    pthread_atfork([] { instance().lock_.lock(); }, [] { instance().lock_.unlock(); },
                   [] { instance().lock_.unlock(); });
  }

  Buffer* fresh(size_t bytes, uint32_t size_class) {
    const size_t size = class_bytes(size_class);
    {
      std::lock_guard guard(lock_);
      // Linux promises more than it has; asking first turns the OOM killer into a MemoryError.
      if (size > memory_limit_ || stats_.live_bytes > memory_limit_ - size) {
        throw OutOfMemory(bytes);
      }
      stats_.live_bytes += size;
    }
    if (size >= kMapFrom && stats().cached_bytes + stats().live_bytes > memory_limit_) trim(0);
    void* block = block_of(size_class);
    if (block == nullptr) {
      trim(0);
      block = block_of(size_class);
    }
    if (block == nullptr) {
      std::lock_guard guard(lock_);
      stats_.live_bytes -= size;
      throw OutOfMemory(bytes);
    }
    Buffer* buffer = new (block) Buffer;
    buffer->size_class_ = size_class;
    buffer->data_ = static_cast<char*>(block) + kHeader;
    return buffer;
  }

  static void* block_of(uint32_t size_class) {
    const size_t size = class_bytes(size_class);
    if (size >= kMapFrom) return map_pages(mapped_bytes(size_class));
    return std::aligned_alloc(Buffer::kAlignment, size + kHeader);
  }

  static void unmap(Buffer* buffer) {
    const uint32_t size_class = buffer->size_class_;
    buffer->~Buffer();
    if (class_bytes(size_class) >= kMapFrom) {
      munmap(buffer, mapped_bytes(size_class));
    } else {
      std::free(buffer);
    }
  }

  SpinLock lock_;
  std::array<Buffer*, kClasses> free_{};
  PoolStats stats_{};
  const size_t memory_limit_;
};

OutOfMemory::OutOfMemory(size_t bytes) : std::runtime_error("out of memory"), bytes(bytes) {}

Buffer* Buffer::allocate(size_t bytes) { return Pool::instance().allocate(bytes); }

Buffer* Buffer::wrap(void* data, size_t bytes, void (*drop)(void*), void* context) {
  auto* buffer = new Buffer;
  buffer->data_ = data;
  buffer->bytes_ = bytes;
  buffer->context_ = context;
  buffer->drop_ = drop;
  return buffer;
}

void Buffer::set_pending(Completion* completion) {
  completion->retain();
  if (pending_ != nullptr) pending_->release();
  pending_ = completion;
}

void Buffer::destroy() {
  if (pending_ != nullptr) {
    pending_->release();
    pending_ = nullptr;
  }
  if (pooled()) {
    Pool::instance().give_back(this);
  } else {
    drop_(context_);
    delete this;
  }
}

PoolStats pool_stats() { return Pool::instance().stats(); }
void set_pool_limit(size_t bytes) { Pool::instance().set_limit(bytes); }
void trim_pool() { Pool::instance().trim(0); }

}  // namespace lamina
