// python.cpp -- see python.h.
#include "core/python.h"

#include <mutex>
#include <vector>

#include "core/callback.h"
#include "core/dispatch.h"
#include "core/platform.h"

namespace lamina {
namespace {

// References given up by threads without the GIL, until a thread that has it drops them.
struct Dropped {
  SpinLock lock;
  std::vector<PyObject*> objects;
  bool scheduled = false;
};

Dropped& dropped() {
  static auto* instance = new Dropped;
  return *instance;
}

int drop_all(void*) {
  std::vector<PyObject*> objects;
  {
    std::lock_guard guard(dropped().lock);
    objects.swap(dropped().objects);
    dropped().scheduled = false;
  }
  for (PyObject* object : objects) Py_DECREF(object);
  return 0;
}

// What a signal's handler raised, and its traceback at that time.
struct Interrupt {
  PyObject* exception = nullptr;
  PyObject* traceback = nullptr;
  void forget() {
    Py_CLEAR(exception);
    Py_CLEAR(traceback);
  }
};

thread_local Interrupt kept_interrupt;

// A thread that Python did not make gets a thread state once and keeps it: making one for each call
// costs more than the call, and taking it down runs destructors that would take it down again.
PyGILState_STATE ensure_gil() {
  if (!Py_IsInitialized()) sleep_until_the_end();
  const bool foreign = PyGILState_GetThisThreadState() == nullptr;
  const PyGILState_STATE state = PyGILState_Ensure();
  if (foreign) PyGILState_Ensure();
  return state;
}

}  // namespace

Gil::Gil() : state_(ensure_gil()) {}

void drop_reference(void* object) {
  if (!Py_IsInitialized() || python_leaves_without_me()) return;
  if (PyGILState_Check()) {
    Py_DECREF(static_cast<PyObject*>(object));
    return;
  }
  std::lock_guard guard(dropped().lock);
  dropped().objects.push_back(static_cast<PyObject*>(object));
  // The interpreter's list of pending calls is short; where it is full, the next drop tries again.
  if (!dropped().scheduled) dropped().scheduled = Py_AddPendingCall(drop_all, nullptr) == 0;
}

Buffer* wrap_python_memory(void* data, size_t bytes, PyObject* owner) {
  return Buffer::wrap(data, bytes, drop_reference, Py_NewRef(owner));
}

bool wait_for(Completion* completion, bool* interrupted) {
  const auto held = Ref<Completion>::share(completion);
  while (!held->done()) {
    {
      const WithoutGil unlocked;
      if (!help_with_queue()) held->wait(50'000'000);
    }
    if (PyErr_CheckSignals() != 0) {
      if (interrupted != nullptr) *interrupted = true;
      return false;
    }
  }
  if (!held->failed()) return true;
  held->error().take_report();
  raise_run_error(held->error());
  return false;
}

void keep_interrupt() {
  PyObject *type, *exception, *traceback;
  PyErr_Fetch(&type, &exception, &traceback);
  PyErr_NormalizeException(&type, &exception, &traceback);
  if (traceback != nullptr) PyException_SetTraceback(exception, traceback);
  kept_interrupt.forget();
  kept_interrupt = {Py_NewRef(exception), PyException_GetTraceback(exception)};
  PyErr_Restore(type, exception, traceback);
}

bool raise_kept_interrupt() {
  if (kept_interrupt.exception == nullptr) return false;
  const Owned now(PyException_GetTraceback(kept_interrupt.exception));
  const bool was_dropped = now.get() == kept_interrupt.traceback;
  if (was_dropped) {
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(kept_interrupt.exception)),
                    kept_interrupt.exception);
  }
  kept_interrupt.forget();
  return was_dropped;
}

void set_out_of_memory(size_t bytes, const std::string& what) {
  PyErr_Format(PyExc_MemoryError, "out of memory: %zu bytes for %s", bytes, what.c_str());
}

bool read_dims(PyObject* sequence, int64_t* dims, int* ndim) {
  const Owned items(PySequence_Fast(sequence, "a shape is a sequence of integers"));
  if (!items) return false;
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(items.get());
  if (count > kMaxRank) {
    PyErr_Format(PyExc_ValueError, "arrays have at most %d dimensions, got %zd", kMaxRank, count);
    return false;
  }
  for (Py_ssize_t i = 0; i < count; ++i) {
    const Py_ssize_t size =
        PyNumber_AsSsize_t(PySequence_Fast_GET_ITEM(items.get(), i), PyExc_OverflowError);
    if (size == -1 && PyErr_Occurred()) return false;
    if (size < 0) {
      PyErr_Format(PyExc_ValueError, "dimension %zd of a shape is negative: %zd", i, size);
      return false;
    }
    dims[i] = size;
  }
  *ndim = static_cast<int>(count);
  return true;
}

PyObject* dims_tuple(const int64_t* dims, int ndim) {
  PyObject* tuple = PyTuple_New(ndim);
  if (tuple == nullptr) return nullptr;
  for (int i = 0; i < ndim; ++i) {
    PyObject* size = PyLong_FromLongLong(dims[i]);
    if (size == nullptr) {
      Py_DECREF(tuple);
      return nullptr;
    }
    PyTuple_SET_ITEM(tuple, i, size);
  }
  return tuple;
}

}  // namespace lamina
