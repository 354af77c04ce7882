// fast_path.cpp -- see fast_path.h.
#include "core/fast_path.h"

#include <algorithm>
#include <memory>

#include "core/signature.h"

namespace lamina {

PyTypeObject* fast_path_type = nullptr;

namespace {

FastPathObject* cast(PyObject* self) { return reinterpret_cast<FastPathObject*>(self); }

// The Executable that takes the leaves themselves.
ExecutableObject* native(const Plan& plan) {
  return plan.mesh == nullptr && Py_TYPE(plan.executable.get()) == executable_type
             ? reinterpret_cast<ExecutableObject*>(plan.executable.get())
             : nullptr;
}

const Leaf& leaf_at(const std::vector<Leaf>& leaves, const uint32_t* place, size_t canonical) {
  return leaves[place == nullptr ? canonical : place[canonical]];
}

std::vector<Leaf> operands_of(const Plan& plan, const std::vector<Leaf>& leaves,
                              const uint32_t* place) {
  std::vector<Leaf> operands;
  operands.reserve(plan.constant_leaves.size() + plan.kept.size());
  operands = plan.constant_leaves;
  for (const uint32_t index : plan.kept) operands.push_back(leaf_at(leaves, place, index));
  return operands;
}

// One result as an Array with the weak type that output `index` has.
PyObject* retyped(PyObject* array, bool weak_type) {
  if (!is_array(array)) {
    PyErr_Format(PyExc_TypeError, "an executable gave a %s, not an Array", Py_TYPE(array)->tp_name);
    return nullptr;
  }
  auto* source = reinterpret_cast<ArrayObject*>(array);
  if (source->weak_type == weak_type) return Py_NewRef(array);
  if (!check_alive(source)) return nullptr;
  return make_array(Ref<Buffer>::share(source->buffer), source->dtype, source->dims, source->ndim,
                    weak_type, source->shape);
}

// An argument as a result: an array of its own on the same memory, so that deleting one of them
// leaves the other; while both are there no donation takes the memory over.
PyObject* passed_through(PyObject* array, bool weak_type, PyObject* placement) {
  auto* source = reinterpret_cast<ArrayObject*>(array);
  PyObject* const sharding = source->sharding != nullptr ? source->sharding : placement;
  PyObject* result = place_array(source, sharding == nullptr ? Py_None : sharding);
  if (result != nullptr) reinterpret_cast<ArrayObject*>(result)->weak_type = weak_type;
  return result;
}

// The results of a Python callable, as a fast sequence.
Owned call_python(const Plan& plan, const std::vector<Leaf>& operands) {
  const Owned list(PyList_New(static_cast<Py_ssize_t>(operands.size())));
  if (!list) return {};
  for (size_t i = 0; i < operands.size(); ++i) {
    PyObject* array = leaf_array(operands[i]);
    if (array == nullptr) return {};
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), array);
  }
  const Owned results(PyObject_CallOneArg(plan.executable.get(), list.get()));
  if (!results) return {};
  return Owned(PySequence_Fast(results.get(), "an executable gives a sequence of arrays"));
}

// The plan of a program that devices run together: `outputs` has what passes through already.
bool run_mesh_plan(const Plan& plan, const std::vector<Leaf>& leaves, const uint32_t* place,
                   std::vector<Owned>* outputs) {
  MeshPlan& mesh = *plan.mesh;
  const Owned made = run_on_mesh(mesh, operands_of(plan, leaves, place));
  if (!made) return false;
  for (const int64_t index : mesh.donated) {
    const Leaf& leaf = leaf_at(leaves, place, static_cast<size_t>(index));
    if (leaf.kind == LeafKind::kArray) drop_content(reinterpret_cast<ArrayObject*>(leaf.object));
  }
  for (size_t i = 0; i < outputs->size(); ++i) {
    if (plan.outputs[i] < 0) continue;
    const auto r = static_cast<size_t>(plan.outputs[i]);
    if (!((*outputs)[i] = result_on_mesh(mesh, made.get(), r, plan.weak_types[i]))) return false;
  }
  return true;
}

// --- Construction --------------------------------------------------------------------------------

bool read_indices(PyObject* sequence, const char* what, std::vector<int64_t>* indices) {
  const Owned items(PySequence_Fast(sequence, what));
  if (!items) return false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
    const Py_ssize_t index =
        PyNumber_AsSsize_t(PySequence_Fast_GET_ITEM(items.get(), i), PyExc_OverflowError);
    if (index == -1 && PyErr_Occurred()) return false;
    indices->push_back(index);
  }
  return true;
}

// Whether what is said of a mesh goes with the rest, whose leaves it counts; false with an error
// set.
bool check_mesh_plan(Plan* plan) {
  const MeshPlan& mesh = *plan->mesh;
  if (mesh.devices < 1 || mesh.inputs.size() != plan->kept.size() || !plan->constants.empty()) {
    PyErr_Format(PyExc_ValueError, "a mesh of %zd devices here has shardings for %zu of %zu inputs",
                 mesh.devices, mesh.inputs.size(), plan->kept.size());
    return false;
  }
  for (const int64_t index : mesh.donated) {
    if (index < 0) {
      PyErr_SetString(PyExc_ValueError, "donated holds a negative leaf index");
      return false;
    }
    plan->leaf_count = std::max(plan->leaf_count, static_cast<size_t>(index) + 1);
  }
  for (const int64_t output : plan->outputs) {
    if (output >= static_cast<int64_t>(mesh.outputs.size())) {
      PyErr_Format(PyExc_ValueError, "outputs names result %lld of %zu",
                   static_cast<long long>(output), mesh.outputs.size());
      return false;
    }
  }
  return true;
}

bool read_plan(PyObject* kept, PyObject* constants, PyObject* out_tree, PyObject* weak_types,
               PyObject* outputs, PyObject* mesh, Plan* plan) {
  if (mesh != Py_None) {
    plan->mesh = std::make_unique<MeshPlan>();
    if (!read_mesh_plan(mesh, plan->mesh.get())) return false;
  }
  std::vector<int64_t> kept_indices;
  if (!read_indices(kept, "kept is a sequence of leaf indices", &kept_indices)) return false;
  for (const int64_t index : kept_indices) {
    if (index < 0) {
      PyErr_SetString(PyExc_ValueError, "kept holds a negative leaf index");
      return false;
    }
    plan->kept.push_back(static_cast<uint32_t>(index));
    plan->leaf_count = std::max(plan->leaf_count, static_cast<size_t>(index) + 1);
  }
  const Owned items(PySequence_Fast(constants, "consts is a sequence of Arrays"));
  if (!items) return false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(items.get(), i);
    Leaf leaf;
    if (!is_array(item) || !classify(item, true, &leaf)) {
      PyErr_SetString(PyExc_TypeError, "consts is a sequence of Arrays");
      return false;
    }
    plan->constants.push_back(Owned::share(item));
    plan->constant_leaves.push_back(leaf);
  }
  ExecutableObject* executable = native(*plan);
  if (outputs != Py_None) {
    if (!read_indices(outputs, "outputs is a sequence of indices", &plan->outputs)) return false;
  } else if (executable != nullptr) {
    const size_t count = executable->program->outputs.size();
    for (size_t r = 0; r < count; ++r) plan->outputs.push_back(static_cast<int64_t>(r));
  } else {
    PyErr_SetString(PyExc_TypeError, "a Python executable needs outputs: its number is not known");
    return false;
  }
  for (const int64_t output : plan->outputs) {
    if (output < 0) plan->leaf_count = std::max(plan->leaf_count, static_cast<size_t>(~output) + 1);
    if (executable != nullptr && output >= 0 &&
        static_cast<size_t>(output) >= executable->program->outputs.size()) {
      PyErr_Format(PyExc_ValueError, "outputs names result %lld of %zu",
                   static_cast<long long>(output), executable->program->outputs.size());
      return false;
    }
  }
  if (plan->mesh != nullptr && !check_mesh_plan(plan)) return false;
  plan->weak_types.resize(plan->outputs.size());
  if (weak_types != Py_None) {
    const Owned flags(PySequence_Fast(weak_types, "weak_types is a sequence of bool"));
    if (!flags) return false;
    if (static_cast<size_t>(PySequence_Fast_GET_SIZE(flags.get())) != plan->outputs.size()) {
      PyErr_SetString(PyExc_ValueError, "weak_types and outputs differ in length");
      return false;
    }
    for (size_t i = 0; i < plan->outputs.size(); ++i) {
      plan->weak_types[i] =
          PyObject_IsTrue(PySequence_Fast_GET_ITEM(flags.get(), static_cast<Py_ssize_t>(i))) == 1;
    }
  }
  return plan->tree.compile(out_tree, plan->outputs.size());
}

PyObject* fast_path_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* const names[] = {"executable", "kept",    "consts", "out_tree",
                                      "weak_types", "outputs", "mesh",   nullptr};
  PyObject *executable, *kept, *constants = nullptr, *out_tree = nullptr;
  PyObject *weak_types = Py_None, *outputs = Py_None, *mesh = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|O$OOOO", const_cast<char**>(names),
                                   &executable, &kept, &constants, &out_tree, &weak_types, &outputs,
                                   &mesh)) {
    return nullptr;
  }
  if ((mesh == Py_None && !PyCallable_Check(executable)) || out_tree == nullptr) {
    PyErr_SetString(PyExc_TypeError, "FastPathEntry needs an executable and an out_tree");
    return nullptr;
  }
  const Owned none(PyTuple_New(0));
  auto plan = std::make_unique<Plan>();
  plan->executable = Owned::share(executable);
  if (!none || !read_plan(kept, constants == nullptr ? none.get() : constants, out_tree, weak_types,
                          outputs, mesh, plan.get())) {
    return nullptr;
  }
  PyObject* self = type->tp_alloc(type, 0);
  if (self != nullptr) cast(self)->plan = plan.release();
  return self;
}

// Has no tp_clear: a cycle through an entry also runs through the CompiledFunction that holds it.
int fast_path_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (cast(self)->plan == nullptr) return 0;
  Py_VISIT(cast(self)->plan->executable.get());
  Py_VISIT(cast(self)->plan->tree.unflatten());
  return 0;
}

void fast_path_dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  delete cast(self)->plan;
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* fast_path_call(PyObject* self, PyObject* args, PyObject* kwargs) {
  PyObject* sequence = nullptr;
  if (kwargs != nullptr || !PyArg_UnpackTuple(args, "FastPathEntry", 1, 1, &sequence)) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "FastPathEntry takes one sequence");
    return nullptr;
  }
  const Owned items(PySequence_Fast(sequence, "an entry takes one sequence of leaves"));
  if (!items) return nullptr;
  std::vector<Leaf> leaves(static_cast<size_t>(PySequence_Fast_GET_SIZE(items.get())));
  const bool x64 = current_config().x64;
  for (size_t i = 0; i < leaves.size(); ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(items.get(), static_cast<Py_ssize_t>(i));
    if (!classify(item, x64, &leaves[i]) && !classify_subclass(item, x64, &leaves[i])) {
      PyErr_Format(PyExc_TypeError, "leaf %zu is a %s, not an array", i, Py_TYPE(item)->tp_name);
      return nullptr;
    }
  }
  const Plan& plan = *cast(self)->plan;
  if (!check_plan(plan, leaves, nullptr)) return nullptr;
  return run_plan(plan, leaves, nullptr);
}

PyObject* get_executable(PyObject* self, void*) {
  return Py_NewRef(cast(self)->plan->executable.get());
}

PyGetSetDef fast_path_getset[] = {
    {"executable", get_executable, nullptr, "What the entry runs.", nullptr}, {nullptr}};

PyType_Slot fast_path_slots[] = {
    {Py_tp_doc,
     const_cast<char*>("What a jit call does for one signature: call it with flat leaves.")},
    {Py_tp_new, reinterpret_cast<void*>(fast_path_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(fast_path_dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(fast_path_traverse)},
    {Py_tp_call, reinterpret_cast<void*>(fast_path_call)},
    {Py_tp_getset, fast_path_getset},
    {0, nullptr}};

PyType_Spec fast_path_spec = {"lamina.runtime._runtime.FastPathEntry", sizeof(FastPathObject), 0,
                              Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, fast_path_slots};

}  // namespace

bool init_fast_path(PyObject* module) {
  fast_path_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&fast_path_spec));
  return fast_path_type != nullptr && PyModule_AddType(module, fast_path_type) == 0;
}

bool check_plan(const Plan& plan, const std::vector<Leaf>& leaves, const uint32_t* place) {
  if (leaves.size() < plan.leaf_count) {
    PyErr_Format(PyExc_TypeError, "an entry for %zu leaves was given %zu", plan.leaf_count,
                 leaves.size());
    return false;
  }
  ExecutableObject* executable = native(plan);
  if (executable == nullptr) return true;
  const std::vector<Leaf> operands = operands_of(plan, leaves, place);
  if (operands.size() != executable->program->inputs.size()) {
    PyErr_Format(PyExc_TypeError, "[%s] takes %zu arrays, its entry gives %zu",
                 executable->program->name.c_str(), executable->program->inputs.size(),
                 operands.size());
    return false;
  }
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!check_input(executable, i, operands[i])) return false;
  }
  return true;
}

PyObject* run_plan(const Plan& plan, const std::vector<Leaf>& leaves, const uint32_t* place) {
  std::vector<Owned> outputs(plan.outputs.size());
  ExecutableObject* const executable = native(plan);
  const Owned placement = executable == nullptr
                              ? Owned()
                              : placement_of_results(executable, leaves.data(), leaves.size());
  // Inputs passed through are taken first: a donation may delete them below.
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (plan.outputs[i] >= 0) continue;
    const Owned array(leaf_array(leaf_at(leaves, place, static_cast<size_t>(~plan.outputs[i]))));
    if (!array) return nullptr;
    if (!(outputs[i] = Owned(passed_through(array.get(), plan.weak_types[i], placement.get()))))
      return nullptr;
  }
  if (plan.mesh != nullptr) {
    return run_mesh_plan(plan, leaves, place, &outputs) ? plan.tree.build(outputs) : nullptr;
  }
  const std::vector<Leaf> operands = operands_of(plan, leaves, place);
  if (executable != nullptr) {
    std::vector<Ref<Buffer>> results;
    if (!execute(executable, operands.data(), operands.size(), &results)) return nullptr;
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (plan.outputs[i] < 0) continue;
      const auto r = static_cast<size_t>(plan.outputs[i]);
      outputs[i] =
          Owned(wrap_output(executable, r, results[r], plan.weak_types[i], placement.get()));
      if (!outputs[i]) return nullptr;
    }
    return plan.tree.build(outputs);
  }
  const Owned results = call_python(plan, operands);
  if (!results) return nullptr;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (plan.outputs[i] < 0) continue;
    if (plan.outputs[i] >= PySequence_Fast_GET_SIZE(results.get())) {
      PyErr_Format(PyExc_ValueError, "the executable gave %zd results, result %lld is needed",
                   PySequence_Fast_GET_SIZE(results.get()),
                   static_cast<long long>(plan.outputs[i]));
      return nullptr;
    }
    PyObject* array =
        PySequence_Fast_GET_ITEM(results.get(), static_cast<Py_ssize_t>(plan.outputs[i]));
    if (!(outputs[i] = Owned(retyped(array, plan.weak_types[i])))) return nullptr;
  }
  return plan.tree.build(outputs);
}

}  // namespace lamina
