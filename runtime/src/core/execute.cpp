// execute.cpp -- one call of an executable: arguments to pointers, donation, now or queued.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>

#include "core/callback.h"
#include "core/dispatch.h"
#include "core/executable.h"
#include "cuda/array.h"

namespace lamina {
namespace {

std::atomic<bool> async{true};

// The arguments and results of a call being prepared.
class Run {
 public:
  Run(ExecutableObject* executable, const Leaf* leaves, size_t count,
      std::vector<Ref<Buffer>>* results)
      : executable_(executable),
        program_(*executable->program),
        leaves_(leaves),
        count_(count),
        results_(*results) {}

  bool execute() {
    results_.clear();
    results_.resize(program_.outputs.size());
    cheap_ = program_.cheap;
    // Callbacks print, log and raise: where the user wrote them, not some time later.
    const bool calls_back = program_.callbacks != nullptr;
    if (calls_back && !wait_for_arguments()) return false;
    inline_ = (cheap_ || calls_back || !async || inside_callback()) && all_ready();
    if (PyErr_Occurred() || (!inline_ && !wait_for_turn())) return false;
    if (!take_arguments() || !make_results()) return false;
    ++executable_->calls;
    return inline_ ? run_here() : enqueue_call();
  }

 private:
  // False too (with the error set) where an argument was deleted or could not be computed.
  bool all_ready() {
    for (size_t i = 0; i < count_; ++i) {
      if (leaves_[i].kind != LeafKind::kArray) continue;
      const auto* array = reinterpret_cast<ArrayObject*>(leaves_[i].object);
      if (!check_alive(array)) return false;
      const Completion* pending = array->buffer->pending();
      if (pending == nullptr) continue;
      if (!pending->done()) return false;
      if (pending->failed()) {
        pending->error().take_report();
        raise_run_error(pending->error());
        return false;
      }
    }
    return true;
  }

  bool wait_for_arguments() {
    for (size_t i = 0; i < count_; ++i) {
      if (leaves_[i].kind != LeafKind::kArray) continue;
      auto* array = reinterpret_cast<ArrayObject*>(leaves_[i].object);
      if (!check_alive(array) || !wait_for_array(array)) return false;
    }
    return true;
  }

  // A queue that is full holds its callers up, as long as no signal's handler raises.
  static bool wait_for_turn() {
    while (!queue_has_room()) {
      {
        const WithoutGil unlocked;
        wait_for_room();
      }
      if (PyErr_CheckSignals() != 0) return false;
    }
    return true;
  }

  bool take_arguments() {
    pointers_.resize(count_);
    buffers_.resize(count_);
    scalars_.resize(inline_ ? count_ : 0);
    const bool may_borrow =
        inline_ && cheap_ && !program_.loops_for_long;  // keeps the GIL throughout
    for (size_t i = 0; i < count_; ++i) {
      const Leaf& leaf = leaves_[i];
      // Content that only has to live until the entry returns is read where it is.
      if (inline_ && leaf.kind >= LeafKind::kBool) {
        write_scalar(leaf, scalars_[i].bytes);
        pointers_[i] = scalars_[i].bytes;
      } else if (void* data = may_borrow ? borrowed_data(leaf) : nullptr) {
        pointers_[i] = data;
      } else {
        if (!(buffers_[i] = leaf_buffer(leaf))) return false;
        if (device_number(buffers_[i].get()) >= 0) {
          if (!(buffers_[i] = on_host(buffers_[i].get()))) return false;
        }
        if (!buffers_[i]->aligned_to(program_.inputs[i].alignment) && !realign(i)) return false;
        pointers_[i] = buffers_[i]->data();
      }
    }
    return true;
  }

  bool realign(size_t i) {
    if (!inline_ && buffers_[i]->pending() != nullptr && !wait_for(buffers_[i]->pending())) {
      return false;
    }
    const ArraySpec& spec = program_.inputs[i];
    Ref<Buffer> copy = allocate_array(spec.dtype, spec.dims.data(), spec.dims.size());
    if (!copy) return false;
    std::memcpy(copy->data(), buffers_[i]->data(), spec.bytes);
    buffers_[i] = std::move(copy);
    return true;
  }

  // The Array gives its memory up for a result where nobody else can see it: one reference is the
  // array's, one is ours.
  bool can_take_over(size_t i) const {
    return leaves_[i].kind == LeafKind::kArray && buffers_[i]->pooled() &&
           buffers_[i]->refs() == 2 &&
           reinterpret_cast<ArrayObject*>(leaves_[i].object)->buffer == buffers_[i].get();
  }

  bool make_results() {
    for (size_t r = 0; r < results_.size(); ++r) {
      const ArraySpec& spec = program_.outputs[r];
      const int donated = program_.alias_of[r];
      if (donated >= 0 && buffers_[donated] && can_take_over(donated)) {
        results_[r] = buffers_[donated];
        continue;
      }
      results_[r] = allocate_array(spec.dtype, spec.dims.data(), spec.dims.size());
      if (!results_[r]) return false;
      if (donated >= 0) copies_.emplace_back(donated, static_cast<int>(r));
    }
    for (size_t r = 0; r < results_.size(); ++r) {
      const int donated = program_.alias_of[r];
      if (donated < 0 || leaves_[donated].kind != LeafKind::kArray) continue;
      auto* array = reinterpret_cast<ArrayObject*>(leaves_[donated].object);
      drop_content(array);
    }
    return true;
  }

  bool run_here() {
    for (const auto& [argument, result] : copies_) {
      std::memcpy(results_[result]->data(), pointers_[argument], program_.outputs[result].bytes);
      pointers_[argument] = results_[result]->data();
    }
    std::vector<void*>& outs = result_pointers_;
    outs.resize(results_.size());
    for (size_t r = 0; r < outs.size(); ++r) outs[r] = results_[r]->data();
    Error error;
    CallInPlace here(cheap_);
    if (cheap_) {
      error = run_entry(program_, pointers_.data(), outs.data());
    } else {
      const WithoutGil unlocked;
      const InNativeCode running;
      error = run_entry(program_, pointers_.data(), outs.data());
    }
    if (error.empty()) return true;
    if (!here.raise()) raise_run_error(error);
    return false;
  }

  bool enqueue_call() {
    auto job = std::make_unique<Job>();
    job->call.program = &program_;
    for (const auto& buffer : buffers_) {
      Completion* pending = buffer->pending();
      if (pending != nullptr && (!pending->done() || pending->failed())) {
        job->call.waits_for.push_back(Ref<Completion>::share(pending));
      }
    }
    job->completion = Ref<Completion>::steal(Completion::create());
    for (const auto& result : results_) result->set_pending(job->completion.get());
    job->call.args = std::move(buffers_);
    job->call.results = results_;
    job->call.copies = std::move(copies_);
    job->keepalive = Py_NewRef(reinterpret_cast<PyObject*>(executable_));
    const Ref<Completion> completion = job->completion;
    enqueue(std::move(job));
    if (async) return true;
    return wait_for(completion.get());
  }

  struct Scalar {
    alignas(std::max_align_t) unsigned char bytes[kScalarBytes];
  };

  ExecutableObject* executable_;
  const Program& program_;
  const Leaf* leaves_;
  size_t count_;
  std::vector<Ref<Buffer>>& results_;
  bool cheap_ = false;   // keeps the GIL
  bool inline_ = false;  // runs before it returns
  std::vector<void*> pointers_, result_pointers_;
  std::vector<Ref<Buffer>> buffers_;  // empty where the content is borrowed
  std::vector<Scalar> scalars_;
  std::vector<std::pair<int, int>> copies_;
};

}  // namespace

bool set_async(bool enabled) { return async.exchange(enabled); }

bool execute(ExecutableObject* executable, const Leaf* leaves, size_t count,
             std::vector<Ref<Buffer>>* results) {
  if (executable->device_program != nullptr) {
    return execute_on_device(executable, leaves, count, results);
  }
  return Run(executable, leaves, count, results).execute();
}

}  // namespace lamina
