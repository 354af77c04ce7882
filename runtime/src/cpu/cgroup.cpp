// cgroup.cpp -- see cgroup.h.
#include "cpu/cgroup.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <vector>

namespace lamina {
namespace {

constexpr double kNone = std::numeric_limits<double>::infinity();
constexpr double kUsualPeriod = 100'000;  // microseconds, where cpu.max names none

// The directories of this process's cgroup from the leaf to the root: any of them may set a limit.
std::vector<std::string> directories(const Cgroups& cgroups, const std::string& controller) {
  std::vector<std::string> found;
  std::ifstream membership(cgroups.membership);
  for (std::string line; std::getline(membership, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    std::vector<std::string> roots{cgroups.root};
    if (!controllers.empty()) {  // version 1, mounted by all its names or by one
      if (("," + controllers + ",").find("," + controller + ",") == std::string::npos) continue;
      roots = {cgroups.root + "/" + controllers, cgroups.root + "/" + controller};
    }
    for (const std::string& root : roots) {
      std::string path = line.substr(second + 1);
      for (size_t slash; (slash = path.rfind('/')) != std::string::npos; path.resize(slash)) {
        if (path != "/") found.push_back(root + path);
      }
      found.push_back(root);
    }
  }
  return found;
}

// The number in a word; `otherwise` for "max" and whatever else is none.
double number(const std::string& word, double otherwise) {
  char* end = nullptr;
  const double value = std::strtod(word.c_str(), &end);
  return word.empty() || *end != '\0' ? otherwise : value;
}

// The words of a file; none where it is missing.
std::vector<std::string> words(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> found;
  for (std::string word; file >> word;) found.push_back(word);
  return found;
}

double share(double quota, double period) {
  return quota > 0 && period > 0 ? quota / period : kNone;
}

double quota_of(const std::string& directory) {
  double cpus = kNone;
  if (const auto v2 = words(directory + "/cpu.max"); !v2.empty()) {
    const double period = v2.size() > 1 ? number(v2[1], 0) : kUsualPeriod;
    cpus = share(number(v2[0], 0), period);
  }
  const auto quota = words(directory + "/cpu.cfs_quota_us");
  const auto period = words(directory + "/cpu.cfs_period_us");
  if (!quota.empty() && !period.empty()) {
    cpus = std::min(cpus, share(number(quota[0], 0), number(period[0], 0)));
  }
  return cpus;
}

}  // namespace

double Cgroups::cpus() const {
  double least = kNone;
  for (const auto& directory : directories(*this, "cpu")) {
    least = std::min(least, quota_of(directory));
  }
  return least;
}

size_t Cgroups::memory() const {
  size_t least = SIZE_MAX;
  for (const auto& directory : directories(*this, "memory")) {
    for (const char* name : {"/memory.max", "/memory.limit_in_bytes"}) {
      const auto limit = words(directory + name);
      const double bytes = limit.empty() ? 0 : number(limit[0], 0);
      if (bytes > 0 && bytes < 1e18) least = std::min(least, static_cast<size_t>(bytes));
    }
  }
  return least;
}

}  // namespace lamina
