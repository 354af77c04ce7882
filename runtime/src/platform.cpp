// platform.cpp -- Linux's side of platform.h.
#include "platform.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <ctime>
#include <fstream>
#include <sstream>
#include <string>

namespace lamina {
namespace {

uint32_t* futex_address(const std::atomic<uint32_t>& word) {
  return reinterpret_cast<uint32_t*>(const_cast<std::atomic<uint32_t>*>(&word));
}

// The directories of this process's cgroup from the leaf to the root: any of them may set a limit.
std::vector<std::string> cgroup_directories(const std::string& controller) {
  std::vector<std::string> found;
  std::ifstream membership("/proc/self/cgroup");
  for (std::string line; std::getline(membership, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    std::string root = "/sys/fs/cgroup";
    if (!controllers.empty()) {
      if (("," + controllers + ",").find("," + controller + ",") == std::string::npos) continue;
      root += "/" + controllers;
    }
    for (std::string path = line.substr(second + 1); !path.empty();
         path = path.substr(0, path.rfind('/'))) {
      if (path != "/") found.push_back(root + path);
    }
    found.push_back(root);
  }
  return found;
}

// CPUs paid for by the tightest quota, or a huge number where there is none.
double cgroup_cpus() {
  double cpus = 1e9;
  for (const std::string& directory : cgroup_directories("cpu")) {
    std::string quota;
    double period = 0;
    std::ifstream v2(directory + "/cpu.max");
    if (v2 >> quota >> period && quota != "max" && period > 0) {
      cpus = std::min(cpus, std::stod(quota) / period);
    }
    std::ifstream v1_quota(directory + "/cpu.cfs_quota_us");
    std::ifstream v1_period(directory + "/cpu.cfs_period_us");
    double v1 = 0;
    if (v1_quota >> v1 && v1_period >> period && v1 > 0 && period > 0) {
      cpus = std::min(cpus, v1 / period);
    }
  }
  return cpus;
}

}  // namespace

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

int default_thread_count() {
  const double quota = std::ceil(cgroup_cpus());
  const double cpus = static_cast<double>(allowed_cpus().size());
  return std::max(1, static_cast<int>(std::min(cpus, quota)));
}

size_t memory_limit() {
  struct sysinfo info{};
  size_t limit = SIZE_MAX;
  if (sysinfo(&info) == 0) limit = (info.totalram + info.totalswap) * info.mem_unit;
  for (const std::string& directory : cgroup_directories("memory")) {
    for (const char* name : {"/memory.max", "/memory.limit_in_bytes"}) {
      std::ifstream file(directory + name);
      if (size_t bytes = 0; file >> bytes && bytes > 0) limit = std::min(limit, bytes);
    }
  }
  return limit;
}

int64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * int64_t{1'000'000'000} + t.tv_nsec;
}

void SpinLock::yield() { sched_yield(); }

}  // namespace lamina
