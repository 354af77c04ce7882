// streams.cpp -- which stream a thread's programs run on, and in which order: see
// device.h.
#include <algorithm>

#include "cuda/device.h"

namespace lamina::cuda {
namespace {

// The streams that this thread has entered and not left.
thread_local std::vector<std::pair<const Device*, Stream>> entered;

}  // namespace

uint64_t next_stream_id() {
  static std::atomic<uint64_t> ids{0};
  return ++ids;
}

Stream Device::stream() {
  for (auto it = entered.rbegin(); it != entered.rend(); ++it) {
    if (it->first == this) return it->second;
  }
  const std::lock_guard guard(lock_);
  return default_;
}

void Device::enter_stream(Handle handle) {
  const Stream stream{handle, next_stream_id()};
  entered.emplace_back(this, stream);
  const std::lock_guard guard(lock_);
  chosen_.push_back(stream.id);
}

void Device::leave_stream() {
  const auto last = std::find_if(entered.rbegin(), entered.rend(),
                                 [this](const auto& each) { return each.first == this; });
  if (last == entered.rend()) {
    throw std::out_of_range("this thread has entered no stream of cuda:" + std::to_string(number_));
  }
  const Stream stream = last->second;
  entered.erase(std::next(last).base());
  no_longer_on(stream);
}

void Device::set_stream(Handle handle) {
  Stream old, next = own_;
  if (handle != nullptr) next = {handle, next_stream_id()};
  {
    const std::lock_guard guard(lock_);
    old = std::exchange(default_, next);
    if (handle != nullptr) chosen_.push_back(next.id);
  }
  if (old.id != own_.id) no_longer_on(old);
}

// From now on the user may do with the stream what they like.
void Device::no_longer_on(const Stream& stream) {
  {
    const std::lock_guard guard(lock_);
    std::erase(chosen_, stream.id);
  }
  if (!usable()) return;
  const Turn turn(*this, own_);
  wait_for_work_on(stream.handle, own_.handle);
}

void Device::wait_for_work_on(Handle stream, Handle later) {
  const Handle event = take_event();
  Result code = driver().event_record(event, stream);
  if (code == kSuccess) code = driver().stream_wait(later, event, 0);
  give_event(event);  // what waits for it waits for what it was
  check(code, "cuStreamWaitEvent", "between two streams");
}

void Device::take_turn(const Stream& stream) {
  if (stream.id == latest_.id) return;
  wait_for_work_on(latest_.handle, stream.handle);
  const std::lock_guard guard(lock_);
  latest_ = stream;
}

Turn::Turn(Device& device, const Stream& stream)
    : device_(device), stream_(stream), context_(device.enter()), lock_(device.issue_mutex_) {
  device_.take_turn(stream_);
}

Turn::~Turn() {
  if (lock_.owns_lock()) pause();
}

void Turn::pause() {
  lock_.unlock();
  device_.free_dead();
}

void Turn::resume() {
  lock_.lock();
  device_.take_turn(stream_);
}

}  // namespace lamina::cuda
