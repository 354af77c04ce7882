// nccl.cpp -- see nccl.h.
#include "cuda/nccl.h"

#include <dlfcn.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <utility>

#include "core/processes.h"
#include "cpu/collective.h"

namespace lamina::cuda {

namespace {

struct UniqueId {
  std::array<char, 128> bytes;
};

constexpr int kWorked = 0, kNoColor = -1;
// A thread of a machine under load waits for its turn.
constexpr int kLooks = 5000;
constexpr int kBytes = 1;  // NCCL's number of its type of one byte

}  // namespace

// name, result, symbol, parameters.
#define LAMINA_NCCL_FUNCTIONS(X)                                                            \
  X(get_version, int, "ncclGetVersion", int*)                                               \
  X(get_unique_id, int, "ncclGetUniqueId", UniqueId*)                                       \
  X(init_rank, int, "ncclCommInitRank", Handle*, int, UniqueId, int)                        \
  X(comm_split, int, "ncclCommSplit", Handle, int, int, Handle*, void*)                     \
  X(comm_abort, int, "ncclCommAbort", Handle)                                               \
  X(async_error, int, "ncclCommGetAsyncError", Handle, int*)                                \
  X(error_string, const char*, "ncclGetErrorString", int)                                   \
  X(last_error, const char*, "ncclGetLastError", Handle)                                    \
  X(group_start, int, "ncclGroupStart")                                                     \
  X(group_end, int, "ncclGroupEnd")                                                         \
  X(all_reduce, int, "ncclAllReduce", const void*, void*, size_t, int, int, Handle, Handle) \
  X(reduce_scatter, int, "ncclReduceScatter", const void*, void*, size_t, int, int, Handle, \
    Handle)                                                                                 \
  X(all_gather, int, "ncclAllGather", const void*, void*, size_t, int, Handle, Handle)      \
  X(broadcast, int, "ncclBroadcast", const void*, void*, size_t, int, int, Handle, Handle)  \
  X(send, int, "ncclSend", const void*, size_t, int, int, Handle, Handle)                   \
  X(receive, int, "ncclRecv", void*, size_t, int, int, Handle, Handle)

struct Nccl {
#define LAMINA_DECLARE(name, type, symbol, ...) type (*name)(__VA_ARGS__) = nullptr;
  LAMINA_NCCL_FUNCTIONS(LAMINA_DECLARE)
#undef LAMINA_DECLARE
};

namespace {

constexpr const char* kInstall =
    "programs of several GPUs need NVIDIA's NCCL, 2.18 or later (libnccl.so.2): pip install "
    "'lamina[nccl]'";

const Nccl& opened(const std::string& path) {
  static std::mutex mutex;
  static auto& all = *new std::map<std::pair<uint64_t, std::string>, std::unique_ptr<Nccl>>;
  const std::lock_guard guard(mutex);
  auto& table = all[{driver_generation(), path}];
  if (table) return *table;
  void* file = nullptr;
  void* found = nullptr;
  const bool is_replaced = driver_is_replaced("", &found);
  if (!is_replaced && (file = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) == nullptr) {
    throw Unavailable(std::string(kInstall) + " (" + dlerror() + ")");
  }
  auto made = std::make_unique<Nccl>();
#define LAMINA_FILL(name, type, symbol, ...)                                        \
  if (!driver_is_replaced(symbol, &found)) found = dlsym(file, symbol);             \
  made->name = reinterpret_cast<decltype(made->name)>(found);                       \
  if (found == nullptr) {                                                           \
    throw Unavailable(std::string(kInstall) + " (" + path + " has no " symbol ")"); \
  }
  LAMINA_NCCL_FUNCTIONS(LAMINA_FILL)
#undef LAMINA_FILL
  table = std::move(made);
  return *table;
}

// Throws CudaError where a call failed: what NCCL calls it, and its own words where there are some.
void check_nccl(const Nccl& nccl, int code, const char* call, Handle communicator,
                const std::string& about) {
  if (code == kWorked) return;
  const char* word = nccl.error_string(code);
  const char* last = nccl.last_error(communicator);
  std::string text = std::string(call) + " failed " + about + ": " +
                     (word != nullptr ? word : "NCCL's error " + std::to_string(code));
  if (last != nullptr && *last != 0) text += std::string(" (") + last + ")";
  throw CudaError(-code, text);
}

// Calls between its construction and `end` are one operation of NCCL's.
class Group {
 public:
  explicit Group(const Nccl& nccl) : nccl_(nccl) {
    check_nccl(nccl_, nccl_.group_start(), "ncclGroupStart", nullptr, "");
  }
  ~Group() {
    if (!ended_) nccl_.group_end();  // something failed already
  }
  Group(const Group&) = delete;
  void end(Handle communicator, const std::string& about) {
    ended_ = true;
    check_nccl(nccl_, nccl_.group_end(), "ncclGroupEnd", communicator, about);
  }

 private:
  const Nccl& nccl_;
  bool ended_ = false;
};

Groups everybody(int size) {
  Groups groups(1);
  groups[0].resize(static_cast<size_t>(size));
  std::iota(groups[0].begin(), groups[0].end(), 0);
  return groups;
}

// The group that a position is in, and where.
std::pair<int, int> place_in(const Groups& groups, int position) {
  for (size_t g = 0; g < groups.size(); ++g) {
    const auto found = std::find(groups[g].begin(), groups[g].end(), position);
    if (found != groups[g].end()) {
      return {static_cast<int>(g), static_cast<int>(found - groups[g].begin())};
    }
  }
  return {-1, -1};
}

}  // namespace

// --- Communicators -------------------------------------------------------------------------------

Clique::Clique(const Nccl* nccl, int size, const std::vector<int>& here,
               const std::vector<int>& numbers, std::string id)
    : nccl_(nccl), size_(size), here_(here), id_(std::move(id)) {
  for (const int number : numbers) devices_.push_back(&Device::get(number));
  make_all();
}

Clique& Clique::of(const std::string& path, int size, const std::vector<int>& here,
                   const std::vector<int>& numbers, const std::string& id) {
  using Key = std::tuple<uint64_t, std::string, int, std::vector<int>, std::vector<int>>;
  static std::mutex mutex;
  static auto& all = *new std::map<Key, std::unique_ptr<Clique>>;  // devices outlive statics, too
  const Nccl& nccl = opened(path);
  const std::lock_guard guard(mutex);
  auto& clique = all[{driver_generation(), path, size, here, numbers}];
  if (!clique) clique.reset(new Clique(&nccl, size, here, numbers, id));
  return *clique;
}

std::string Clique::unique_id(const std::string& path) {
  const Nccl& nccl = opened(path);
  UniqueId id{};
  check_nccl(nccl, nccl.get_unique_id(&id), "ncclGetUniqueId", nullptr, "");
  return {id.bytes.begin(), id.bytes.end()};
}

int Clique::version() const {
  int version = 0;
  nccl_->get_version(&version);
  return version;
}

std::string Clique::name(int position) const {
  const auto at = std::find(here_.begin(), here_.end(), position) - here_.begin();
  std::string text = "cuda:" + std::to_string(devices_[static_cast<size_t>(at)]->number()) +
                     ", device " + std::to_string(position) + " of " + std::to_string(size_);
  if (Processes* const processes = spans_processes() ? Processes::joined() : nullptr) {
    text += ", in process " + std::to_string(processes->rank());
  }
  return text;
}

// The communicator of all, and again those split off it.
void Clique::make_all() {
  UniqueId id{};
  if (id_.empty()) {
    check_nccl(*nccl_, nccl_->get_unique_id(&id), "ncclGetUniqueId", nullptr, "");
  } else {
    std::memcpy(id.bytes.data(), id_.data(), std::min(id_.size(), id.bytes.size()));
  }
  std::vector<Communicator>& all = communicators_[everybody(size_)];
  all.resize(devices_.size());
  Group group(*nccl_);
  for (size_t i = 0; i < devices_.size(); ++i) {
    const InContext current = devices_[i]->enter();
    check_nccl(*nccl_, nccl_->init_rank(&all[i].handle, size_, id, here_[i]), "ncclCommInitRank",
               nullptr, "on " + name(here_[i]));
    all[i].rank = here_[i];
    all[i].size = size_;
  }
  group.end(nullptr, "for the communicators of " + std::to_string(size_) + " GPUs");
  for (auto& [groups, made] : communicators_) {
    if (groups != everybody(size_)) split(groups, &made);
  }
}

void Clique::wait_for_devices() const {
  for (Device* device : devices_) {
    const Turn turn(*device, device->stream());
    check(driver().stream_synchronize(device->compute()), "the GPU's work");
  }
}

// No operation of the communicator of all may be under way.
void Clique::split(const Groups& groups, std::vector<Communicator>* of_groups) {
  const std::vector<Communicator>& all = communicators_[everybody(size_)];
  of_groups->resize(devices_.size());
  Group group(*nccl_);
  for (size_t i = 0; i < devices_.size(); ++i) {
    const auto [color, rank] = place_in(groups, here_[i]);
    const InContext current = devices_[i]->enter();
    Communicator& made = (*of_groups)[i];
    check_nccl(*nccl_,
               nccl_->comm_split(all[i].handle, color < 0 ? kNoColor : color, std::max(rank, 0),
                                 &made.handle, nullptr),
               "ncclCommSplit", all[i].handle, "on " + name(here_[i]));
    made.rank = rank;
    made.size = color < 0 ? 0 : static_cast<int>(groups[static_cast<size_t>(color)].size());
  }
  group.end(all[0].handle, "for groups of " + std::to_string(size_) + " GPUs");
}

const Communicator* Clique::known(const Groups& groups, int position) {
  const std::lock_guard guard(mutex_);
  const auto found = communicators_.find(groups);
  if (found == communicators_.end()) return nullptr;
  const auto at = std::find(here_.begin(), here_.end(), position) - here_.begin();
  return &found->second[static_cast<size_t>(at)];
}

const Communicator* Clique::among(const Groups& given, int position) {
  const Groups groups = given.empty() ? everybody(size_) : given;
  if (const Communicator* const found = known(groups, position)) return found;
  if (called_by_team()) {
    throw CudaError(-1,
                    "a program with new groups of devices was loaded by a callback of a program "
                    "that has these devices: load it before");
  }
  const auto turn = begin_run();
  if (const Communicator* const found = known(groups, position)) return found;
  wait_for_devices();
  {
    const std::lock_guard guard(mutex_);
    std::vector<Communicator> made;
    split(groups, &made);
    communicators_.emplace(groups, std::move(made));
  }
  return known(groups, position);
}

std::unique_lock<std::mutex> Clique::begin_run() {
  std::unique_lock turn(turns_);
  {
    const std::lock_guard guard(mutex_);
    if (!is_down_) return turn;
    if (spans_processes()) {
      throw CudaError(-1, "the GPUs of several processes no longer work together: " + failure_);
    }
  }
  wait_for_devices();
  const std::lock_guard guard(mutex_);
  make_all();
  is_down_ = false;
  return turn;
}

void Clique::abort(const std::string& why) {
  const std::lock_guard guard(mutex_);
  if (is_down_) return;
  is_down_ = true;
  failure_ = why;
  came_.clear();
  for (Watch* watch : watches_) {  // what is over by now stays so
    if (watch->event_ == nullptr) continue;
    const InContext current = watch->device_->enter();
    watch->is_over_ = driver().event_query(watch->event_) != kNotReady;
  }
  ++aborts_;
  // Calls return at once, or wait for others and are ended by what follows.
  constexpr timespec kPause{0, 1'000'000};
  for (int looks = 0; calling_ > 0 && looks < kLooks; ++looks) nanosleep(&kPause, nullptr);
  // Those split off first: they are of the others' resources.
  const Groups all = everybody(size_);
  for (const bool split_off : {true, false}) {
    for (auto& [groups, made] : communicators_) {
      if ((groups != all) != split_off) continue;
      for (Communicator& each : made) {
        if (each.handle != nullptr) nccl_->comm_abort(each.handle);
        each.handle = nullptr;
      }
    }
  }
}

std::string Clique::missing_here(int position) {
  const std::lock_guard guard(mutex_);
  std::string text;
  for (const int other : here_) {
    if (came_[other] < came_[position]) text += (text.empty() ? "" : "; ") + name(other);
  }
  return text;
}

Clique::Calling::Calling(Clique& clique, int position) : clique_(clique) {
  const std::lock_guard guard(clique_.mutex_);
  if (clique_.is_down_) throw Aborted(clique_.failure_);
  ++clique_.came_[position];
  ++clique_.calling_;
}

std::string Clique::trouble() {
  const std::lock_guard guard(mutex_);
  if (is_down_) return {};
  for (const auto& [groups, made] : communicators_) {
    for (size_t i = 0; i < made.size(); ++i) {
      int code = kWorked;
      if (made[i].handle == nullptr) continue;
      const int asked = nccl_->async_error(made[i].handle, &code);
      try {
        check_nccl(*nccl_, asked == kWorked ? code : asked, "a collective", made[i].handle,
                   "on " + name(here_[i]));
      } catch (const CudaError& error) {
        return error.what();
      }
    }
  }
  return {};
}

Watch::Watch(Clique* clique, int position, std::string program)
    : clique_(clique),
      position_(position),
      program_(std::move(program)),
      aborts_(clique->aborts()) {
  const std::lock_guard guard(clique_->mutex_);
  clique_->watches_.insert(this);
  number_ = ++clique_->runs_[position_];
}

Watch::~Watch() {
  const std::lock_guard guard(clique_->mutex_);
  clique_->watches_.erase(this);
}

void Watch::ends_with(Device* device, Handle event) {
  const std::lock_guard guard(clique_->mutex_);
  device_ = device;
  event_ = event;
}

void Watch::check_not_aborted() {
  if (clique_->aborts() == aborts_) return;
  const std::lock_guard guard(clique_->mutex_);
  if (!is_over_) throw Aborted(clique_->failure_);
}

void Watch::wait(Device& device, Handle stream, const std::string& what) {
  constexpr timespec kPause{0, 20'000};
  const Handle event = device.take_event();
  Result code = driver().event_record(event, stream);
  try {
    while (code == kSuccess && (code = driver().event_query(event)) == kNotReady) {
      look();
      nanosleep(&kPause, nullptr);
      code = kSuccess;
    }
  } catch (...) {
    device.give_event(event);
    throw;
  }
  device.give_event(event);
  check(code, "the GPU's work", [&] { return what; });
  check_not_aborted();
}

void Watch::look() {
  check_not_aborted();
  std::string why = clique_->trouble();
  Processes* const processes = clique_->spans_processes() ? Processes::joined() : nullptr;
  if (why.empty() && processes != nullptr) why = processes->listen();
  if (why.empty()) {
    const auto allowed = std::chrono::nanoseconds(collective_timeout_ns());
    std::chrono::nanoseconds waited{};
    bool says = false;
    {
      const std::lock_guard guard(clique_->mutex_);
      const auto now = std::chrono::steady_clock::now();
      if (since_ == std::chrono::steady_clock::time_point{}) since_ = now;
      waited = now - since_;
      says = processes != nullptr && waited > allowed / 4 && !std::exchange(has_said_, true);
    }
    if (says) processes->say_waits(awaited());
    if (waited < allowed) return;
    why = overdue();
  }
  clique_->abort(why);
  throw CudaError(-1, why);
}

Processes::Awaited Watch::awaited() const {
  return {std::hash<std::string>{}(clique_->id_), number_};
}

std::string Watch::overdue() {
  std::string missing = clique_->missing_here(position_);
  Processes* const processes = clique_->spans_processes() ? Processes::joined() : nullptr;
  if (missing.empty() && processes != nullptr) {
    for (const int process : processes->do_not_wait(awaited())) {
      missing += (missing.empty() ? "process " : ", ") + std::to_string(process);
    }
    if (!missing.empty()) {
      missing += " of " + std::to_string(processes->size()) + " (which does not wait for its end)";
    }
  }
  return clique_->name(position_) + " has been waited for " +
         std::to_string(collective_timeout_ns() / 1000000) +
         " ms: " + (missing.empty() ? "another device" : missing) +
         " has not come to a collective of " + program_ +
         " (LAMINA_COLLECTIVE_TIMEOUT sets the seconds)";
}

// --- Calls ---------------------------------------------------------------------------------------

void issue_collective(Clique& clique, int position, const Collective& collective, Address operand,
                      Address result, Handle stream, const std::string& about) {
  const Clique::Calling calling(clique, position);
  const Nccl& nccl = clique.library();
  const Communicator& to = *collective.communicator;
  const auto* from = reinterpret_cast<const char*>(operand);
  auto* into = reinterpret_cast<char*>(result);
  const size_t bytes = collective.count * collective.element_bytes;
  if (bytes == 0) return;
  const std::string where = about + " on " + clique.name(position);
  const auto check_call = [&](int code, const char* call) {
    check_nccl(nccl, code, call, to.handle, where);
  };
  const bool permutes = collective.kind == CollectiveKind::kPermute;
  if (permutes ? collective.source < 0 : to.size == 0) {  // nothing arrives
    check(driver().set_8(result, 0, bytes, stream), "cuMemsetD8Async", [&] { return where; });
    if (!permutes) return;
  }
  if (!permutes && to.size == 1) {
    return check(driver().copy_on_device(result, operand, bytes, stream), "cuMemcpyDtoDAsync",
                 [&] { return where; });
  }
  switch (collective.kind) {
    case CollectiveKind::kAllReduce:
      return check_call(nccl.all_reduce(from, into, collective.count, collective.type,
                                        collective.op, to.handle, stream),
                        "ncclAllReduce");
    case CollectiveKind::kReduceScatter:
      return check_call(nccl.reduce_scatter(from, into, collective.count, collective.type,
                                            collective.op, to.handle, stream),
                        "ncclReduceScatter");
    case CollectiveKind::kAllGather:
      return check_call(nccl.all_gather(from, into, bytes, kBytes, to.handle, stream),
                        "ncclAllGather");
    case CollectiveKind::kBroadcast:
      return check_call(nccl.broadcast(from, into, bytes, kBytes, 0, to.handle, stream),
                        "ncclBroadcast");
    case CollectiveKind::kAllToAll: {
      Group group(nccl);
      for (int peer = 0; peer < to.size; ++peer) {
        const size_t part = static_cast<size_t>(peer) * bytes;
        check_call(nccl.send(from + part, bytes, kBytes, peer, to.handle, stream), "ncclSend");
        check_call(nccl.receive(into + part, bytes, kBytes, peer, to.handle, stream), "ncclRecv");
      }
      return group.end(to.handle, where);
    }
    case CollectiveKind::kPermute: {
      if (collective.targets.empty() && collective.source < 0) return;
      Group group(nccl);
      for (const int peer : collective.targets) {
        check_call(nccl.send(from, bytes, kBytes, peer, to.handle, stream), "ncclSend");
      }
      if (collective.source >= 0) {
        check_call(nccl.receive(into, bytes, kBytes, collective.source, to.handle, stream),
                   "ncclRecv");
      }
      return group.end(to.handle, where);
    }
    case CollectiveKind::kDeviceId:
      return;  // known when the program is loaded
  }
}

}  // namespace lamina::cuda
