// executable.cpp -- see executable.h.
#include "core/executable.h"

#include <structmember.h>

#include <algorithm>
#include <memory>

#include "cuda/array.h"
#include "cuda/program.h"

namespace lamina {

PyTypeObject* executable_type = nullptr;

namespace {

ExecutableObject* cast(PyObject* self) { return reinterpret_cast<ExecutableObject*>(self); }

// --- Construction --------------------------------------------------------------------------------

bool read_specs(PyObject* sequence, std::vector<ArraySpec>* specs) {
  const Owned items(
      PySequence_Fast(sequence, "inputs and outputs are sequences of (dtype, shape)"));
  if (!items) return false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
    PyObject *dtype, *shape;
    if (!PyArg_ParseTuple(PySequence_Fast_GET_ITEM(items.get(), i), "OO", &dtype, &shape)) {
      return false;
    }
    ArraySpec spec;
    int64_t dims[kMaxRank];
    int ndim = 0;
    spec.dtype = dtype_from_object(dtype);
    if (spec.dtype == kNoDtype || !read_dims(shape, dims, &ndim)) return false;
    spec.dims.assign(dims, dims + ndim);
    const int64_t bytes = checked_bytes(spec.dtype, dims, ndim);
    if (bytes < 0) {
      PyErr_Format(PyExc_MemoryError, "out of memory: the bytes of %s do not fit in 64 bits",
                   describe(spec.dtype, dims, ndim).c_str());
      return false;
    }
    spec.bytes = static_cast<size_t>(bytes);
    spec.alignment = static_cast<size_t>(PyDataType_ALIGNMENT(descr_of(spec.dtype)));
    specs->push_back(std::move(spec));
  }
  return true;
}

bool read_aliases(PyObject* sequence, Program* program) {
  program->alias_of.assign(program->outputs.size(), -1);
  const Owned items(PySequence_Fast(sequence, "aliases is a sequence of input indices or None"));
  if (!items) return false;
  const auto count = static_cast<size_t>(PySequence_Fast_GET_SIZE(items.get()));
  std::vector<bool> taken(program->inputs.size());
  for (size_t r = 0; r < count; ++r) {
    PyObject* item = PySequence_Fast_GET_ITEM(items.get(), static_cast<Py_ssize_t>(r));
    if (item == Py_None) continue;
    const Py_ssize_t input = PyNumber_AsSsize_t(item, PyExc_OverflowError);
    if (input == -1 && PyErr_Occurred()) return false;
    if (r >= program->outputs.size() || input < 0 ||
        static_cast<size_t>(input) >= program->inputs.size() || taken[input] ||
        program->inputs[input].bytes != program->outputs[r].bytes) {
      PyErr_Format(PyExc_ValueError, "output %zu cannot be input %zd in place", r, input);
      return false;
    }
    taken[input] = true;
    program->alias_of[r] = static_cast<int>(input);
  }
  return true;
}

bool read_callbacks(PyObject* sequence, HostCallbacks* callbacks) {
  const Owned items(
      PySequence_Fast(sequence, "callbacks is a sequence of (function, inputs, outputs, where)"));
  if (!items) return false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
    PyObject *function, *inputs, *outputs;
    const char* at = "";
    HostCallback callback;
    if (!PyArg_ParseTuple(PySequence_Fast_GET_ITEM(items.get(), i), "OOO|s", &function, &inputs,
                          &outputs, &at) ||
        !read_specs(inputs, &callback.inputs) || !read_specs(outputs, &callback.outputs)) {
      return false;
    }
    callback.function = Owned::share(function);
    callback.at = at;
    callbacks->all.push_back(std::move(callback));
  }
  return true;
}

PyObject* executable_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* const names[] = {"name",    "entry",       "inputs",    "outputs",
                                      "aliases", "arena_bytes", "seconds",   "loops_for_long",
                                      "code",    "manifest",    "callbacks", "device_program",
                                      nullptr};
  unsigned long long entry;
  PyObject *name, *inputs, *outputs, *aliases, *code, *manifest, *callbacks = nullptr,
                                                                 *device_program = nullptr;
  Py_ssize_t arena_bytes;
  double seconds;
  int loops_for_long;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "UKOOOndpOO|OO", const_cast<char**>(names), &name,
                                   &entry, &inputs, &outputs, &aliases, &arena_bytes, &seconds,
                                   &loops_for_long, &code, &manifest, &callbacks,
                                   &device_program)) {
    return nullptr;
  }
  if (device_program == Py_None) device_program = nullptr;
  if ((entry == 0 && device_program == nullptr) || arena_bytes < 0) {
    PyErr_SetString(PyExc_ValueError, "an executable needs an entry and a size for its arena");
    return nullptr;
  }
  Py_ssize_t name_bytes;
  const char* const name_text = PyUnicode_AsUTF8AndSize(name, &name_bytes);
  if (name_text == nullptr) return nullptr;
  auto program = std::make_unique<Program>();
  program->name.assign(name_text, static_cast<size_t>(name_bytes));
  program->entry = reinterpret_cast<Entry>(static_cast<uintptr_t>(entry));
  program->arena_bytes = static_cast<size_t>(arena_bytes);
  program->cheap = seconds * 1e9 < kCheapNs;
  program->is_large = seconds > Program::kLargeSeconds;
  program->loops_for_long = loops_for_long != 0;
  if (!read_specs(inputs, &program->inputs) || !read_specs(outputs, &program->outputs) ||
      !read_aliases(aliases, program.get())) {
    return nullptr;
  }
  auto host = std::make_unique<HostCallbacks>();
  if (callbacks != nullptr && !read_callbacks(callbacks, host.get())) return nullptr;
  if (!host->all.empty()) {
    program->callbacks = host.get();
    program->cheap = false;
  }
  auto shapes = std::make_unique<std::vector<Owned>>();
  for (const ArraySpec& spec : program->outputs) {
    shapes->emplace_back(dims_tuple(spec.dims.data(), static_cast<int>(spec.dims.size())));
    if (!shapes->back()) return nullptr;
  }
  PyObject* self = type->tp_alloc(type, 0);
  if (self == nullptr) return nullptr;
  cast(self)->program = program.release();
  cast(self)->output_shapes = shapes.release();
  cast(self)->code = Py_NewRef(code);
  cast(self)->manifest = Py_NewRef(manifest);
  if (!host->all.empty()) cast(self)->callbacks = host.release();
  if (device_program != nullptr) {
    void* loaded = PyCapsule_GetPointer(device_program, kDeviceProgram);
    if (loaded == nullptr || PyCapsule_SetDestructor(device_program, nullptr) != 0) {
      Py_DECREF(self);
      return nullptr;
    }
    cast(self)->device_program = static_cast<cuda::Program*>(loaded);
  }
  return self;
}

void executable_dealloc(PyObject* self) {
  if (cast(self)->weak_references != nullptr) PyObject_ClearWeakRefs(self);
  delete cast(self)->output_shapes;
  delete cast(self)->program;
  delete cast(self)->callbacks;
  delete cast(self)->device_program;
  Py_XDECREF(cast(self)->code);
  Py_XDECREF(cast(self)->timed_code);
  Py_XDECREF(cast(self)->manifest);
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

// --- Calling from Python -------------------------------------------------------------------------

PyObject* executable_call(PyObject* self, PyObject* args, PyObject* kwargs) {
  PyObject* sequence = nullptr;
  if (kwargs != nullptr || !PyArg_UnpackTuple(args, "Executable", 1, 1, &sequence)) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "Executable takes one sequence");
    return nullptr;
  }
  const Owned items(PySequence_Fast(sequence, "an executable takes one sequence of arrays"));
  if (!items) return nullptr;
  const Program& program = *cast(self)->program;
  const auto count = static_cast<size_t>(PySequence_Fast_GET_SIZE(items.get()));
  if (count != program.inputs.size()) {
    PyErr_Format(PyExc_TypeError, "[%s] takes %zu arrays, got %zu", program.name.c_str(),
                 program.inputs.size(), count);
    return nullptr;
  }
  std::vector<Leaf> leaves(count);
  for (size_t i = 0; i < count; ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(items.get(), static_cast<Py_ssize_t>(i));
    if (!classify(item, true, &leaves[i]) && !classify_subclass(item, true, &leaves[i])) {
      PyErr_Format(PyExc_TypeError, "[%s] argument %zu is a %s, not an array", program.name.c_str(),
                   i, Py_TYPE(item)->tp_name);
      return nullptr;
    }
    if (!check_input(cast(self), i, leaves[i])) return nullptr;
  }
  std::vector<Ref<Buffer>> results;
  const Owned placement = placement_of_results(cast(self), leaves.data(), count);
  if (!execute(cast(self), leaves.data(), count, &results)) return nullptr;
  Owned list(PyList_New(static_cast<Py_ssize_t>(results.size())));
  for (size_t r = 0; list && r < results.size(); ++r) {
    PyObject* array = wrap_output(cast(self), r, std::move(results[r]), false, placement.get());
    if (array == nullptr) return nullptr;
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(r), array);
  }
  return list.detach();
}

PyObject* set_timed_entry(PyObject* self, PyObject* args) {
  unsigned long long entry;
  PyObject* code;
  if (!PyArg_ParseTuple(args, "KO", &entry, &code)) return nullptr;
  ExecutableObject* const executable = cast(self);
  // A call may be in the first's code for as long as this object lives.
  if (executable->timed_code == nullptr) {
    executable->timed_code = Py_NewRef(code);
    executable->program->timed_entry.store(reinterpret_cast<Entry>(static_cast<uintptr_t>(entry)),
                                           std::memory_order_release);
  }
  Py_RETURN_NONE;
}

PyObject* specs_list(const std::vector<ArraySpec>& specs) {
  Owned list(PyList_New(0));
  for (const ArraySpec& spec : specs) {
    PyObject* shape = dims_tuple(spec.dims.data(), static_cast<int>(spec.dims.size()));
    const Owned pair(shape == nullptr ? nullptr : Py_BuildValue("ON", descr_of(spec.dtype), shape));
    if (!list || !pair || PyList_Append(list.get(), pair.get()) != 0) return nullptr;
  }
  return list.detach();
}

PyObject* get_name(PyObject* self, void*) {
  return PyUnicode_FromString(cast(self)->program->name.c_str());
}
PyObject* get_inputs(PyObject* self, void*) { return specs_list(cast(self)->program->inputs); }
PyObject* get_outputs(PyObject* self, void*) { return specs_list(cast(self)->program->outputs); }
PyObject* get_aliases(PyObject* self, void*) {
  Owned dict(PyDict_New());
  const std::vector<int>& alias_of = cast(self)->program->alias_of;
  for (size_t r = 0; dict && r < alias_of.size(); ++r) {
    if (alias_of[r] < 0) continue;
    const Owned key(PyLong_FromSize_t(r)), value(PyLong_FromLong(alias_of[r]));
    if (!key || !value || PyDict_SetItem(dict.get(), key.get(), value.get()) != 0) return nullptr;
  }
  return dict.detach();
}
PyObject* get_arena_bytes(PyObject* self, void*) {
  return PyLong_FromSize_t(cast(self)->program->arena_bytes);
}
PyObject* get_cheap(PyObject* self, void*) { return PyBool_FromLong(cast(self)->program->cheap); }
PyObject* get_calls(PyObject* self, void*) {
  return PyLong_FromUnsignedLongLong(cast(self)->calls);
}

PyGetSetDef executable_getset[] = {
    {"name", get_name, nullptr, "Name of the compiled function.", nullptr},
    {"inputs", get_inputs, nullptr, "(dtype, shape) of each argument.", nullptr},
    {"outputs", get_outputs, nullptr, "(dtype, shape) of each result.", nullptr},
    {"aliases", get_aliases, nullptr, "{result: donated argument whose memory it takes}.", nullptr},
    {"arena_bytes", get_arena_bytes, nullptr, "Bytes of temporaries in a call.", nullptr},
    {"cheap", get_cheap, nullptr, "Whether calls run before they return rather than being queued.",
     nullptr},
    {"calls", get_calls, nullptr, "How often it was called.", nullptr},
    {nullptr}};

PyMethodDef executable_methods[] = {
    {"set_timed_entry", set_timed_entry, METH_VARARGS,
     "set_timed_entry(entry, code): what is called while a profiler records; the first counts."},
    {nullptr}};

PyMemberDef executable_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(ExecutableObject, weak_references), READONLY},
    {"manifest", T_OBJECT, offsetof(ExecutableObject, manifest), READONLY,
     "The artifact's manifest."},
    {nullptr}};

PyType_Slot executable_slots[] = {
    {Py_tp_doc, const_cast<char*>("Loaded machine code: call it with a sequence of arrays.")},
    {Py_tp_new, reinterpret_cast<void*>(executable_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(executable_dealloc)},
    {Py_tp_call, reinterpret_cast<void*>(executable_call)},
    {Py_tp_methods, executable_methods},
    {Py_tp_getset, executable_getset},
    {Py_tp_members, executable_members},
    {0, nullptr}};

PyType_Spec executable_spec = {"lamina.runtime._runtime.Executable", sizeof(ExecutableObject), 0,
                               Py_TPFLAGS_DEFAULT, executable_slots};

}  // namespace

bool init_executable(PyObject* module) {
  executable_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&executable_spec));
  return executable_type != nullptr && PyModule_AddType(module, executable_type) == 0;
}

const Program* program_of(PyObject* executable) {
  if (PyObject_TypeCheck(executable, executable_type)) return cast(executable)->program;
  PyErr_Format(PyExc_TypeError, "expected an Executable, got a %s", Py_TYPE(executable)->tp_name);
  return nullptr;
}

PyObject* wrap_output(ExecutableObject* executable, size_t index, Ref<Buffer> buffer,
                      bool weak_type, PyObject* placement) {
  const ArraySpec& spec = executable->program->outputs[index];
  PyObject* array = make_array(std::move(buffer), spec.dtype, spec.dims.data(),
                               static_cast<int>(spec.dims.size()), weak_type,
                               (*executable->output_shapes)[index].get());
  if (array != nullptr && (placement != nullptr || executable->device_program != nullptr)) {
    Py_XSETREF(reinterpret_cast<ArrayObject*>(array)->sharding, Py_XNewRef(placement));
  }
  return array;
}

Owned placement_of_results(const ExecutableObject* executable, const Leaf* leaves, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    PyObject* const placement = single_placement_of(leaves[i]);
    if (placement != nullptr) return Owned::share(placement);
    if (executable->device_program == nullptr || leaves[i].kind != LeafKind::kArray) continue;
    const auto* array = reinterpret_cast<ArrayObject*>(leaves[i].object);
    if (array->sharding != nullptr && device_number(array->buffer) >= 0) {
      return Owned::share(array->sharding);
    }
  }
  return {};
}

bool check_input(const ExecutableObject* executable, size_t index, const Leaf& leaf) {
  const ArraySpec& spec = executable->program->inputs[index];
  if (leaf.dtype == spec.dtype && leaf.ndim == spec.dims.size() &&
      std::equal(spec.dims.begin(), spec.dims.end(), leaf.dims)) {
    return true;
  }
  PyErr_Format(PyExc_TypeError, "[%s] argument %zu: got %s, expected %s",
               executable->program->name.c_str(), index,
               describe(leaf.dtype, leaf.dims, leaf.ndim).c_str(),
               describe(spec.dtype, spec.dims.data(), static_cast<int>(spec.dims.size())).c_str());
  return false;
}

}  // namespace lamina
