// execute.cpp -- one call of a program for a GPU: arguments there, donation, launch.
#include <exception>

#include "core/callback.h"
#include "core/executable.h"
#include "cuda/array.h"
#include "cuda/program.h"

namespace lamina {
namespace {

using cuda::Memory;
using cuda::memory_of;

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
    results_.clear();
    results_.resize(program_.outputs.size());
    if (!take_arguments()) return false;
    if (!without_gil([&] { make_results(); })) return false;
    drop_donated();
    return without_gil([&] { issue(); });
  }

 private:
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

  void drop_donated() {
    for (const int donated : program_.alias_of) {
      if (donated < 0 || leaves_[donated].kind != LeafKind::kArray) continue;
      drop_content(reinterpret_cast<ArrayObject*>(leaves_[donated].object));
    }
  }

  void issue() {
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
    cuda_.issue(addresses, [&](const cuda::Step& step, void** inputs, void** outputs) {
      turn.pause();  // the function may run programs, here or in another thread
      const Error error = call_python(program_, step.kernel, inputs, outputs);
      turn.resume();
      if (!error.empty()) throw CallbackFailed{error};
    });
    std::vector<Buffer*> filled;
    for (const auto& result : results_) filled.push_back(result.get());
    device_.finish_with(stream_, filled.data(), filled.size(), program_.name);
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
};

}  // namespace

bool execute_on_device(ExecutableObject* executable, const Leaf* leaves, size_t count,
                       std::vector<Ref<Buffer>>* results) {
  if (executable->device_program->generation != cuda::driver_generation()) {
    PyErr_SetString(PyExc_RuntimeError, "the program was loaded for another driver");
    return false;
  }
  executable->device_program->device->drop_retired();
  return DeviceRun(executable, leaves, count, results).execute();
}

}  // namespace lamina
