// callback.cpp -- see callback.h.
#include "core/callback.h"

#include <cstring>
#include <memory>
#include <string>

#include "core/dispatch.h"
#include "core/dtypes.h"
#include "core/platform.h"
#include "cpu/collective.h"
#include "cpu/threads.h"

namespace lamina {
namespace {

constexpr int64_t kBetweenLooksNs = 20'000'000;

PyObject* run_error_type = nullptr;
thread_local CallInPlace* call_in_place = nullptr;

// Python code expects the usual floating-point mode, kernels after it theirs.
class UsualArithmetic {
 public:
  UsualArithmetic() : saved_(fp_control()) { set_fp_control(saved_ & ~kFlushDenormals); }
  ~UsualArithmetic() { set_fp_control(saved_); }
  UsualArithmetic(const UsualArithmetic&) = delete;

 private:
  uint64_t saved_;
};

// A read-only copy: the function may keep it, and the program goes on to write the memory.
Owned copy_of(const ArraySpec& spec, const void* data) {
  npy_intp dims[kMaxRank];
  for (size_t i = 0; i < spec.dims.size(); ++i) dims[i] = static_cast<npy_intp>(spec.dims[i]);
  PyArray_Descr* descr = descr_of(spec.dtype);
  Py_INCREF(descr);
  Owned array(PyArray_NewFromDescr(&PyArray_Type, descr, static_cast<int>(spec.dims.size()), dims,
                                   nullptr, nullptr, 0, nullptr));
  if (!array) return array;
  auto* made = reinterpret_cast<PyArrayObject*>(array.get());
  if (spec.bytes != 0) std::memcpy(PyArray_DATA(made), data, spec.bytes);
  PyArray_CLEARFLAGS(made, NPY_ARRAY_WRITEABLE);
  return array;
}

bool store(const HostCallback& callback, PyObject* results, void** places) {
  const size_t count = callback.outputs.size();
  if (!PyTuple_Check(results) || static_cast<size_t>(PyTuple_GET_SIZE(results)) != count) {
    PyErr_SetString(PyExc_TypeError, "a host callback gives a tuple with an array for each result");
    return false;
  }
  for (size_t r = 0; r < count; ++r) {
    PyObject* item = PyTuple_GET_ITEM(results, static_cast<Py_ssize_t>(r));
    auto* array = reinterpret_cast<PyArrayObject*>(item);
    if (!PyArray_Check(item) || !PyArray_IS_C_CONTIGUOUS(array) ||
        static_cast<size_t>(PyArray_NBYTES(array)) != callback.outputs[r].bytes) {
      PyErr_Format(PyExc_TypeError,
                   "result %zu of a host callback is not a dense array of %zu bytes", r,
                   callback.outputs[r].bytes);
      return false;
    }
    if (places[r] != nullptr && callback.outputs[r].bytes != 0) {
      std::memcpy(places[r], PyArray_DATA(array), callback.outputs[r].bytes);
    }
  }
  return true;
}

bool call(const HostCallback& callback, void** args, void** results) {
  const Owned arguments(PyTuple_New(static_cast<Py_ssize_t>(callback.inputs.size())));
  if (!arguments) return false;
  for (size_t i = 0; i < callback.inputs.size(); ++i) {
    Owned array = copy_of(callback.inputs[i], args[i]);
    if (!array) return false;
    PyTuple_SET_ITEM(arguments.get(), static_cast<Py_ssize_t>(i), array.detach());
  }
  const Owned given(PyObject_CallObject(callback.function.get(), arguments.get()));
  return given && store(callback, given.get(), results);
}

// A new reference to the exception that is set, which is cleared.
PyObject* take_exception() {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (traceback != nullptr) PyException_SetTraceback(value, traceback);
  Py_XDECREF(type);
  Py_XDECREF(traceback);
  return value;
}

std::string text_of(PyObject* exception) {
  const Owned name(
      PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(exception)), "__name__"));
  const Owned text(PyObject_Str(exception));
  const char* first = name ? PyUnicode_AsUTF8(name.get()) : nullptr;
  const char* second = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  std::string message = first == nullptr ? "an exception" : first;
  if (second != nullptr && *second != '\0') message += std::string(": ") + second;
  PyErr_Clear();
  return message;
}

}  // namespace

Error call_python(const Program& program, size_t index, void** args, void** results) {
  const Gil gil;
  const UsualArithmetic usual;
  const CallbackScope inside;
  const OutsideTeam alone;
  if (!program.callbacks || index >= program.callbacks->all.size()) {
    return {"[" + program.name + "] calls the Python function number " + std::to_string(index) +
                ", and it was loaded without",
            nullptr, nullptr};
  }
  const HostCallback& callback = program.callbacks->all[index];
  const Owned held = callback.function;
  if (call(callback, args, results)) return {};
  const std::shared_ptr<void> cause(take_exception(), drop_reference);
  const std::string text = text_of(static_cast<PyObject*>(cause.get()));
  const std::string where = callback.at.empty() ? "" : " (called at " + callback.at + ")";
  return {"[" + program.name + "] a Python callback raised " + text + where, cause, nullptr};
}

CallInPlace::CallInPlace(bool holds_gil) : outer_(call_in_place), holds_gil_(holds_gil) {
  call_in_place = this;
}

CallInPlace::~CallInPlace() { call_in_place = outer_; }

bool CallInPlace::raise() {
  if (raised_ == nullptr) return false;
  const Owned raised(std::exchange(raised_, nullptr));
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(raised.get())), raised.get());
  return true;
}

bool CallInPlace::goes_on() {
  const int64_t now = now_ns();
  if (next_look_ns_ == 0) next_look_ns_ = now + kBetweenLooksNs;
  if (now < next_look_ns_) return true;
  if (holds_gil_) const WithoutGil others_run;
  const Gil gil;
  const UsualArithmetic usual;
  if (PyErr_CheckSignals() != 0) {
    raised_ = take_exception();
    fail_current({"interrupted by a signal", nullptr, nullptr});
    return false;
  }
  next_look_ns_ = now_ns() + kBetweenLooksNs;
  return true;
}

void set_run_error_type(PyObject* type) { run_error_type = Py_NewRef(type); }

void raise_run_error(const Error& error) {
  PyObject* type = run_error_type == nullptr ? PyExc_RuntimeError : run_error_type;
  auto* cause = static_cast<PyObject*>(error.cause.get());
  if (cause == nullptr) {
    PyErr_SetString(type, error.message.c_str());
    return;
  }
  // An interrupt is not a failure of the program.
  if (!PyObject_IsInstance(cause, PyExc_Exception)) {
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(cause)), cause);
    return;
  }
  const Owned raised(PyObject_CallFunction(type, "s", error.message.c_str()));
  if (!raised) return;
  PyException_SetCause(raised.get(), Py_NewRef(cause));
  PyErr_SetObject(type, raised.get());
}

}  // namespace lamina

extern "C" {

void lamina_python_callback(int64_t index, void** args, void** results) {
  using namespace lamina;
  const Program* program = running_program();
  if (lamina_failed() != 0) return;
  Error error = call_python(*program, static_cast<size_t>(index), args, results);
  if (!error.empty()) fail_current(std::move(error));
}

int32_t lamina_interrupted() {
  using namespace lamina;
  if (current_call_failed()) return 1;
  const Device* const device = current_device();
  if (device != nullptr && device->team->has_failed()) return 1;
  return call_in_place == nullptr || call_in_place->goes_on() ? 0 : 1;
}

int32_t lamina_failed() { return lamina::current_call_failed() ? 1 : 0; }
}
