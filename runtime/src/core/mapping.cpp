#include "core/mapping.h"

#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace lamina {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kHugePage = size_t{2} << 20;

// A huge page faults once where small ones fault 512 times, which takes 0.3 to 1 ms. It takes 0.1
// to 0.3 itself, most of it for the zeros. But a kernel that has none at hand moves others' memory
// about to make one, and in a virtual machine memory that nobody has used before must come from the
// host, 4 KB at a time: 2 to 6 ms, while small pages are mostly those that were given back last. So
// the first huge pages of a block are touched and timed before the others are asked for.
constexpr int64_t kSlow = 1'000'000;  // ns
constexpr size_t kMostTried = 16;
constexpr size_t kTriedOf = 16;                          // one of so many of a block
constexpr int64_t kUntilNextTrial = int64_t{512} << 20;  // bytes in small pages after a slow one

std::atomic<int64_t> g_in_small_pages{0};  // bytes for which no huge page is tried

int64_t thread_ns() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void choose_page_size(char* block, size_t bytes) {
  size_t tried = 0;
  if (g_in_small_pages.load(std::memory_order_relaxed) <= 0) {
    madvise(block, bytes, MADV_HUGEPAGE);
    const auto touch = [&](size_t at) {
      const int64_t start = thread_ns();
      *static_cast<volatile char*>(block + at) = 0;
      return thread_ns() - start;
    };
    if (huge_pages_come_soon(bytes, touch, tried)) return;
    g_in_small_pages.store(kUntilNextTrial, std::memory_order_relaxed);
  }
  madvise(block + tried, bytes - tried, MADV_NOHUGEPAGE);
  g_in_small_pages.fetch_sub(static_cast<int64_t>(bytes), std::memory_order_relaxed);
}

}  // namespace

bool huge_pages_come_soon(size_t bytes, const std::function<int64_t(size_t)>& touch,
                          size_t& tried) {
  const size_t most = std::clamp<size_t>(bytes / kHugePage / kTriedOf, 1, kMostTried);
  const size_t too_many = std::min<size_t>(most, 2);
  size_t slow = 0;
  for (tried = 0; tried < most * kHugePage && slow < too_many; tried += kHugePage) {
    slow += touch(tried) > kSlow;
  }
  return slow < too_many;
}

void* map_pages(size_t bytes) {
  const size_t alignment = bytes >= 2 * kHugePage ? kHugePage : kPage;
  const size_t span = bytes + alignment;
  void* raw = mmap(nullptr, span, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  const auto start = reinterpret_cast<uintptr_t>(raw);
  const uintptr_t aligned = (start + alignment - 1) / alignment * alignment;
  if (aligned > start) munmap(raw, aligned - start);
  if (const uintptr_t end = start + span; end > aligned + bytes) {
    munmap(reinterpret_cast<void*>(aligned + bytes), end - aligned - bytes);
  }
  void* block = reinterpret_cast<void*>(aligned);
  if (alignment == kHugePage) choose_page_size(static_cast<char*>(block), bytes);
  return block;
}

}  // namespace lamina
