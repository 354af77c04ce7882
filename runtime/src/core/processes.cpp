// processes.cpp -- see processes.h.
#include "core/processes.h"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstring>

namespace lamina {
namespace {

constexpr int kNewsTag = 0, kWaitsTag = 1, kReservedTags = 3;
constexpr int64_t kLargestMessage = int64_t{1} << 30;  // counts of MPI are int
// When a thread that waits begins to sleep between looks at its messages: one that is not there
// after so long is not under way, its sender computes. And how long it sleeps: a fiftieth of that.
constexpr int64_t kSleepAfterNs = 1'000'000;
constexpr long kSleepNs = 20'000;
thread_local bool leaves_cpu = false;
// How often it looks whether others have said that they can't go on: seldom, since that is another
// call of MPI for each of them.
constexpr int64_t kLookEveryNs = 2'000'000;

std::unique_ptr<Processes>& joined_processes() {
  static auto* processes = new std::unique_ptr<Processes>;  // threads outlive statics
  return *processes;
}

int64_t now_ns() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

}  // namespace

// MPI's functions, whatever the size of its handles.
class Mpi {
 public:
  virtual ~Mpi() = default;
  virtual int send(const void* data, int bytes, int process, int tag, uint64_t* request) = 0;
  virtual int receive(void* data, int bytes, int process, int tag, uint64_t* request) = 0;
  virtual int test(uint64_t* request, bool* done) = 0;
  virtual int probe(int process, int tag, bool* found) = 0;
};

namespace {

template <typename Handle>
class MpiWithHandles : public Mpi {
 public:
  explicit MpiWithHandles(const MpiInterface& given)
      : isend_(reinterpret_cast<Isend>(given.isend)),
        irecv_(reinterpret_cast<Irecv>(given.irecv)),
        test_(reinterpret_cast<Test>(given.test)),
        iprobe_(reinterpret_cast<Iprobe>(given.iprobe)),
        communicator_(static_cast<Handle>(given.communicator)),
        byte_(static_cast<Handle>(given.byte)) {}

  int send(const void* data, int bytes, int process, int tag, uint64_t* request) override {
    Handle handle{};
    const int error = isend_(data, bytes, byte_, process, tag, communicator_, &handle);
    *request = static_cast<uint64_t>(handle);
    return error;
  }
  int receive(void* data, int bytes, int process, int tag, uint64_t* request) override {
    Handle handle{};
    const int error = irecv_(data, bytes, byte_, process, tag, communicator_, &handle);
    *request = static_cast<uint64_t>(handle);
    return error;
  }
  int test(uint64_t* request, bool* done) override {
    auto handle = static_cast<Handle>(*request);
    int flag = 0;
    const int error = test_(&handle, &flag, status_);
    *request = static_cast<uint64_t>(handle);
    *done = flag != 0;
    return error;
  }
  int probe(int process, int tag, bool* found) override {
    int flag = 0;
    const int error = iprobe_(process, tag, communicator_, &flag, status_);
    *found = flag != 0;
    return error;
  }

 private:
  using Isend = int (*)(const void*, int, Handle, int, int, Handle, Handle*);
  using Irecv = int (*)(void*, int, Handle, int, int, Handle, Handle*);
  using Test = int (*)(Handle*, int*, void*);
  using Iprobe = int (*)(int, int, Handle, int*, void*);
  const Isend isend_;
  const Irecv irecv_;
  const Test test_;
  const Iprobe iprobe_;
  const Handle communicator_, byte_;
  alignas(16) char status_[256];  // an MPI_Status of any kind, which nobody reads
};

std::unique_ptr<Mpi> make_mpi(const MpiInterface& interface) {
  if (interface.handle_size == 4) return std::make_unique<MpiWithHandles<uint32_t>>(interface);
  return std::make_unique<MpiWithHandles<uint64_t>>(interface);
}

}  // namespace

Processes* Processes::joined() { return joined_processes().get(); }

void Processes::join(int rank, int size, const MpiInterface& interface) {
  joined_processes().reset(new Processes(rank, size, interface));
}

void leave_cpu_while_waiting() { leaves_cpu = true; }

void Processes::leave() { joined_processes().reset(); }

Processes::Processes(int rank, int size, const MpiInterface& interface)
    : rank_(rank),
      size_(size),
      most_tags_(interface.most_tags - kReservedTags),
      mpi_(make_mpi(interface)) {}

std::string Processes::trouble() {
  std::lock_guard lock(trouble_mutex_);
  return trouble_;
}

std::string Processes::listen() {
  for (int process = 0; process < size_ && trouble().empty(); ++process) {
    std::string news;
    if (process != rank_ && look_for_news(process, &news)) set_trouble(news);
  }
  return trouble();
}

void Processes::set_trouble(const std::string& text) {
  std::lock_guard lock(trouble_mutex_);
  if (trouble_.empty()) trouble_ = text;
}

void Processes::tell_others(const std::string& reason) {
  if (!reason.empty()) set_trouble(reason);
  auto news = std::make_unique<News>();
  news->rank = rank_;
  news->text.fill(0);
  reason.copy(news->text.data(), kNews - 1);
  std::lock_guard lock(mutex_);
  for (int process = 0; process < size_; ++process) {
    if (process == rank_) continue;
    uint64_t request = 0;
    mpi_->send(news->text.data(), kNews, process, kNewsTag, &request);
    bool done = false;
    mpi_->test(&request, &done);
  }
  sent_.push_back(std::move(news));  // MPI may read it until the end
}

void Processes::say_waits(const Awaited& run) {
  auto said = std::make_unique<Awaited>(run);
  std::lock_guard lock(mutex_);
  for (int process = 0; process < size_; ++process) {
    if (process == rank_) continue;
    uint64_t request = 0;
    mpi_->send(said.get(), sizeof run, process, kWaitsTag, &request);
    bool done = false;
    mpi_->test(&request, &done);
  }
  said_.push_back(std::move(said));  // MPI may read it until the end
}

std::vector<int> Processes::do_not_wait(const Awaited& run) {
  std::lock_guard lock(mutex_);
  std::vector<int> found;
  for (int process = 0; process < size_; ++process) {
    if (process == rank_) continue;
    bool more = true;
    while (mpi_->probe(process, kWaitsTag, &more) == 0 && more) {
      Awaited said{};
      uint64_t request = 0;
      if (mpi_->receive(&said, sizeof said, process, kWaitsTag, &request) != 0) break;
      for (bool done = false; !done;) {
        if (mpi_->test(&request, &done) != 0) return found;
      }
      uint64_t& latest = waits_[{process, said.group}];
      latest = std::max(latest, said.number);
    }
    const auto heard = waits_.find({process, run.group});
    if (heard == waits_.end() || heard->second < run.number) found.push_back(process);
  }
  return found;
}

Error Processes::exchange(const std::string& what, const std::vector<std::string>& given,
                          int64_t timeout_ns, std::vector<std::string>* received) {
  const std::string in_trouble = trouble();
  if (!in_trouble.empty()) return {what + ": " + in_trouble, nullptr, nullptr};
  const auto never = [](void*) { return false; };
  std::vector<int64_t> sizes(size_), own(size_);
  for (int process = 0; process < size_; ++process) {
    own[process] = static_cast<int64_t>(given[process].size());
  }
  received->resize(size_);
  for (const bool contents : {false, true}) {
    Transfers transfers(this);
    for (int process = 0; process < size_; ++process) {
      if (process == rank_) continue;
      std::string& theirs = (*received)[process];
      if (contents) theirs.resize(sizes[process]);
      transfers.receive(process, Transfers::kHostTag,
                        contents ? static_cast<void*>(theirs.data()) : &sizes[process],
                        contents ? sizes[process] : static_cast<int64_t>(sizeof(int64_t)));
    }
    for (int process = 0; process < size_; ++process) {
      if (process == rank_) continue;
      transfers.send(process, Transfers::kHostTag,
                     contents ? static_cast<const void*>(given[process].data()) : &own[process],
                     contents ? own[process] : static_cast<int64_t>(sizeof(int64_t)));
    }
    Error error = transfers.wait(what, timeout_ns, never, nullptr);
    if (error.empty()) continue;
    new auto(std::move(*received));  // MPI may still write there
    new auto(std::move(sizes));
    return error;
  }
  (*received)[rank_] = given[rank_];
  return {};
}

bool Processes::look_for_news(int process, std::string* text) {
  std::lock_guard lock(mutex_);
  bool found = false;
  if (mpi_->probe(process, kNewsTag, &found) != 0 || !found) return false;
  auto news = std::make_unique<News>();
  news->text.fill(0);
  uint64_t request = 0;
  if (mpi_->receive(news->text.data(), kNews, process, kNewsTag, &request) != 0) return false;
  for (bool done = false; !done;) {
    if (mpi_->test(&request, &done) != 0) return false;
  }
  news->text.back() = 0;
  const std::string reason = news->text.data();
  *text = reason.empty() ? "process " + std::to_string(process) + " has come to its end"
                         : "process " + std::to_string(process) + " failed: " + reason;
  return true;
}

void Transfers::send(int process, int64_t tag, const void* data, int64_t bytes) {
  start(false, process, tag, const_cast<char*>(static_cast<const char*>(data)), bytes);
}

void Transfers::receive(int process, int64_t tag, void* data, int64_t bytes) {
  start(true, process, tag, static_cast<char*>(data), bytes);
}

void Transfers::start(bool receives, int process, int64_t tag, char* data, int64_t bytes) {
  std::lock_guard lock(processes_->mutex_);
  Mpi& mpi = *processes_->mpi_;
  const int number = static_cast<int>(tag) + kReservedTags;
  for (int64_t at = 0; at < bytes && error_ == 0; at += kLargestMessage) {
    const int part = static_cast<int>(std::min(kLargestMessage, bytes - at));
    uint64_t request = 0;
    error_ = receives ? mpi.receive(data + at, part, process, number, &request)
                      : mpi.send(data + at, part, process, number, &request);
    if (error_ == 0) open_.push_back({request, process, receives});
  }
}

// Whether all have ended, or MPI gave an error.
bool Transfers::progress() {
  std::lock_guard lock(processes_->mutex_);
  Mpi& mpi = *processes_->mpi_;
  size_t kept = 0;
  for (Transfer& transfer : open_) {
    bool done = false;
    if (error_ == 0) error_ = mpi.test(&transfer.request, &done);
    if (!done) open_[kept++] = transfer;
  }
  open_.resize(kept);
  return kept == 0 || error_ != 0;
}

Error Transfers::wait(const std::string& what, int64_t timeout_ns, bool (*stop)(void*),
                      void* context) {
  const int64_t start = now_ns();
  int64_t looked = start;
  while (!progress()) {
    const int64_t now = now_ns(), waited = now - start;
    if (now - looked > kLookEveryNs) {
      looked = now;
      if (stop(context)) return {what + " was left by another device", nullptr, nullptr};
      Error error = look_around(what, waited, timeout_ns);
      if (!error.empty()) return error;
    }
    if (leaves_cpu || waited > kSleepAfterNs) {
      const timespec pause{0, kSleepNs};
      nanosleep(&pause, nullptr);
    } else if (waited > processes_->spinning_ns_) {
      sched_yield();
    }
  }
  if (error_ == 0) return {};
  const std::string text = what + ": MPI gave error " + std::to_string(error_) +
                           ", so that the processes have lost each other";
  processes_->set_trouble(text);
  return {text, nullptr, nullptr};
}

// Whether those that are waited for can still come.
Error Transfers::look_around(const std::string& what, int64_t waited_ns, int64_t timeout_ns) {
  std::vector<int> missing;
  for (const Transfer& transfer : open_) {
    if (std::find(missing.begin(), missing.end(), transfer.process) == missing.end()) {
      missing.push_back(transfer.process);
    }
  }
  std::string text;
  for (const int process : missing) {
    std::string news;
    if (!processes_->look_for_news(process, &news)) continue;
    // What it sent before has arrived before.
    if (progress()) return {};
    const auto still = [process](const Transfer& t) { return t.process == process; };
    if (std::none_of(open_.begin(), open_.end(), still)) continue;
    text = what + ": " + news;
    break;
  }
  if (text.empty() && waited_ns > timeout_ns) {
    text = what + " waited " + std::to_string(timeout_ns / 1'000'000) + " ms for process" +
           (missing.size() > 1 ? "es" : "");
    for (size_t i = 0; i < missing.size(); ++i) {
      text += (i == 0 ? " " : ", ") + std::to_string(missing[i]);
    }
    text += " of " + std::to_string(processes_->size()) +
            ", which never came to it (LAMINA_COLLECTIVE_TIMEOUT sets the seconds)";
  }
  if (text.empty()) return {};
  processes_->set_trouble(text);
  return {text, nullptr, nullptr};
}

}  // namespace lamina
