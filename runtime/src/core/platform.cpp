// platform.cpp -- Linux's side of platform.h.
#include "core/platform.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <ctime>

namespace lamina {
namespace {

uint32_t* futex_address(const std::atomic<uint32_t>& word) {
  return reinterpret_cast<uint32_t*>(const_cast<std::atomic<uint32_t>*>(&word));
}

int widest_vectors() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return 512;
  if (__builtin_cpu_supports("avx2")) return 256;
#endif
  return 128;
}

std::atomic<int>& vector_limit() {
  static std::atomic<int> limit{widest_vectors()};
  return limit;
}

}  // namespace

int vector_bits() { return vector_limit().load(std::memory_order_relaxed); }

void limit_vector_bits(int most) { vector_limit() = std::min(most, widest_vectors()); }

bool request_tile_registers() {
#if defined(__x86_64__)
  constexpr int kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM
  static const bool granted = syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  return granted;
#else
  return false;
#endif
}

void futex_wait(const std::atomic<uint32_t>& word, uint32_t expected, int64_t timeout_ns) {
  timespec limit{timeout_ns / 1'000'000'000, timeout_ns % 1'000'000'000};
  syscall(SYS_futex, futex_address(word), FUTEX_WAIT_PRIVATE, expected,
          timeout_ns < 0 ? nullptr : &limit, nullptr, 0);
}

void futex_wake_all(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, futex_address(word), FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

std::vector<int> allowed_cpus() {
  std::vector<int> cpus;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
    }
  }
  if (cpus.empty()) cpus.push_back(0);
  return cpus;
}

int default_thread_count(const Cgroups& cgroups) {
  const double quota = std::ceil(cgroups.cpus());
  const double cpus = static_cast<double>(allowed_cpus().size());
  return std::max(1, static_cast<int>(std::min(cpus, quota)));
}

size_t memory_limit(const Cgroups& cgroups) {
  struct sysinfo info{};
  size_t limit = SIZE_MAX;
  if (sysinfo(&info) == 0) limit = (info.totalram + info.totalswap) * info.mem_unit;
  return std::min(limit, cgroups.memory());
}

int64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * int64_t{1'000'000'000} + t.tv_nsec;
}

void SpinLock::yield() { sched_yield(); }

}  // namespace lamina
