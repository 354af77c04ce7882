// module.cpp -- the Python module lamina.runtime._runtime.
#define LAMINA_IMPORTS_NUMPY
#include "core/numpy_api.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "core/array.h"
#include "core/callback.h"
#include "core/compiled_function.h"
#include "core/dispatch.h"
#include "core/dlpack.h"
#include "core/executable.h"
#include "core/fast_path.h"
#include "core/leaf.h"
#include "core/mapping.h"
#include "core/platform.h"
#include "core/processes.h"
#include "core/recording.h"
#include "core/signature.h"
#include "cpu/collective.h"
#include "cpu/conversions.h"
#include "cpu/gemm.h"
#include "cpu/lapack.h"
#include "cpu/sort.h"
#include "cpu/threads.h"
#include "cpu/top_k.h"
#include "cuda/module.h"

namespace nb = nanobind;

namespace lamina {
namespace {

void check(bool succeeded) {
  if (!succeeded) throw nb::python_error();
}

nb::object checked(PyObject* object) {
  check(object != nullptr);
  return nb::steal(object);
}

ArrayObject* as_array(nb::handle object) {
  if (!is_array(object.ptr())) {
    PyErr_Format(PyExc_TypeError, "expected an Array, got a %s", Py_TYPE(object.ptr())->tp_name);
    throw nb::python_error();
  }
  return reinterpret_cast<ArrayObject*>(object.ptr());
}

Leaf classified(nb::handle object) {
  Leaf leaf;
  const bool x64 = current_config().x64;
  if (classify(object.ptr(), x64, &leaf) || classify_subclass(object.ptr(), x64, &leaf))
    return leaf;
  if (PyLong_CheckExact(object.ptr())) {
    PyErr_Format(PyExc_OverflowError, "Python integer %R does not fit in %s", object.ptr(),
                 x64 ? "int64" : "int32");
  } else {
    PyErr_Format(PyExc_TypeError, "a %s cannot be made an array", Py_TYPE(object.ptr())->tp_name);
  }
  throw nb::python_error();
}

nb::object array_from_numpy(nb::handle array, bool weak_type) {
  if (!PyArray_Check(array.ptr()) && !PyArray_IsScalar(array.ptr(), Generic)) {
    PyErr_Format(PyExc_TypeError, "expected an ndarray, got a %s", Py_TYPE(array.ptr())->tp_name);
    throw nb::python_error();
  }
  return checked(array_from_ndarray(array.ptr(), kNoDtype, weak_type));
}

nb::object array_from_scalar(nb::handle value, nb::object dtype) {
  const Leaf leaf = classified(value);
  if (leaf.ndim != 0) throw nb::type_error("array_from_scalar takes a scalar");
  if (dtype.is_none()) return checked(leaf_array(leaf));
  const Dtype wanted = dtype_from_object(dtype.ptr());
  check(wanted != kNoDtype);
  return checked(array_from_ndarray(value.ptr(), wanted, false));
}

nb::object wrap_memory(nb::handle owner, uintptr_t pointer, nb::handle dtype, nb::handle shape) {
  const Dtype type = dtype_from_object(dtype.ptr());
  int64_t dims[kMaxRank];
  int ndim = 0;
  check(type != kNoDtype && read_dims(shape.ptr(), dims, &ndim));
  const int64_t bytes = checked_bytes(type, dims, ndim);
  if (bytes < 0) throw nb::value_error("the shape's bytes do not fit in 64 bits");
  auto buffer = Ref<Buffer>::steal(wrap_python_memory(reinterpret_cast<void*>(pointer),
                                                      static_cast<size_t>(bytes), owner.ptr()));
  return checked(make_array(std::move(buffer), type, dims, ndim, false));
}

nb::object array_with_type(nb::handle object, bool weak_type) {
  ArrayObject* array = as_array(object);
  check(check_alive(array));
  return checked(make_array(Ref<Buffer>::share(array->buffer), array->dtype, array->dims,
                            array->ndim, weak_type, array->shape));
}

nb::object array_view(nb::handle object, nb::handle shape) {
  ArrayObject* array = as_array(object);
  int64_t dims[kMaxRank];
  int ndim = 0;
  check(check_alive(array) && read_dims(shape.ptr(), dims, &ndim));
  if (checked_bytes(array->dtype, dims, ndim) !=
      checked_bytes(array->dtype, array->dims, array->ndim)) {
    throw nb::value_error("a view has as many elements as its array");
  }
  return checked(
      make_array(Ref<Buffer>::share(array->buffer), array->dtype, dims, ndim, array->weak_type));
}

nb::object sharded_array(nb::handle sharding, nb::list shards, nb::handle dtype, nb::handle shape,
                         bool weak_type) {
  const Dtype type = dtype_from_object(dtype.ptr());
  int64_t dims[kMaxRank];
  int ndim = 0;
  check(type != kNoDtype && read_dims(shape.ptr(), dims, &ndim));
  return checked(make_sharded_array(sharding.ptr(), shards.ptr(), type, dims, ndim, weak_type));
}

nb::dict stats() {
  const PoolStats pool = pool_stats();
  nb::dict result;
  result["live_bytes"] = pool.live_bytes;
  result["cached_bytes"] = pool.cached_bytes;
  result["limit_bytes"] = pool.limit_bytes;
  result["allocations"] = pool.allocations;
  result["reuses"] = pool.reuses;
  return result;
}

nb::dict symbols() {
  nb::dict result;
  result["lamina_parallel_for"] = reinterpret_cast<uintptr_t>(&lamina_parallel_for);
  result["lamina_sort"] = reinterpret_cast<uintptr_t>(&lamina_sort);
  result["lamina_top_k"] = reinterpret_cast<uintptr_t>(&lamina_top_k);
  result["lamina_collective"] = reinterpret_cast<uintptr_t>(&lamina_collective);
  result["lamina_collective_begin"] = reinterpret_cast<uintptr_t>(&lamina_collective_begin);
  result["lamina_collective_end"] = reinterpret_cast<uintptr_t>(&lamina_collective_end);
  result["lamina_fail"] = reinterpret_cast<uintptr_t>(&lamina_fail);
  result["lamina_failed"] = reinterpret_cast<uintptr_t>(&lamina_failed);
  result["lamina_interrupted"] = reinterpret_cast<uintptr_t>(&lamina_interrupted);
  result["lamina_python_callback"] = reinterpret_cast<uintptr_t>(&lamina_python_callback);
  result["lamina_record_begin"] = reinterpret_cast<uintptr_t>(&lamina_record_begin);
  result["lamina_record_end"] = reinterpret_cast<uintptr_t>(&lamina_record_end);
  for (const auto& [name, kernel] : lapack_symbols())
    result[name.c_str()] = reinterpret_cast<uintptr_t>(kernel);
  return result;
}

nb::dict conversions() {
  nb::dict result;
  for (const auto& [name, function] : conversion_symbols())
    result[name.c_str()] = reinterpret_cast<uintptr_t>(function);
  return result;
}

// numpy's import macro returns from the function it stands in.
void* import_numpy() {
  import_array();
  return &lamina_numpy_api;
}

void define_arrays(nb::module_& m) {
  m.def(
      "set_array_type", [](nb::handle type) { check(set_array_type(type.ptr())); },
      "C++ makes instances of this subclass of ArrayBase from now on.");
  m.def("array_from_numpy", array_from_numpy, nb::arg("array"), nb::arg("weak_type") = false,
        "A copy of an ndarray of any layout or a NumPy scalar, with its dtype.");
  m.def("array_from_scalar", array_from_scalar, nb::arg("value"), nb::arg("dtype") = nb::none(),
        "An array of shape (): weakly typed without a dtype.");
  m.def(
      "to_array", [](nb::handle leaf) { return checked(leaf_array(classified(leaf))); },
      "What jit makes of an argument: x64 rule, weak types for Python scalars.");
  m.def("wrap_memory", wrap_memory, nb::arg("owner"), nb::arg("pointer"), nb::arg("dtype"),
        nb::arg("shape"), "An array on dense row-major memory that `owner` keeps alive.");
  m.def("array_with_type", array_with_type, nb::arg("array"), nb::arg("weak_type"),
        "The same memory with another weak_type.");
  m.def("array_view", array_view, nb::arg("array"), nb::arg("shape"),
        "The same memory with another shape of equal size.");
  m.def(
      "place_array",
      [](nb::handle array, nb::handle sharding) {
        return checked(place_array(as_array(array), sharding.ptr()));
      },
      nb::arg("array"), nb::arg("sharding").none(), "The same content under a sharding, or None.");
  m.def("sharded_array", sharded_array, nb::arg("sharding"), nb::arg("shards"), nb::arg("dtype"),
        nb::arg("shape"), nb::arg("weak_type") = false,
        "An array whose content is a list of Arrays, one for each device.");
  m.def(
      "set_gather", [](nb::handle gather) { set_gather(gather.ptr()); },
      "gather(array) puts the shards of an array together; called when it is needed as one.");
  m.def(
      "set_single_device_type", [](nb::handle type) { set_single_device_type(type.ptr()); },
      nb::arg("type"), "The class of shardings that are one device, each device's one object.");
  m.def(
      "set_default_sharding",
      [](nb::handle sharding, bool of_thread) { set_default_sharding(sharding.ptr(), of_thread); },
      nb::arg("sharding").none(), nb::arg("of_thread"),
      "The sharding of new arrays that nobody placed.");
  m.def(
      "to_dlpack",
      [](nb::handle array, bool versioned) {
        return checked(to_dlpack(as_array(array), versioned));
      },
      nb::arg("array"), nb::arg("versioned") = false, "A DLPack capsule on the array's memory.");
  m.def(
      "from_dlpack", [](nb::handle capsule) { return checked(from_dlpack(capsule.ptr())); },
      "An array on the memory of a DLPack capsule.");
}

void define_state(nb::module_& m) {
  request_tile_registers();  // compiled code may have been made for them
  m.def("request_tile_registers", request_tile_registers,
        "Whether this process may use the processor's tile registers.");
  m.def("limit_vector_bits", limit_vector_bits, nb::arg("most"),
        "Makes the runtime's own loops use no wider vectors than these.");
  m.def("vector_bits", vector_bits, "How wide the vectors of the runtime's own loops are.");
  m.def("set_tracing", set_tracing, "Sends this thread's jit calls to miss; gives the old value.");
  m.def("is_tracing", tracing);
  m.def(
      "set_config", [](uint64_t epoch, bool x64) { set_config({epoch, x64}); }, nb::arg("epoch"),
      nb::arg("x64"), "Configuration of all threads, part of every signature.");
  m.def(
      "set_thread_config", [](uint64_t epoch, bool x64) { set_thread_config({epoch, x64}); },
      nb::arg("epoch"), nb::arg("x64"), "Configuration of this thread until cleared.");
  m.def("clear_thread_config", clear_thread_config);
  m.def("x64_enabled", [] { return current_config().x64; });
  m.def(
      "register_node",
      [](nb::handle type, nb::handle flatten) { check(register_node(type.ptr(), flatten.ptr())); },
      nb::arg("type"), nb::arg("flatten"), "flatten(node) -> (children, hashable aux).");
  m.def("set_num_threads", set_thread_count, nb::call_guard<WithoutGil>(),
        "Threads of parallel kernels, the caller's included; 0 for the default.");
  m.def("get_num_threads", thread_count);
  m.def(
      "recorded_name",
      [](std::string name, std::vector<std::pair<std::string, std::string>> details) {
        return recorded_name({std::move(name), std::move(details)});
      },
      nb::arg("name"), nb::arg("details"), "The number that stands for a name in recordings.");
  m.def(
      "machine_limits",
      [](const std::string& membership, const std::string& root) {
        const Cgroups cgroups{membership, root};
        return std::pair(default_thread_count(cgroups), memory_limit(cgroups));
      },
      nb::arg("membership") = Cgroups().membership, nb::arg("root") = Cgroups().root,
      "Threads and bytes that this process may use, by its affinity, the machine and its cgroups.");
  m.def("split_gemm", split_gemm, nb::arg("type"), nb::arg("cblas_gemm"),
        "Address of a function like this cblas_?gemm that divides the work among our threads.");
  m.def("worker_count", worker_count, nb::call_guard<WithoutGil>(),
        "Threads the pool has started so far.");
  m.def("set_async", set_async, "Whether calls may be queued; gives the old value.");
  m.def("wait_all", drain_queue, nb::call_guard<WithoutGil>(),
        "Returns when every call made before is done.");
  m.def(
      "set_run_error_type", [](nb::handle type) { set_run_error_type(type.ptr()); },
      "The class of errors of programs that fail while they run.");
  m.def(
      "running_function",
      [](size_t index) {
        const HostFunctions* functions = running_functions();
        if (functions == nullptr || index >= functions->count) {
          PyErr_Format(PyExc_RuntimeError, "the running call came with %zu functions, not with %zu",
                       functions == nullptr ? size_t{0} : functions->count, index + 1);
          throw nb::python_error();
        }
        return nb::borrow(static_cast<PyObject*>(functions->functions[index]));
      },
      nb::arg("index"),
      "Of the Python functions that came with the call that this thread runs, the one at an "
      "index.");
  m.def(
      "running_user_data",
      [](int64_t type) {
        const HostFunctions* given = running_functions();
        const bool is_there = given != nullptr && given->type == type;
        return reinterpret_cast<uintptr_t>(is_there ? given->data : nullptr);
      },
      nb::arg("type"),
      "Where the data of this type lie that came with the call that this thread runs, as XLA "
      "numbers "
      "types; 0: none came.");
  m.def(
      "enter_native_code", InNativeCode::enter,
      "From here to `leave_native_code` this thread is not unwound: where the interpreter ends it, "
      "it sleeps.");
  m.def("leave_native_code", InNativeCode::leave, "As often as the other was called.");
  m.def(
      "leave",
      [] {
        leave_python();
        const WithoutGil unlocked;
        stop_dispatcher();
      },
      "For the interpreter's exit: ends the dispatcher thread if its calls are over soon, and lets "
      "the process end under them if not.");
  nb::class_<Places>(m, "Places", "Where the devices are that run a program together.")
      .def(nb::init<std::vector<int>, int>(), nb::arg("process"), nb::arg("mine"),
           "process[d] is where device d is, and this process is `mine`.")
      .def_prop_ro("here", &Places::here, "The devices of this process.");
  m.def(
      "run_on_devices",
      [](nb::handle executable, nb::handle arguments, const Places* places) {
        if (Py_TYPE(executable.ptr()) != executable_type) throw nb::type_error("no Executable");
        return checked(execute_team(reinterpret_cast<ExecutableObject*>(executable.ptr()),
                                    arguments.ptr(), places));
      },
      nb::arg("executable"), nb::arg("arguments"), nb::arg("places").none() = nb::none(),
      "Runs an Executable once on each device; arguments[i] are the arrays of the i-th device that "
      "is here.");
  m.def(
      "run_on_gpus",
      [](nb::handle executables, nb::handle arguments, const Places* places) {
        return checked(execute_clique(executables.ptr(), arguments.ptr(), places));
      },
      nb::arg("executables"), nb::arg("arguments"), nb::arg("places").none() = nb::none(),
      "Runs the Executables of a clique's GPUs together; arguments[i] are the arrays of the i-th "
      "that "
      "is here.");
  m.def(
      "join_processes",
      [](int rank, int size, int64_t handle_size, uint64_t isend, uint64_t irecv, uint64_t test,
         uint64_t iprobe, uint64_t communicator, uint64_t byte, int64_t most_tags) {
        Processes::join(rank, size,
                        {handle_size, isend, irecv, test, iprobe, communicator, byte, most_tags});
      },
      nb::arg("rank"), nb::arg("size"), nb::kw_only(), nb::arg("handle_size"), nb::arg("isend"),
      nb::arg("irecv"), nb::arg("test"), nb::arg("iprobe"), nb::arg("communicator"),
      nb::arg("byte"), nb::arg("most_tags"),
      "From now on this is process `rank` of `size`, which send each other messages by MPI: "
      "addresses "
      "of its functions, and handles.");
  m.def(
      "exchange_with_processes",
      [](const std::string& what, const std::vector<nb::bytes>& given, double seconds) {
        Processes* const processes = Processes::joined();
        if (processes == nullptr) throw std::runtime_error(what + ": this process is alone");
        if (given.size() != static_cast<size_t>(processes->size())) {
          throw std::invalid_argument(what + ": something for each process");
        }
        std::vector<std::string> sent, received;
        for (const nb::bytes& each : given) sent.emplace_back(each.c_str(), each.size());
        const auto timeout_ns =
            seconds > 0 ? static_cast<int64_t>(seconds * 1e9) : collective_timeout_ns();
        Error error;
        {
          const WithoutGil unlocked;
          error = processes->exchange(what, sent, timeout_ns, &received);
        }
        if (!error.empty()) throw std::runtime_error(error.message);
        nb::list out;
        for (const std::string& each : received) out.append(nb::bytes(each.data(), each.size()));
        return out;
      },
      nb::arg("what"), nb::arg("given"), nb::arg("seconds"),
      "given[p] goes to process p; the bytes that each process has for this one, in their order. "
      "RuntimeError where one does not come within the seconds; 0: as long as collectives wait.");
  m.def(
      "set_spinning",
      [](double seconds) {
        if (Processes* processes = Processes::joined()) {
          processes->set_spinning(static_cast<int64_t>(seconds * 1e9));
        }
      },
      nb::arg("seconds"), "How long a thread that waits for messages keeps its CPU busy.");
  m.def(
      "trouble_of_processes",
      [] {
        return Processes::joined() == nullptr ? std::string() : Processes::joined()->trouble();
      },
      "Why the processes no longer work together; empty where they do.");
  m.def("leave_processes", Processes::leave, "This process is alone again.");
  m.def(
      "tell_processes",
      [](const std::string& reason) {
        if (Processes* processes = Processes::joined()) processes->tell_others(reason);
      },
      nb::arg("reason"),
      "Says to all others that this process can't go on, or (empty) has come to its end.");
  m.def("set_collective_timeout", set_collective_timeout, nb::arg("seconds"),
        "How long a device waits in a collective for others that compute; 0 for the default.");
  m.def("pool_stats", stats);
  m.def("set_pool_limit", set_pool_limit, "The most bytes kept for reuse.");
  m.def(
      "huge_pages_come_soon",
      [](size_t bytes, const std::function<int64_t(size_t)>& touch) {
        size_t tried = 0;
        const bool soon = huge_pages_come_soon(bytes, touch, tried);
        return std::pair(soon, tried);
      },
      nb::arg("bytes"), nb::arg("touch"),
      "Whether a block is to be of huge pages, if touching one takes what `touch` says, and how "
      "many "
      "bytes were touched to see it.");
  m.def("trim_pool", trim_pool, "Gives the kept bytes back to the system.");
  m.def("symbols", symbols, "Addresses of what compiled code may call.");
  m.def("conversions", conversions,
        "Addresses of what compiled code may call without saying so, where a processor lacks it.");
}

}  // namespace
}  // namespace lamina

NB_MODULE(_runtime, m) {
  using namespace lamina;
  m.doc() = "Native runtime of lamina: arrays, executables, the jit call, threads.";
  check(import_numpy() != nullptr && init_dtypes() && init_array(m.ptr()) &&
        init_executable(m.ptr()) && init_fast_path(m.ptr()) && init_compiled_function(m.ptr()));
  define_arrays(m);
  define_state(m);
  define_cuda(m);
}
