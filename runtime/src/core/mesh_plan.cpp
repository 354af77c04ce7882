// mesh_plan.cpp -- see mesh_plan.h.
#include "core/mesh_plan.h"

namespace lamina {
namespace {

// Calls item(object) for each of a sequence that is an attribute. False with an error set.
template <typename Item>
bool each_of(PyObject* given, const char* name, Item item) {
  const Owned sequence(PyObject_GetAttrString(given, name));
  if (!sequence) return false;
  const Owned items(PySequence_Fast(sequence.get(), name));
  if (!items) return false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
    if (!item(PySequence_Fast_GET_ITEM(items.get(), i))) return false;
  }
  return true;
}

bool integer_of(PyObject* object, int64_t* value) {
  *value = PyLong_AsLongLong(object);
  return *value != -1 || PyErr_Occurred() == nullptr;
}

ArrayObject* cast(PyObject* object) { return reinterpret_cast<ArrayObject*>(object); }

// The parts of an operand for the devices here: its own where it is split so already.
Owned parts_of(const MeshPlan& plan, MeshPlan::Input& input, PyObject* array) {
  const ArrayObject* const given = cast(array);
  if (given->shards != nullptr && given->sharding != nullptr &&
      (given->sharding == input.sharding.get() || given->sharding == input.alike.get())) {
    return Owned::share(given->shards);
  }
  PyObject* const both[] = {array, input.sharding.get()};
  Owned parts(PyObject_Vectorcall(plan.cut.get(), both, 2, nullptr));
  if (parts && given->shards == parts.get() && given->sharding != nullptr) {
    input.alike = Owned::share(given->sharding);
  }
  return parts;
}

// Puts item d of `parts` at `position` of the list for device d.
bool deal(PyObject* parts, Py_ssize_t position, const std::vector<Owned>& lists) {
  const Owned items(PySequence_Fast(parts, "the parts of an array are a sequence"));
  if (!items) return false;
  if (PySequence_Fast_GET_SIZE(items.get()) != static_cast<Py_ssize_t>(lists.size())) {
    PyErr_Format(PyExc_ValueError, "an array has %zd parts for %zu devices",
                 PySequence_Fast_GET_SIZE(items.get()), lists.size());
    return false;
  }
  for (size_t d = 0; d < lists.size(); ++d) {
    PyObject* part = PySequence_Fast_GET_ITEM(items.get(), static_cast<Py_ssize_t>(d));
    PyList_SET_ITEM(lists[d].get(), position, Py_NewRef(part));
  }
  return true;
}

}  // namespace

bool read_mesh_plan(PyObject* given, MeshPlan* plan) {
  plan->run = Owned(PyObject_GetAttrString(given, "run"));
  plan->cut = Owned(PyObject_GetAttrString(given, "cut"));
  const Owned devices(PyObject_GetAttrString(given, "devices"));
  if (!plan->run || !plan->cut || !devices) return false;
  plan->devices = PyLong_AsSsize_t(devices.get());
  if (plan->devices < 0) return false;
  const auto constant = [&](PyObject* parts) {
    plan->constants.push_back(Owned::share(parts));
    return true;
  };
  const auto input = [&](PyObject* sharding) {
    plan->inputs.push_back({Owned::share(sharding), {}});
    return true;
  };
  const auto output = [&](PyObject* sharding) {
    plan->outputs.push_back({Owned::share(sharding), {}});
    return true;
  };
  const auto donated = [&](PyObject* leaf) {
    plan->donated.push_back(0);
    return integer_of(leaf, &plan->donated.back());
  };
  return each_of(given, "consts", constant) && each_of(given, "inputs", input) &&
         each_of(given, "outputs", output) && each_of(given, "donated", donated);
}

Owned run_on_mesh(MeshPlan& plan, const std::vector<Leaf>& operands) {
  const auto constants = static_cast<Py_ssize_t>(plan.constants.size());
  const auto count = constants + static_cast<Py_ssize_t>(operands.size());
  const Owned arguments(PyList_New(plan.devices));
  if (!arguments) return {};
  std::vector<Owned> lists;
  for (Py_ssize_t d = 0; d < plan.devices; ++d) {
    PyObject* list = PyList_New(count);
    if (list == nullptr) return {};
    PyList_SET_ITEM(arguments.get(), d, list);
    lists.push_back(Owned::share(list));
  }
  for (Py_ssize_t i = 0; i < constants; ++i) {
    if (!deal(plan.constants[static_cast<size_t>(i)].get(), i, lists)) return {};
  }
  for (size_t i = 0; i < operands.size(); ++i) {
    const Owned array(leaf_array(operands[i]));
    if (!array) return {};
    const Owned parts = parts_of(plan, plan.inputs[i], array.get());
    if (!parts || !deal(parts.get(), constants + static_cast<Py_ssize_t>(i), lists)) return {};
  }
  return Owned(PyObject_CallOneArg(plan.run.get(), arguments.get()));
}

Owned result_on_mesh(MeshPlan& plan, PyObject* made, size_t index, bool weak_type) {
  const Owned parts(PyList_New(plan.devices));
  if (!parts) return {};
  for (Py_ssize_t d = 0; d < plan.devices; ++d) {
    const Owned of_device(PySequence_GetItem(made, d));
    if (!of_device) return {};
    PyObject* part = PySequence_GetItem(of_device.get(), static_cast<Py_ssize_t>(index));
    if (part == nullptr) return {};
    PyList_SET_ITEM(parts.get(), d, part);
  }
  PyObject* const first = PyList_GET_ITEM(parts.get(), 0);
  if (!is_array(first)) {
    PyErr_Format(PyExc_TypeError, "a device gave a %s, not an Array", Py_TYPE(first)->tp_name);
    return {};
  }
  const ArrayObject* const part = cast(first);
  MeshPlan::Output& output = plan.outputs[index];
  while (output.splits.size() < part->ndim) {
    const Owned into(PyObject_CallMethod(output.sharding.get(), "parts", "n",
                                         static_cast<Py_ssize_t>(output.splits.size())));
    int64_t splits = 0;
    if (!into || !integer_of(into.get(), &splits)) return {};
    output.splits.push_back(splits);
  }
  std::vector<int64_t> dims(part->dims, part->dims + part->ndim);
  for (size_t i = 0; i < dims.size(); ++i) dims[i] *= output.splits[i];
  return Owned(make_sharded_array(output.sharding.get(), parts.get(), part->dtype, dims.data(),
                                  part->ndim, weak_type));
}

}  // namespace lamina
