// cgroup.h -- how much of the machine the cgroups of this process leave it, of either version.
#pragma once

#include <cstddef>
#include <string>

namespace lamina {

// Where the kernel tells it; tests have trees of their own.
struct Cgroups {
  std::string membership = "/proc/self/cgroup";
  std::string root = "/sys/fs/cgroup";

  // CPUs that the tightest quota pays for, a fraction maybe; infinite where there is none.
  double cpus() const;

  // Bytes of the tightest limit; SIZE_MAX where there is none.
  size_t memory() const;
};

}  // namespace lamina
