// execute.cpp -- one call of a program for a GPU, or for several together: arguments there,
// donation, launch.
#include <exception>

#include "core/callback.h"
#include "core/executable.h"
#include "cpu/collective.h"
#include "cuda/array.h"
#include "cuda/program.h"

namespace lamina {
namespace {

using cuda::Memory;
using cuda::memory_of;

bool check_generation(const ExecutableObject* executable) {
  if (executable->device_program->generation == cuda::driver_generation()) return true;
  PyErr_SetString(PyExc_RuntimeError, "the program was loaded for another driver");
  return false;
}

class DeviceRun {
 public:
  DeviceRun(ExecutableObject* executable, const Leaf* leaves, size_t count,
            std::vector<Ref<Buffer>>* results)
      : kept_(Owned::share(reinterpret_cast<PyObject*>(executable))),
        program_(*executable->program),
        cuda_(*executable->device_program),
        device_(*cuda_.device),
        stream_(device_.stream()),
        leaves_(leaves),
        count_(count),
        results_(*results) {
    ++executable->calls;
  }

  bool execute() {
    if (!prepare()) return false;
    drop_donated();
    return without_gil([&] { issue({}); });
  }

  // Arguments and results, before what is donated is dropped.
  bool prepare() {
    results_.clear();
    results_.resize(program_.outputs.size());
    return take_arguments() && without_gil([&] { make_results(); });
  }

  void drop_donated() {
    for (const int donated : program_.alias_of) {
      if (donated < 0 || leaves_[donated].kind != LeafKind::kArray) continue;
      drop_content(reinterpret_cast<ArrayObject*>(leaves_[donated].object));
    }
  }

  // The same as a device of a team, on a thread of its own. What fails ends the others, too.
  Error issue_in_team(const cuda::Agreement& agree) {
    try {
      cuda_.watch = std::make_shared<cuda::Watch>(cuda_.clique, cuda_.position, program_.name);
      issue(agree);
      cuda_.watch = nullptr;
      return {};
    } catch (...) {
      failure_ = std::current_exception();
    }
    cuda_.watch = nullptr;
    Error error = described();
    cuda_.clique->abort(error.message);
    return error;
  }

  bool is_cause_of(const Error& error) const {
    return failure_ && error.message.ends_with(described().message);
  }
  // Whether it failed because another device of the team did, which may have been said first.
  bool was_aborted() const {
    try {
      if (failure_) std::rethrow_exception(failure_);
    } catch (const cuda::Aborted&) {
      return true;
    } catch (...) {
    }
    return false;
  }
  // Raises what `issue_in_team` gave.
  bool raise_failure() {
    return without_gil([&] { std::rethrow_exception(failure_); });
  }

 private:
  Error described() const {
    try {
      std::rethrow_exception(failure_);
    } catch (const CallbackFailed& failed) {
      return failed.error;
    } catch (const OutOfMemoryFor& error) {
      return {"out of memory for " + error.what, nullptr, nullptr};
    } catch (const std::exception& error) {
      return {error.what(), nullptr, nullptr};
    }
  }

  bool take_arguments() {
    buffers_.resize(count_);
    for (size_t i = 0; i < count_; ++i) {
      const Leaf& leaf = leaves_[i];
      Ref<Buffer> given;
      if (leaf.kind >= LeafKind::kBool) {
        unsigned char bytes[kScalarBytes];
        write_scalar(leaf, bytes);
        const size_t size = program_.inputs[i].bytes;
        if (!without_gil([&] { given = device_.upload(bytes, size); })) return false;
      } else {
        if (!(given = leaf_buffer(leaf))) return false;
        if (device_number(given.get()) != device_.number()) {
          if (!(given = to_device(given.get(), device_.number()))) return false;
        } else if (!check_not_failed(given.get())) {
          return false;
        }
        if (!given->aligned_to(kAlignment)) {
          if (!without_gil([&] { given = device_.copy(given.get()); })) return false;
        }
      }
      buffers_[i] = std::move(given);
    }
    return true;
  }

  // The Array gives its memory up for a result where nobody else can see it.
  bool can_take_over(size_t i) const {
    const Memory* memory = memory_of(buffers_[i].get());
    return leaves_[i].kind == LeafKind::kArray && memory->owned && buffers_[i]->refs() == 2;
  }

  void make_results() {
    for (size_t r = 0; r < results_.size(); ++r) {
      const int donated = program_.alias_of[r];
      if (donated >= 0 && can_take_over(static_cast<size_t>(donated))) {
        results_[r] = buffers_[donated];
        continue;
      }
      const ArraySpec& spec = program_.outputs[r];
      try {
        results_[r] = device_.allocate(stream_, spec.bytes);
      } catch (const OutOfMemory& error) {
        throw OutOfMemoryFor{error.bytes, describe(spec.dtype, spec.dims.data(),
                                                   static_cast<int>(spec.dims.size()))};
      }
      if (donated >= 0) copies_.emplace_back(donated, static_cast<int>(r));
    }
  }

  void issue(const cuda::Agreement& agree) {
    cuda::Addresses addresses;
    Ref<Buffer> own_arena;  // of a program in the midst of which others run
    try {
      if (cuda_.calls_host) own_arena = device_.allocate(stream_, cuda_.arena_bytes);
    } catch (const OutOfMemory& error) {
      throw OutOfMemoryFor{error.bytes, kTemporaries + program_.name};
    }
    if (own_arena) addresses.arena = memory_of(own_arena.get())->address;
    cuda::Turn turn(device_, stream_);
    addresses.constants = cuda_.constants ? memory_of(cuda_.constants.get())->address : 0;
    if (cuda_.constants) device_.order_after(*memory_of(cuda_.constants.get()), stream_);
    try {
      if (cuda_.arena_bytes > 0 && !own_arena) addresses.arena = device_.arena(cuda_.arena_bytes);
    } catch (const OutOfMemory& error) {
      throw OutOfMemoryFor{error.bytes, kTemporaries + program_.name};
    }
    for (const auto& buffer : buffers_) {
      Memory* memory = memory_of(buffer.get());
      memory->used = true;
      device_.order_after(*memory, stream_);
      addresses.arguments.push_back(memory->address);
    }
    for (const auto& result : results_) {
      Memory* memory = memory_of(result.get());
      device_.order_overwriting(memory);
      addresses.results.push_back(memory->address);
    }
    for (const auto& [argument, result] : copies_) {
      cuda::check(cuda::driver().copy_on_device(
                      addresses.results[result], addresses.arguments[argument],
                      program_.outputs[static_cast<size_t>(result)].bytes, stream_.handle),
                  "cuMemcpyDtoDAsync");
      addresses.arguments[argument] = addresses.results[result];
    }
    cuda_.issue(
        addresses,
        [&](const cuda::Step& step, void** inputs, void** outputs) {
          turn.pause();  // the function may run programs, here or in another thread
          const Error error = call_python(program_, step.kernel, inputs, outputs);
          turn.resume();
          if (!error.empty()) throw CallbackFailed{error};
        },
        agree);
    std::vector<Buffer*> filled;
    for (const auto& result : results_) filled.push_back(result.get());
    device_.finish_with(stream_, filled.data(), filled.size(), program_.name,
                        cuda_.meets ? cuda_.watch : nullptr);
  }

  struct CallbackFailed {
    Error error;
  };

  // Names what there is no memory for.
  struct OutOfMemoryFor {
    size_t bytes;
    std::string what;
  };

  template <typename Work>
  bool without_gil(const Work& work) {
    std::exception_ptr failure;
    {
      const WithoutGil unlocked;
      try {
        work();
      } catch (...) {
        failure = std::current_exception();
      }
    }
    if (!failure) return true;
    results_
        .clear();  // gives memory back before there is an error that this could get in the way of
    buffers_.clear();
    try {
      std::rethrow_exception(failure);
    } catch (const CallbackFailed& failed) {
      raise_run_error(failed.error);
    } catch (const OutOfMemoryFor& error) {
      set_out_of_memory(error.bytes, error.what + " on cuda:" + std::to_string(device_.number()));
    } catch (const cuda::CudaError& error) {
      try {
        throw cuda::CudaError(error.code, "[" + program_.name + "] " + error.what());
      } catch (...) {
        set_device_error();
      }
    } catch (...) {
      set_device_error();
    }
    return false;
  }

  static constexpr size_t kAlignment = 16;  // of what kernels are given

  static constexpr const char* kTemporaries = "the temporaries of ";

  const Owned kept_;  // whatever a callback does
  const Program& program_;
  cuda::Program& cuda_;
  cuda::Device& device_;
  const cuda::Stream stream_;
  const Leaf* leaves_;
  size_t count_;
  std::vector<Ref<Buffer>>& results_;
  std::vector<Ref<Buffer>> buffers_;
  std::vector<std::pair<int, int>> copies_;
  std::exception_ptr failure_;
};

// One call of the programs that the devices of a clique have of it.
class TeamRun {
 public:
  TeamRun(std::vector<ExecutableObject*> executables, std::vector<std::vector<Leaf>> leaves)
      : executables_(std::move(executables)), leaves_(std::move(leaves)), results_(leaves_.size()) {
    for (size_t d = 0; d < leaves_.size(); ++d) {
      runs_.push_back(std::make_unique<DeviceRun>(executables_[d], leaves_[d].data(),
                                                  leaves_[d].size(), &results_[d]));
    }
  }

  PyObject* execute(const Places& places) {
    for (const auto& run : runs_) {
      if (!run->prepare()) return nullptr;
    }
    for (const auto& run : runs_) run->drop_donated();
    Error error;
    {
      const WithoutGil unlocked;
      try {
        std::unique_lock<std::mutex> turn;
        if (!called_by_team()) turn = clique().begin_run();
        error = run_team(executables_[0]->program->name, places, run_device, this);
      } catch (const std::exception& failure) {
        error = {failure.what(), nullptr, nullptr};
      }
    }
    if (error.empty()) return wrapped();
    runs_failed(error);
    return nullptr;
  }

 private:
  cuda::Clique& clique() const { return *executables_[0]->device_program->clique; }

  static Error run_device(void* context, int index) {
    auto* self = static_cast<TeamRun*>(context);
    lamina::Device* here = current_device();
    return self->runs_[static_cast<size_t>(index)]->issue_in_team(
        [self, here](uint64_t graph) { return self->agreed(*here, graph); });
  }

  // Whether all devices have this graph. All are in this process.
  uint64_t agreed(lamina::Device& here, uint64_t graph) {
    const int size = here.team->size();
    const auto* self = reinterpret_cast<const CollectiveSpec*>(this);  // which meeting it is
    const Team::Group group{"the choice of a graph", self, 0, size, size};
    const auto* slots = here.team->meet(group, here.index, {&graph, nullptr});
    bool same = slots != nullptr;
    for (int d = 0; same && d < size; ++d) {
      same = *static_cast<const uint64_t*>((*slots)[static_cast<size_t>(d)].operand) == graph;
    }
    if (slots == nullptr || !here.team->leave(group)) {
      throw std::runtime_error("another device has failed");
    }
    return same ? graph : 0;
  }

  void runs_failed(const Error& error) {
    for (const bool aborted : {false, true}) {
      for (const auto& run : runs_) {
        if (run->was_aborted() != aborted || !run->is_cause_of(error)) continue;
        run->raise_failure();
        return;
      }
    }
    raise_run_error(error);
  }

  PyObject* wrapped() {
    Owned all(PyList_New(static_cast<Py_ssize_t>(runs_.size())));
    for (size_t d = 0; all && d < runs_.size(); ++d) {
      PyObject* list = PyList_New(static_cast<Py_ssize_t>(results_[d].size()));
      if (list == nullptr) return nullptr;
      PyList_SET_ITEM(all.get(), static_cast<Py_ssize_t>(d), list);
      for (size_t r = 0; r < results_[d].size(); ++r) {
        PyObject* array = wrap_output(executables_[d], r, std::move(results_[d][r]), false);
        if (array == nullptr) return nullptr;
        PyList_SET_ITEM(list, static_cast<Py_ssize_t>(r), array);
      }
    }
    return all.detach();
  }

  std::vector<ExecutableObject*> executables_;
  std::vector<std::vector<Leaf>> leaves_;
  std::vector<std::vector<Ref<Buffer>>> results_;
  std::vector<std::unique_ptr<DeviceRun>> runs_;
};

bool read_leaves(const ExecutableObject* executable, PyObject* arrays, std::vector<Leaf>* leaves) {
  const Program& program = *executable->program;
  const Owned items(PySequence_Fast(arrays, "a device's arguments are a sequence of arrays"));
  if (!items) return false;
  const auto count = static_cast<size_t>(PySequence_Fast_GET_SIZE(items.get()));
  if (count != program.inputs.size()) {
    PyErr_Format(PyExc_TypeError, "[%s] takes %zu arrays on each device, got %zu",
                 program.name.c_str(), program.inputs.size(), count);
    return false;
  }
  leaves->resize(count);
  for (size_t i = 0; i < count; ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(items.get(), static_cast<Py_ssize_t>(i));
    if (!is_array(item) || !classify(item, true, &(*leaves)[i])) {
      PyErr_Format(PyExc_TypeError, "[%s] argument %zu is no Array", program.name.c_str(), i);
      return false;
    }
    if (!check_input(executable, i, (*leaves)[i])) return false;
  }
  return true;
}

}  // namespace

PyObject* execute_clique(PyObject* executables, PyObject* arguments, const Places* given) {
  const Owned programs(PySequence_Fast(executables, "a sequence of Executables"));
  const Owned devices(PySequence_Fast(arguments, "a sequence of arguments for each device"));
  if (!programs || !devices) return nullptr;
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(programs.get());
  if (count != PySequence_Fast_GET_SIZE(devices.get())) {
    PyErr_SetString(PyExc_ValueError, "each device has an Executable and a sequence of arguments");
    return nullptr;
  }
  std::vector<ExecutableObject*> taken;
  std::vector<std::vector<Leaf>> leaves(static_cast<size_t>(count));
  for (Py_ssize_t d = 0; d < count; ++d) {
    PyObject* item = PySequence_Fast_GET_ITEM(programs.get(), d);
    auto* executable = reinterpret_cast<ExecutableObject*>(item);
    if (Py_TYPE(item) != executable_type || executable->device_program == nullptr ||
        executable->device_program->clique == nullptr) {
      PyErr_SetString(PyExc_TypeError, "expected Executables for the GPUs of a clique");
      return nullptr;
    }
    if (!check_generation(executable)) return nullptr;
    executable->device_program->device->drop_retired();
    taken.push_back(executable);
    if (!read_leaves(executable, PySequence_Fast_GET_ITEM(devices.get(), d),
                     &leaves[static_cast<size_t>(d)])) {
      return nullptr;
    }
  }
  const Places places = given == nullptr ? Places(static_cast<int>(count)) : *given;
  PyObject *result = nullptr, *type = nullptr, *value = nullptr, *traceback = nullptr;
  {
    TeamRun run(std::move(taken), std::move(leaves));
    result = run.execute(places);
    // Giving memory back calls the driver, which may not be done with an exception on its way.
    if (result == nullptr) PyErr_Fetch(&type, &value, &traceback);
  }
  if (result == nullptr) PyErr_Restore(type, value, traceback);
  return result;
}

bool execute_on_device(ExecutableObject* executable, const Leaf* leaves, size_t count,
                       std::vector<Ref<Buffer>>* results) {
  if (!check_generation(executable)) return false;
  executable->device_program->device->drop_retired();
  return DeviceRun(executable, leaves, count, results).execute();
}

}  // namespace lamina
