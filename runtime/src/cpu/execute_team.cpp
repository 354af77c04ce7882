// execute_team.cpp -- one call of an executable on several devices.
#include <algorithm>
#include <cstring>
#include "cuda/array.h"

#include "core/callback.h"
#include "core/executable.h"
#include "cpu/collective.h"

namespace lamina {
namespace {

struct DeviceCall {
  std::vector<Ref<Buffer>> args, results;
  std::vector<std::pair<int, int>> copies;  // (argument, result): donated, but not ours to take
};

struct TeamCall {
  const Program* program;
  std::vector<DeviceCall> devices;
};

Error run_device(void* context, int index) {
  const auto& call = *static_cast<TeamCall*>(context);
  const DeviceCall& here = call.devices[index];
  std::vector<void*> args, results;
  for (const auto& buffer : here.args) args.push_back(buffer->data());
  for (const auto& buffer : here.results) results.push_back(buffer->data());
  for (const auto& [argument, result] : here.copies) {
    std::memcpy(results[result], args[argument], call.program->outputs[result].bytes);
    args[argument] = results[result];
  }
  return run_entry(*call.program, args.data(), results.data());
}

// The arguments of one device, ready to be read. False with a Python error set.
bool take_arguments(const ExecutableObject* executable, PyObject* arrays, DeviceCall* call,
                    std::vector<ArrayObject*>* objects) {
  const Program& program = *executable->program;
  const Owned items(PySequence_Fast(arrays, "a device's arguments are a sequence of arrays"));
  if (!items) return false;
  if (static_cast<size_t>(PySequence_Fast_GET_SIZE(items.get())) != program.inputs.size()) {
    PyErr_Format(PyExc_TypeError, "[%s] takes %zu arrays on each device, got %zd",
                 program.name.c_str(), program.inputs.size(),
                 PySequence_Fast_GET_SIZE(items.get()));
    return false;
  }
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(items.get(), static_cast<Py_ssize_t>(i));
    Leaf leaf;
    if (!is_array(item) || !classify(item, true, &leaf)) {
      PyErr_Format(PyExc_TypeError, "[%s] argument %zu is no Array", program.name.c_str(), i);
      return false;
    }
    auto* array = reinterpret_cast<ArrayObject*>(item);
    if (!check_input(executable, i, leaf) || !wait_for_array(array)) return false;
    Ref<Buffer> buffer = on_host(array->buffer);
    if (!buffer) return false;
    if (!buffer->aligned_to(program.inputs[i].alignment)) {
      const ArraySpec& spec = program.inputs[i];
      Ref<Buffer> copy =
          allocate_array(spec.dtype, spec.dims.data(), static_cast<int>(spec.dims.size()));
      if (!copy) return false;
      std::memcpy(copy->data(), buffer->data(), spec.bytes);
      buffer = std::move(copy);
    }
    call->args.push_back(std::move(buffer));
    objects->push_back(array);
  }
  return true;
}

bool make_results(const Program& program, DeviceCall* call,
                  const std::vector<ArrayObject*>& objects) {
  for (size_t r = 0; r < program.outputs.size(); ++r) {
    const ArraySpec& spec = program.outputs[r];
    const int donated = program.alias_of[r];
    if (donated >= 0) {
      const Ref<Buffer>& given = call->args[donated];
      if (given->pooled() && given->refs() == 2 && objects[donated]->buffer == given.get()) {
        call->results.push_back(given);
        continue;
      }
      call->copies.emplace_back(donated, static_cast<int>(r));
    }
    call->results.push_back(
        allocate_array(spec.dtype, spec.dims.data(), static_cast<int>(spec.dims.size())));
    if (!call->results.back()) return false;
  }
  return true;
}

}  // namespace

PyObject* execute_team(ExecutableObject* executable, PyObject* arguments, const Places* given) {
  const Program& program = *executable->program;
  const Owned devices(PySequence_Fast(arguments, "a sequence of arguments for each device"));
  if (!devices) return nullptr;
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(devices.get());
  const Places places = given == nullptr ? Places(static_cast<int>(count)) : *given;
  if (places.here().size() != static_cast<size_t>(count)) {
    PyErr_Format(PyExc_ValueError, "[%s] runs on %zu devices here, got arguments for %zd",
                 program.name.c_str(), places.here().size(), count);
    return nullptr;
  }
  TeamCall call{&program, std::vector<DeviceCall>(static_cast<size_t>(count))};
  std::vector<std::vector<ArrayObject*>> objects(static_cast<size_t>(count));
  for (Py_ssize_t d = 0; d < count; ++d) {
    if (!take_arguments(executable, PySequence_Fast_GET_ITEM(devices.get(), d), &call.devices[d],
                        &objects[d])) {
      return nullptr;
    }
  }
  for (Py_ssize_t d = 0; d < count; ++d) {
    if (!make_results(program, &call.devices[d], objects[d])) return nullptr;
  }
  for (const auto& arrays : objects) {
    for (const int donated : program.alias_of) {
      if (donated < 0) continue;
      drop_content(arrays[donated]);
    }
  }
  ++executable->calls;
  Error error;
  CallInPlace here(false);
  {
    const WithoutGil unlocked;
    const InNativeCode running;
    error = run_team(program.name, places, run_device, &call);
  }
  if (!error.empty()) {
    // Messages that were under way may still write into arrays of this call.
    if (places.spans_processes()) new std::vector<DeviceCall>(std::move(call.devices));
    if (!here.raise()) raise_run_error(error);
    return nullptr;
  }
  Owned all(PyList_New(count));
  for (Py_ssize_t d = 0; all && d < count; ++d) {
    auto& results = call.devices[d].results;
    PyObject* list = PyList_New(static_cast<Py_ssize_t>(results.size()));
    if (list == nullptr) return nullptr;
    PyList_SET_ITEM(all.get(), d, list);
    for (size_t r = 0; r < results.size(); ++r) {
      PyObject* array = wrap_output(executable, r, std::move(results[r]), false);
      if (array == nullptr) return nullptr;
      PyList_SET_ITEM(list, static_cast<Py_ssize_t>(r), array);
    }
  }
  return all.detach();
}

}  // namespace lamina
