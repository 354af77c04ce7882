// sharing.h -- whether a parallel loop is worth sharing with the workers, learned from its runs.
//
// A cost model says that a loop is long enough; it does not know that another program has the other
// core, where a worker that was put off in the middle of a chunk is waited for, for milliseconds.
// So each loop keeps an account: what sharing it took longer than running it alone, it owes, and
// pays back by running alone, an eighth of the time at a time. A machine that is always busy costs
// an eighth more than one thread would; on an idle one, every loop is shared.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

namespace lamina {

class Sharing {
 public:
  bool is_worthwhile() const { return debt_ns_.load(std::memory_order_relaxed) <= 0; }

  // The loop was shared and took `total_ns`, in `mine_ns` of which the caller did `mine` of all
  // `chunks`.
  void was_shared(int64_t total_ns, int64_t mine_ns, int64_t mine, int64_t chunks) {
    if (mine == 0) return;  // nothing says how long it is
    const int64_t guess = mine_ns * chunks / mine;
    const int64_t known = alone_ns_.load(std::memory_order_relaxed);
    // Chunks may differ, so a run alone says more, unless it was that of another size.
    const bool trust = known > guess / kUnlike && known / kUnlike < guess;
    const int64_t debt =
        debt_ns_.load(std::memory_order_relaxed) + total_ns - (trust ? known : guess);
    debt_ns_.store(std::max(debt, -kMostCreditNs), std::memory_order_relaxed);
  }

  // The loop was run alone.
  void was_alone(int64_t ns) {
    const int64_t known = alone_ns_.load(std::memory_order_relaxed);
    const int64_t slower = known + (ns - known) / kShare;  // a moving mean, of a run put off, too
    alone_ns_.store(known == 0 || ns < known ? ns : slower, std::memory_order_relaxed);
    debt_ns_.fetch_sub(ns / kShare + 1, std::memory_order_relaxed);
  }

  void forget() {
    debt_ns_.store(0, std::memory_order_relaxed);
    alone_ns_.store(0, std::memory_order_relaxed);
  }

 private:
  static constexpr int64_t kShare = 8;
  static constexpr int64_t kUnlike = 4;
  static constexpr int64_t kMostCreditNs = 4'000'000;  // a time slice: what one bad run may cost

  // Callers on several threads may lose each other's updates: these are estimates.
  std::atomic<int64_t> debt_ns_{0};
  std::atomic<int64_t> alone_ns_{0};
};

// The accounts of all loops. Two that meet in a slot share it.
class Accounts {
 public:
  Sharing& of(uintptr_t loop, int64_t n) {
    const uint64_t mixed = (loop ^ static_cast<uint64_t>(n) << 40) * 0x9E3779B97F4A7C15u;
    return slots_[mixed >> (64 - kBits)];
  }

  void forget() {
    for (Sharing& slot : slots_) slot.forget();
  }

 private:
  static constexpr int kBits = 10;
  std::array<Sharing, 1 << kBits> slots_;
};

}  // namespace lamina
