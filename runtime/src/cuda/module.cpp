// module.cpp -- see module.h.
#include "core/numpy_api.h"

#include "cuda/module.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>

#include "core/executable.h"
#include "cuda/array.h"
#include "cuda/program.h"

namespace nb = nanobind;

namespace lamina {
namespace {

using cuda::Device;

// Lets an exception about CUDA out as the Python error it stands for.
template <typename Work>
auto translated(const Work& work) {
  try {
    return work();
  } catch (const nb::python_error&) {
    throw;
  } catch (const nb::cast_error&) {
    throw;
  } catch (...) {
    set_device_error();
    throw nb::python_error();
  }
}

ArrayObject* as_array(nb::handle object) {
  if (!is_array(object.ptr())) {
    PyErr_Format(PyExc_TypeError, "expected an Array, got a %s", Py_TYPE(object.ptr())->tp_name);
    throw nb::python_error();
  }
  return reinterpret_cast<ArrayObject*>(object.ptr());
}

ArrayObject* as_live_array(nb::handle object) {
  ArrayObject* array = as_array(object);
  if (!check_alive(array)) throw nb::python_error();
  return array;
}

void raise_if(bool failed) {
  if (failed) throw nb::python_error();
}

// --- Devices -------------------------------------------------------------------------------------

// What work does on a GPU, without the GIL.
template <typename Work>
auto on_device(int number, const Work& work) {
  return translated([&] { return unlocked([&] { return work(Device::get(number)); }); });
}

uintptr_t as_number(cuda::Handle handle) { return reinterpret_cast<uintptr_t>(handle); }
cuda::Handle as_handle(uintptr_t number) { return reinterpret_cast<cuda::Handle>(number); }

cuda::Memory& memory_on_device(nb::handle object) {
  cuda::Memory* memory = cuda::memory_of(as_live_array(object)->buffer);
  if (memory == nullptr) throw nb::value_error("the array is in the memory of the host");
  return *memory;
}

void replace_driver(nb::object functions) {
  if (functions.is_none()) return cuda::replace_driver(nullptr);
  std::unordered_map<std::string, uintptr_t> table;
  for (const auto& [symbol, address] : nb::cast<nb::dict>(functions)) {
    table[nb::cast<std::string>(symbol)] = nb::cast<uintptr_t>(address);
  }
  cuda::replace_driver(&table);
}

// --- Programs ------------------------------------------------------------------------------------

void read_three(nb::handle from, unsigned* to) {
  size_t i = 0;
  for (const nb::handle size : nb::cast<nb::sequence>(from)) {
    if (i < 3) to[i++] = nb::cast<unsigned>(size);
  }
}

cuda::Place read_place(nb::handle from) {
  if (from.is_none()) return {cuda::Space::kNowhere, 0};
  const auto pair = nb::cast<nb::sequence>(from);
  const auto space = nb::cast<std::string>(pair[0]);
  const auto where = nb::cast<uint64_t>(pair[1]);
  if (space == "argument") return {cuda::Space::kArgument, where};
  if (space == "result") return {cuda::Space::kResult, where};
  if (space == "arena") return {cuda::Space::kArena, where};
  if (space == "constant") return {cuda::Space::kConstant, where};
  throw nb::value_error("a launch plan names an unknown space");
}

std::vector<cuda::Step> read_steps(nb::handle from, nb::dict kernels, cuda::Program* program);

void read_collective(nb::dict from, cuda::Step* step, cuda::Program* program) {
  const auto what = nb::cast<std::string>(from["collective"]);
  const auto kind = std::find(std::begin(kCollectiveNames), std::end(kCollectiveNames), what) -
                    std::begin(kCollectiveNames);
  step->kind = cuda::Step::kCollective;
  step->name = what;
  for (const nb::handle place : nb::cast<nb::sequence>(from["buffers"])) {
    step->places.push_back(read_place(place));
  }
  if (program->clique == nullptr) {
    throw nb::value_error("a program with collectives is loaded for the GPUs of a mesh");
  }
  ++program->launches;
  cuda::Collective& collective = step->collective;
  collective.kind = static_cast<CollectiveKind>(kind);
  if (collective.kind == CollectiveKind::kDeviceId) {  // a constant on each device
    step->kind = cuda::Step::kFill;
    step->bytes = step->element_bytes = sizeof(uint32_t);
    step->element = static_cast<unsigned>(program->position);
    return;
  }
  program->meets = true;
  collective.type = nb::cast<int>(from["type"]);
  collective.op = nb::cast<int>(from["op"]);
  collective.count = nb::cast<size_t>(from["count"]);
  collective.element_bytes = nb::cast<size_t>(from["bytes"]);
  cuda::Groups groups;
  for (const nb::handle row : nb::cast<nb::sequence>(from["groups"])) {
    groups.emplace_back();
    for (const nb::handle member : nb::cast<nb::sequence>(row)) {
      groups.back().push_back(nb::cast<int>(member));
    }
  }
  if (collective.kind == CollectiveKind::kPermute) {
    for (const auto& pair : groups) {
      if (pair.at(0) == program->position) collective.targets.push_back(pair.at(1));
      if (pair.at(1) == program->position) collective.source = pair.at(0);
    }
    groups = {};
  }
  collective.communicator =
      unlocked([&] { return program->clique->among(groups, program->position); });
}

cuda::Step read_step(nb::dict from, nb::dict kernels, cuda::Program* program) {
  cuda::Step step;
  const auto text = [&from](const char* key) {
    return from.contains(key) ? nb::cast<std::string>(from[key]) : std::string();
  };
  const auto steps = [&](const char* key) { return read_steps(from[key], kernels, program); };
  step.name = text("name");
  step.at = text("at");
  if (from.contains("launch")) {
    step.kind = cuda::Step::kLaunch;
    step.kernel = nb::cast<size_t>(kernels[from["launch"]]);
    for (const nb::handle place : nb::cast<nb::sequence>(from["buffers"])) {
      step.places.push_back(read_place(place));
    }
    program->launches += program->kernels[step.kernel].launches.size();
  } else if (from.contains("copy")) {
    step.kind = cuda::Step::kCopy;
    for (const nb::handle place : nb::cast<nb::sequence>(from["copy"])) {
      step.places.push_back(read_place(place));
    }
    step.bytes = nb::cast<size_t>(from["bytes"]);
    ++program->launches;
  } else if (from.contains("fill")) {
    step.kind = cuda::Step::kFill;
    step.places.push_back(read_place(from["fill"]));
    step.bytes = nb::cast<size_t>(from["bytes"]);
    const auto element = nb::cast<std::string>(from["element"]);
    step.element_bytes = static_cast<unsigned>(element.size() / 2);
    for (unsigned i = 0; i < step.element_bytes; ++i) {
      step.element |= static_cast<unsigned>(std::stoul(element.substr(2 * i, 2), nullptr, 16))
                      << (8 * i);
    }
    ++program->launches;
  } else if (from.contains("if")) {
    step.kind = cuda::Step::kIf;
    step.places.push_back(read_place(from["if"]));
    step.bytes = 1;
    step.bodies = {steps("then"), steps("else")};
    program->decides = true;
  } else if (from.contains("switch")) {
    step.kind = cuda::Step::kSwitch;
    step.places.push_back(read_place(from["switch"]));
    step.bytes = nb::cast<size_t>(from["bytes"]);
    for (const nb::handle body : nb::cast<nb::sequence>(from["cases"])) {
      step.bodies.push_back(read_steps(body, kernels, program));
    }
    step.bodies.push_back(steps("default"));
    program->decides = true;
  } else if (from.contains("while")) {
    step.kind = cuda::Step::kWhile;
    step.places.push_back(read_place(from["while"]));
    step.bytes = 1;
    step.bodies = {steps("condition"), steps("body")};
    program->decides = true;
  } else if (from.contains("call")) {
    step.kind = cuda::Step::kCall;
    step.kernel = nb::cast<size_t>(from["call"]);
    for (const char* key : {"inputs", "outputs"}) {
      step.inputs = step.places.size();
      for (const nb::handle each : nb::cast<nb::sequence>(from[key])) {
        const auto pair = nb::cast<nb::sequence>(each);
        step.places.push_back(read_place(pair[0]));
        step.sizes.push_back(nb::cast<size_t>(pair[1]));
      }
    }
    program->calls_host = true;
  } else if (from.contains("collective")) {
    read_collective(from, &step, program);
  } else {
    throw nb::value_error("a launch plan has an unknown step");
  }
  return step;
}

std::vector<cuda::Step> read_steps(nb::handle from, nb::dict kernels, cuda::Program* program) {
  std::vector<cuda::Step> steps;
  for (const nb::handle step : nb::cast<nb::sequence>(from)) {
    steps.push_back(read_step(nb::cast<nb::dict>(step), kernels, program));
  }
  return steps;
}

// What runs on this architecture as it is; else the PTX, which the driver compiles.
cuda::Handle load_module(nb::bytes cubin, nb::bytes ptx, const std::string& symbol) {
  const cuda::Driver& driver = cuda::driver();
  cuda::Handle module = nullptr;
  const cuda::Result code = unlocked([&] {
    const cuda::Result loaded = driver.module_load(&module, cubin.c_str());
    return loaded == cuda::kNoBinary ? driver.module_load(&module, ptx.c_str()) : loaded;
  });
  cuda::check(code, "cuModuleLoadData", [&] { return "for kernel " + symbol; });
  return module;
}

cuda::TensorMap read_tensor_map(nb::dict from) {
  cuda::TensorMap map;
  map.parameter = nb::cast<size_t>(from["parameter"]);
  map.offset = nb::cast<uint64_t>(from["offset"]);
  map.type = nb::cast<int>(from["type"]);
  const auto numbers = [&from](const char* key, auto* to) {
    for (const nb::handle number : nb::cast<nb::sequence>(from[key])) {
      to->push_back(nb::cast<unsigned long long>(number));
    }
  };
  numbers("sizes", &map.sizes);
  numbers("strides", &map.strides);
  numbers("box", &map.box);
  return map;
}

void load_kernel(nb::handle from, cuda::Program* program) {
  const auto row = nb::cast<nb::dict>(from);
  const auto symbol = nb::cast<std::string>(row["symbol"]);
  program->modules.push_back(
      load_module(nb::cast<nb::bytes>(row["cubin"]), nb::cast<nb::bytes>(row["ptx"]), symbol));
  cuda::Kernel kernel;
  for (const nb::handle each : nb::cast<nb::sequence>(row["launches"])) {
    const auto described = nb::cast<nb::dict>(each);
    cuda::Launch launch;
    launch.name = nb::cast<std::string>(described["name"]);
    read_three(described["grid"], launch.grid);
    read_three(described["block"], launch.block);
    const auto what = [&] { return "for kernel " + launch.name; };
    cuda::check(cuda::driver().module_function(&launch.function, program->modules.back(),
                                               launch.name.c_str()),
                "cuModuleGetFunction", what);
    if (described.contains("dynamic_shared_bytes")) {
      launch.shared_bytes = nb::cast<unsigned>(described["dynamic_shared_bytes"]);
      cuda::check(cuda::driver().function_set(launch.function, cuda::kDynamicShared,
                                              static_cast<int>(launch.shared_bytes)),
                  "cuFuncSetAttribute", what);
    }
    if (described.contains("tensor_maps")) {
      if (cuda::driver().tensor_map == nullptr) {
        throw cuda::Unavailable(
            "kernel " + launch.name +
            " needs an NVIDIA driver of CUDA 12.0 or newer; with LAMINA_CUDA_ARCH="
            "sm_90 there is code for older ones");
      }
      for (const nb::handle map : nb::cast<nb::sequence>(described["tensor_maps"])) {
        launch.maps.push_back(read_tensor_map(nb::cast<nb::dict>(map)));
      }
    }
    kernel.launches.push_back(std::move(launch));
  }
  program->kernels.push_back(std::move(kernel));
}

cuda::LibraryMatrix read_matrix(nb::dict from) {
  cuda::LibraryMatrix matrix;
  matrix.argument = nb::cast<size_t>(from["argument"]);
  matrix.bytes = nb::cast<size_t>(from["bytes"]);
  matrix.type = nb::cast<int>(from["type"]);
  matrix.rows = nb::cast<uint64_t>(from["rows"]);
  matrix.columns = nb::cast<uint64_t>(from["columns"]);
  matrix.leading = nb::cast<int64_t>(from["leading"]);
  matrix.stride = nb::cast<int64_t>(from["stride"]);
  matrix.transposed = nb::cast<int>(from["transposed"]) != 0;
  return matrix;
}

// Lets the library do the kernel added last where that is wanted, or faster; what was measured.
nb::object take_library(nb::dict row, const std::string& path, cuda::Program* program) {
  const auto choose = row.contains("choose") ? nb::cast<std::string>(row["choose"]) : "kernel";
  if (choose == "kernel") return nb::none();
  const auto from = nb::cast<nb::dict>(row["library"]);
  cuda::LibraryProduct product;
  product.a = read_matrix(from["a"]);
  product.b = read_matrix(from["b"]);
  product.d = read_matrix(from["d"]);
  product.batches = nb::cast<int>(from["batches"]);
  product.compute = nb::cast<int>(from["compute"]);
  product.scale = nb::cast<int>(from["scale"]);
  if (from.contains("bias")) product.bias = nb::cast<int>(from["bias"]);
  auto call = unlocked([&] { return cuda::LibraryCall::make(*program->device, path, product); });
  if (!call) return nb::none();
  cuda::Kernel& kernel = program->kernels.back();
  nb::object found = nb::none();
  if (choose == "measure") {
    cuda::Timings timings;
    const auto scratch = nb::cast<size_t>(row["scratch_bytes"]);
    try {
      timings = unlocked(
          [&] { return cuda::time_both(*program->device, kernel, *call, product, scratch); });
    } catch (const OutOfMemory&) {
      return nb::none();  // there is no room to find out
    }
    found = nb::make_tuple(timings.kernel, timings.library);
    if (timings.kernel <= timings.library) return found;
  }
  kernel.library = std::move(call);
  return found;
}

bool has_collectives(const std::vector<cuda::Step>& steps) {
  return std::any_of(steps.begin(), steps.end(), [](const cuda::Step& step) {
    return step.kind == cuda::Step::kCollective ||
           std::any_of(step.bodies.begin(), step.bodies.end(), has_collectives);
  });
}

nb::object device_program(int number, std::string name, nb::sequence kernels, nb::sequence steps,
                          nb::bytes constants, size_t arena_bytes, uint64_t scratch,
                          bool synchronous, bool graphs, std::string library, cuda::Clique* clique,
                          int position) {
  return translated([&] {
    auto program = std::make_unique<cuda::Program>();
    program->generation = cuda::driver_generation();
    program->device = unlocked([number] { return &Device::get(number); });
    const cuda::InContext current = program->device->enter();
    program->name = name;
    program->arena_bytes = arena_bytes;
    program->scratch = scratch;
    program->synchronous = synchronous;
    program->use_graphs = graphs;
    program->clique = clique;
    program->position = position;
    nb::dict numbers, timings;
    bool calls_library = false;
    for (const nb::handle each : kernels) {
      const auto row = nb::cast<nb::dict>(each);
      numbers[row["symbol"]] = program->kernels.size();
      load_kernel(row, program.get());
      nb::object timed = take_library(row, library, program.get());
      if (!timed.is_none()) timings[row["symbol"]] = timed;
      calls_library = calls_library || program->kernels.back().library != nullptr;
    }
    if (calls_library) {
      constexpr size_t kAligned = 256;
      program->workspace = (arena_bytes + kAligned - 1) / kAligned * kAligned;
      program->arena_bytes = program->workspace + cuda::LibraryCall::kWorkspaceBytes;
    }
    if (constants.size() > 0) {
      program->constants =
          unlocked([&] { return program->device->upload(constants.c_str(), constants.size()); });
    }
    program->steps = read_steps(steps, numbers, program.get());
    for (const cuda::Step& step : program->steps) {
      for (const auto& body : step.bodies) {
        program->meets_in_bodies = program->meets_in_bodies || has_collectives(body);
      }
    }
    PyObject* capsule = PyCapsule_New(program.get(), kDeviceProgram, [](PyObject* unused) {
      delete static_cast<cuda::Program*>(PyCapsule_GetPointer(unused, kDeviceProgram));
    });
    raise_if(capsule == nullptr);
    program.release();
    return nb::object(nb::make_tuple(nb::steal(capsule), timings));
  });
}

}  // namespace

void define_cuda(nb::module_& m) {
  m.def(
      "open_cuda_driver", [] { translated([] { unlocked(Device::check_driver); }); },
      "Opens NVIDIA's driver. RuntimeError says what is missing where programs can't use it.");
  m.def(
      "cuda_stream",
      [](int number) {
        return on_device(number, [](Device& device) { return as_number(device.stream().handle); });
      },
      nb::arg("number"), "The stream that this thread's programs run on, on a GPU.");
  m.def(
      "cuda_enter_stream",
      [](int number, uintptr_t handle) {
        on_device(number, [handle](Device& device) { device.enter_stream(as_handle(handle)); });
      },
      nb::arg("number"), nb::arg("handle"), "Lets this thread's programs run on another stream.");
  m.def(
      "cuda_leave_stream",
      [](int number) { on_device(number, [](Device& device) { device.leave_stream(); }); },
      nb::arg("number"), "Undoes the last cuda_enter_stream of this thread.");
  m.def(
      "cuda_set_stream",
      [](int number, uintptr_t handle) {
        on_device(number, [handle](Device& device) { device.set_stream(as_handle(handle)); });
      },
      nb::arg("number"), nb::arg("handle"),
      "The stream of threads that have entered none; 0 for the runtime's own.");
  m.def(
      "cuda_order_consumer",
      [](nb::handle array, uintptr_t stream) {
        cuda::Memory& memory = memory_on_device(array);
        const auto held = Ref<Buffer>::share(as_array(array)->buffer);
        raise_if(!check_not_failed(held.get()));
        translated(
            [&] { unlocked([&] { memory.device->order_consumer(memory, as_handle(stream)); }); });
      },
      nb::arg("array"), nb::arg("stream"),
      "Lets what is issued on a stream from now on see the content of an array on a GPU.");
  m.def("cuda_shut_down", Device::shut_down, nb::call_guard<WithoutGil>(),
        "Waits for all GPUs and uses none from then on.");
  m.def("replace_cuda_driver", replace_driver, nb::arg("functions").none(),
        "Takes {symbol: address} for NVIDIA's driver; None for the machine's own. For tests.");
  m.def(
      "device_program", device_program, nb::arg("device"), nb::arg("name"), nb::arg("kernels"),
      nb::arg("steps"), nb::arg("constants"), nb::arg("arena_bytes"), nb::arg("scratch"),
      nb::arg("synchronous"), nb::arg("graphs"), nb::arg("library"), nb::arg("clique").none(),
      nb::arg("position"),
      "Loads a program on a GPU, for an Executable to take over; and what was measured of kernels "
      "and a library in their places.");
  nb::class_<cuda::Clique>(m, "Clique", "The GPUs of a mesh, and NCCL's communicators of them.")
      .def_prop_ro("version", &cuda::Clique::version, "NCCL's, 23203 for 2.32.3.");
  m.def(
      "clique",
      [](std::string path, int size, std::vector<int> here, std::vector<int> numbers,
         nb::bytes id) {
        const std::string bytes(id.c_str(), id.size());
        return translated([&] {
          return unlocked([&] { return &cuda::Clique::of(path, size, here, numbers, bytes); });
        });
      },
      nb::arg("path"), nb::arg("size"), nb::arg("here"), nb::arg("numbers"), nb::arg("id"),
      nb::rv_policy::reference,
      "The GPUs of a mesh of so many, of which those at positions `here` are this process's, with "
      "these "
      "numbers. `id` is nccl_unique_id() of the process of the first, empty where there is one "
      "process.");
  m.def(
      "nccl_unique_id",
      [](std::string path) {
        const std::string id =
            translated([&] { return unlocked([&] { return cuda::Clique::unique_id(path); }); });
        return nb::bytes(id.data(), id.size());
      },
      nb::arg("path"), "What all processes of a new clique are told.");
  m.def("cuda_generation", cuda::driver_generation, "Counts the replacements of the driver.");
  m.def("cublaslt_version", cuda::library_version, nb::arg("path"), nb::call_guard<WithoutGil>(),
        "The version of cuBLASLt in a file, 0 where it can't be used.");
  m.def(
      "to_device",
      [](nb::handle object, int number) {
        ArrayObject* array = as_live_array(object);
        Ref<Buffer> buffer = to_device(array->buffer, number);
        raise_if(!buffer);
        PyObject* made = make_array(std::move(buffer), array->dtype, array->dims, array->ndim,
                                    array->weak_type, array->shape);
        raise_if(made == nullptr);
        return nb::steal(made);
      },
      nb::arg("array"), nb::arg("number"), "The array in the memory of a GPU.");
  m.def(
      "to_host",
      [](nb::handle object) {
        ArrayObject* array = as_live_array(object);
        Ref<Buffer> buffer = on_host(array->buffer);
        raise_if(!buffer);
        PyObject* made = make_array(std::move(buffer), array->dtype, array->dims, array->ndim,
                                    array->weak_type, array->shape);
        raise_if(made == nullptr);
        return nb::steal(made);
      },
      nb::arg("array"), "The array in the memory of the host.");
  m.def(
      "move_to_device",
      [](nb::handle object, int number) { raise_if(!move_to_device(as_array(object), number)); },
      nb::arg("array"), nb::arg("number"), "Lets this array be in the memory of a GPU.");
  m.def(
      "copy_on_device",
      [](nb::handle object) {
        PyObject* made = copy_on_device(as_live_array(object));
        raise_if(made == nullptr);
        return nb::steal(made);
      },
      nb::arg("array"), "A copy of an array on a GPU, there too.");
  m.def(
      "begin_host_copy",
      [](nb::handle object) { raise_if(!begin_host_copy(as_live_array(object)->buffer)); },
      nb::arg("array"), "Begins the copy to the host that numpy_view waits for.");
}

}  // namespace lamina
