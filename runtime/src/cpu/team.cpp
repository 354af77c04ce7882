// team.cpp -- the threads that are devices, and a program's run on them.
//
// One thread a device, started when first needed and kept. The caller is device 0.
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <thread>

#include "core/processes.h"
#include "cpu/collective.h"

namespace lamina {

namespace {

thread_local int teams_left = 0;

struct Task {
  Team* team;
  int size;  // devices here. The team may be read by its members only: others may wake when it is
             // gone
  Error (*body)(void*, int);
  void* context;
};

void run_device(const Task& task, int index) {
  const int number = task.team->places().here()[index];
  Device here{task.team, number, {}};
  enter_device(&here);
  Error error = task.body(task.context, index);
  enter_device(nullptr);
  if (!error.empty()) {
    if (!error.cause) error.message = "device " + std::to_string(number) + ": " + error.message;
    task.team->fail(std::move(error));
  }
  end_collective();  // one that was begun, of a program that has failed since
  task.team->finished();
}

class DeviceThreads {
 public:
  static DeviceThreads& instance() {
    static auto* threads = new DeviceThreads;  // never destroyed: its threads outlive statics
    if (threads->owner_ != getpid()) threads = new DeviceThreads;  // a forked child has no threads
    return *threads;
  }

  void run(const Task& task) {
    std::lock_guard one_team(running_);
    while (static_cast<int>(threads_.size()) < task.size - 1) start();
    {
      std::lock_guard lock(mutex_);
      task_ = task;
      left_ = task.size - 1;
      ++epoch_;
    }
    begin_.notify_all();
    run_device(task, 0);
    std::unique_lock lock(mutex_);
    end_.wait(lock, [this] { return left_ == 0; });
  }

 private:
  void start() {
    const int index = static_cast<int>(threads_.size()) + 1;
    uint64_t seen;
    {
      std::lock_guard lock(mutex_);
      seen = epoch_;
    }
    threads_.emplace_back([this, index, seen] { main(index, seen); });
    threads_.back().detach();
  }

  void main(int index, uint64_t seen) {
    pthread_setname_np(pthread_self(), "lamina-device");
    for (;;) {
      Task task;
      {
        std::unique_lock lock(mutex_);
        begin_.wait(lock, [&] { return epoch_ != seen; });
        seen = epoch_;
        task = task_;
        if (index >= task.size) continue;
      }
      run_device(task, index);
      std::lock_guard lock(mutex_);
      if (--left_ == 0) end_.notify_all();
    }
  }

  const pid_t owner_ = getpid();
  std::mutex running_;  // one team at a time
  std::mutex mutex_;
  std::condition_variable begin_, end_;
  std::vector<std::thread> threads_;
  Task task_{};
  uint64_t epoch_ = 0;
  int left_ = 0;
};

}  // namespace

Places::Places(int size) : process_(size, 0), number_(size), here_(size), mine_(0), most_(size) {
  for (int d = 0; d < size; ++d) number_[d] = here_[d] = d;
}

Places::Places(std::vector<int> process, int mine)
    : process_(std::move(process)), number_(process_.size()), mine_(mine) {
  std::map<int, int> counts;
  for (size_t d = 0; d < process_.size(); ++d) {
    number_[d] = counts[process_[d]]++;
    most_ = std::max(most_, number_[d] + 1);
    if (process_[d] == mine_) here_.push_back(static_cast<int>(d));
  }
}

OutsideTeam::OutsideTeam() : device_(current_device()) {
  if (device_ == nullptr) return;
  enter_device(nullptr);
  ++teams_left;
}

OutsideTeam::~OutsideTeam() {
  if (device_ == nullptr) return;
  enter_device(device_);
  --teams_left;
}

bool called_by_team() { return teams_left > 0; }

Error run_team(const std::string& program, const Places& places,
               Error (*body)(void* context, int i), void* context) {
  if (called_by_team()) {
    return {program + " runs on several devices, and was called by a callback of such a program, " +
                "which has them all: give the callback's part to one device",
            nullptr, nullptr};
  }
  Processes* const processes = places.spans_processes() ? Processes::joined() : nullptr;
  if (places.spans_processes()) {
    const std::string trouble =
        processes == nullptr ? "this process has left them" : processes->trouble();
    if (!trouble.empty()) {
      return {program + " runs on several processes, which no longer work together: " + trouble,
              nullptr, nullptr};
    }
  }
  Team team(program, &places, collective_timeout_ns());
  DeviceThreads::instance().run({&team, static_cast<int>(places.here().size()), body, context});
  // Others wait for what this process will never send.
  if (processes != nullptr && !team.error().empty()) processes->tell_others(team.error().message);
  return team.error();
}

}  // namespace lamina
