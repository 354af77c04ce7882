// python.h -- small helpers over CPython's C interface, for the types that are written against it.
#pragma once

#include <string>
#include <utility>

#include "core/buffer.h"
#include "core/leaving.h"
#include "core/numpy_api.h"
#include "core/shared.h"

namespace lamina {

// An owned reference, dropped with the GIL held.
class Owned {
 public:
  Owned() = default;
  explicit Owned(PyObject* stolen) : object_(stolen) {}
  static Owned share(PyObject* borrowed) { return Owned(Py_XNewRef(borrowed)); }
  Owned(Owned&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Owned(const Owned& other) : object_(Py_XNewRef(other.object_)) {}
  Owned& operator=(Owned other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Owned() { Py_XDECREF(object_); }

  PyObject* get() const { return object_; }
  PyObject* detach() { return std::exchange(object_, nullptr); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

// Holds the GIL for a scope, on any thread.
class LAMINA_SHARED Gil {
 public:
  Gil();
  ~Gil() { PyGILState_Release(state_); }
  Gil(const Gil&) = delete;

 private:
  const InNativeCode native_;
  PyGILState_STATE state_;
};

// Releases the GIL for a scope.
class WithoutGil {
 public:
  WithoutGil() : state_(PyEval_SaveThread()) {}
  ~WithoutGil() {
    const InNativeCode native;
    if (!Py_IsInitialized()) sleep_until_the_end();  // this thread's state may be freed
    PyEval_RestoreThread(state_);
  }
  WithoutGil(const WithoutGil&) = delete;

 private:
  PyThreadState* state_;
};

// What work gives, done without the GIL: where it waits for a mutex or the driver, others go on.
template <typename Work>
decltype(auto) unlocked(const Work& work) {
  const WithoutGil released;
  return work();
}

// Drops a reference from a thread that may not hold the GIL: now where it does, soon otherwise.
LAMINA_SHARED void drop_reference(void* object);

// Memory of a Python object; the buffer owns a new reference to it.
Buffer* wrap_python_memory(void* data, size_t bytes, PyObject* owner);

// Sleeps until done without the GIL, helping with queued work. False with a Python error set where
// the computation failed or a signal handler raised.
bool wait_for(Completion* completion, bool* interrupted = nullptr);

// NumPy drops every error of the buffer protocol, also what Ctrl-C raised, and asks __array__ next.
// The first keeps the error that is set; the second raises it again where it was dropped: one that
// reached Python code has a longer traceback since.
void keep_interrupt();
bool raise_kept_interrupt();

// MemoryError: "out of memory: 4294967296 bytes for float32[1024,1024,1024]".
void set_out_of_memory(size_t bytes, const std::string& what);

// The sizes of a Python sequence; false with TypeError or ValueError set.
bool read_dims(PyObject* sequence, int64_t* dims, int* ndim);
inline constexpr int kMaxRank = 64;

PyObject* dims_tuple(const int64_t* dims, int ndim);

}  // namespace lamina
