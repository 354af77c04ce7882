// platform.h -- what the runtime asks of the machine: futexes, CPU count, spin hints, denormals.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/shared.h"
#include "cpu/cgroup.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace lamina {

// Sleeps while *word == expected, at most timeout_ns (negative: no limit). May wake early.
void futex_wait(const std::atomic<uint32_t>& word, uint32_t expected, int64_t timeout_ns = -1);
void futex_wake_all(std::atomic<uint32_t>& word);

// The CPUs this process may run on, and how many of them its cgroup's quota pays for.
std::vector<int> allowed_cpus();
int default_thread_count(const Cgroups& cgroups = {});

// Bytes this process can hope to use: the machine's memory and swap, or its cgroup's limit if less.
size_t memory_limit(const Cgroups& cgroups = {});

int64_t now_ns();

inline void cpu_relax() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Asks for the use of tile registers, which Linux grants a process and its threads on demand: they
// are 8 KB more to save. Whether it was granted; false where there are none.
bool request_tile_registers();

// How wide the vectors are that the runtime's own loops may use: 512 bits with AVX-512F, 256 with
// AVX2, else 128; and no wider than the limit, which is for processors that only seem to be less.
int vector_bits();
void limit_vector_bits(int most);

// The floating-point control word of this thread (rounding, flush-to-zero), as opaque bits.
inline uint64_t fp_control() {
#if defined(__x86_64__)
  return _mm_getcsr();
#elif defined(__aarch64__)
  uint64_t fpcr;
  asm volatile("mrs %0, fpcr" : "=r"(fpcr));
  return fpcr;
#endif
}

inline void set_fp_control(uint64_t bits) {
#if defined(__x86_64__)
  _mm_setcsr(static_cast<uint32_t>(bits));
#elif defined(__aarch64__)
  asm volatile("msr fpcr, %0" : : "r"(bits));
#endif
}

#if defined(__x86_64__)
inline constexpr uint64_t kFlushDenormals = 0x8040;  // FTZ | DAZ
#elif defined(__aarch64__)
inline constexpr uint64_t kFlushDenormals = uint64_t{1} << 24;  // FZ
#else
#error "lamina's runtime knows x86-64 and AArch64"
#endif

// Compiled code runs with denormals flushed, as XLA's does: they cost 10x where they appear.
class FlushDenormals {
 public:
  FlushDenormals() : saved_(fp_control()) { set_fp_control(saved_ | kFlushDenormals); }
  ~FlushDenormals() { set_fp_control(saved_); }
  FlushDenormals(const FlushDenormals&) = delete;

 private:
  uint64_t saved_;
};

// A lock held for nanoseconds. Survives fork when taken in the prepare handler.
class LAMINA_SHARED SpinLock {
 public:
  void lock() {
    for (int spins = 0; flag_.test_and_set(std::memory_order_acquire); ++spins) {
      if (spins < 64) {
        cpu_relax();
      } else {
        yield();
      }
    }
  }
  void unlock() { flag_.clear(std::memory_order_release); }

 private:
  static void yield();
  std::atomic_flag flag_ = ATOMIC_FLAG_INIT;
};

}  // namespace lamina
