// completion.h -- when the results of a dispatched call are there, and whether it failed.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "core/shared.h"

namespace lamina {

// Why a call failed; empty where it did not. `cause` is the Python exception behind it, if any.
// Calls that fail because an argument did share one.
struct Error {
  std::string message;
  std::shared_ptr<void> cause;
  std::shared_ptr<std::atomic<bool>> reported;
  bool empty() const { return message.empty(); }
  // Whether nobody has been told yet; true once.
  bool take_report() const { return !reported || !reported->exchange(true); }
};

// Something else than a thread of ours that completes, such as work on a GPU.
class Completable {
 public:
  virtual ~Completable() = default;
  // Whether it is over, with its error if it failed. Called from any thread until it has said so.
  virtual bool over(Error* error) = 0;
  // Whether it can fail so that what waits for it on the GPU would wait for ever.
  virtual bool may_fail_alone() const { return false; }
};

// The moment at which a dispatched call has filled its results, shared by all of them.
class LAMINA_SHARED Completion {
 public:
  static Completion* create() { return new Completion; }
  // One that nobody finishes: it asks whenever somebody wants to know.
  static Completion* of(std::unique_ptr<Completable> asked);
  void retain() { refs_.fetch_add(1, std::memory_order_relaxed); }
  void release() {
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  bool done() const {
    return state_.load(std::memory_order_acquire) != kPending || (asked_ != nullptr && ask());
  }
  bool failed() const { return state_.load(std::memory_order_acquire) == kFailed; }
  // Only where failed().
  const Error& error() const { return error_; }

  void finish();
  void fail(Error error);
  // Sleeps until done, at most timeout_ns.
  void wait(int64_t timeout_ns) const;
  const Completable* asked() const { return asked_.get(); }
  // Calls then(context) once it is done: at once where it is, else on the thread that finishes it,
  // which then goes on: no long work, nothing that waits. Not for what is asked.
  void when_done(void (*then)(void*), void* context);

 private:
  static constexpr uint32_t kPending = 0, kDone = 1, kFailed = 2;
  Completion() = default;
  ~Completion() = default;
  struct Continuation {
    void (*then)(void*);
    void* context;
    Continuation* next;
  };
  bool ask() const;
  void continue_others();
  std::atomic<uint32_t> refs_{1};
  std::atomic<uint32_t> state_{kPending};
  std::atomic<Continuation*> continuations_{nullptr};
  Error error_;
  std::unique_ptr<Completable> asked_;
};

// An owning pointer to a Buffer or a Completion.
template <typename T>
class Ref {
 public:
  Ref() = default;
  static Ref steal(T* pointer) {
    Ref ref;
    ref.pointer_ = pointer;
    return ref;
  }
  static Ref share(T* pointer) {
    if (pointer != nullptr) pointer->retain();
    return steal(pointer);
  }
  Ref(const Ref& other) : pointer_(other.pointer_) {
    if (pointer_ != nullptr) pointer_->retain();
  }
  Ref(Ref&& other) noexcept : pointer_(other.pointer_) { other.pointer_ = nullptr; }
  Ref& operator=(Ref other) noexcept {
    std::swap(pointer_, other.pointer_);
    return *this;
  }
  ~Ref() {
    if (pointer_ != nullptr) pointer_->release();
  }
  T* get() const { return pointer_; }
  T* operator->() const { return pointer_; }
  explicit operator bool() const { return pointer_ != nullptr; }
  T* detach() {
    T* pointer = pointer_;
    pointer_ = nullptr;
    return pointer;
  }

 private:
  T* pointer_ = nullptr;
};

}  // namespace lamina
