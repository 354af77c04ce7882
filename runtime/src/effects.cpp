// effects.cpp -- see effects.h.
#include "effects.h"

#include <algorithm>
#include <mutex>
#include <vector>

#include "platform.h"
#include "python.h"

namespace lamina {
namespace {

constexpr size_t kMostFailed = 64;  // kept for a barrier that may never come

SpinLock lock;
std::vector<Ref<Completion>> noted;

}  // namespace

void note_effects(const Ref<Completion>& completion) {
  const std::lock_guard guard(lock);
  const auto over = [](const Ref<Completion>& c) { return c->done() && !c->failed(); };
  noted.erase(std::remove_if(noted.begin(), noted.end(), over), noted.end());
  if (noted.size() >= kMostFailed && noted.front()->done()) noted.erase(noted.begin());
  noted.push_back(completion);
}

bool wait_for_effects() {
  std::vector<Ref<Completion>> all;
  {
    const std::lock_guard guard(lock);
    all.swap(noted);
  }
  for (const Ref<Completion>& completion : all) {
    if (completion->failed() && !completion->error().take_report()) continue;
    if (!wait_for(completion.get())) return false;
  }
  return true;
}

}  // namespace lamina
