// compile.cpp -- programs from the framework to the compiler, which is Python in this process.
#include <cstring>
#include <string_view>

#include "core/executable.h"
#include "pjrt/buffers.h"
#include "pjrt/executables.h"
#include "pjrt/functions.h"
#include "pjrt/proto.h"
#include "pjrt/status.h"

namespace lamina::pjrt {
namespace {

struct CodeName {
  std::string_view name;
  ErrorCode code;
};
constexpr CodeName kCodes[] = {
    {"INVALID_ARGUMENT", ErrorCode::kInvalidArgument},
    {"UNIMPLEMENTED", ErrorCode::kUnimplemented},
    {"RESOURCE_EXHAUSTED", ErrorCode::kResourceExhausted},
    {"FAILED_PRECONDITION", ErrorCode::kFailedPrecondition},
    {"NOT_FOUND", ErrorCode::kNotFound},
};

std::string text_of(PyObject* object) {
  const Owned text(object == nullptr ? nullptr : PyObject_Str(object));
  const char* const content = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  if (content == nullptr) PyErr_Clear();
  return content == nullptr ? "" : content;
}

// Throws the Python exception that is set: its attribute `code` names the kind.
[[noreturn]] void throw_python_error() {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  const Owned held_type(type), held_value(value), held_traceback(traceback);
  ErrorCode code = ErrorCode::kInternal;
  const Owned named(PyObject_GetAttrString(value, "code"));
  if (!named) PyErr_Clear();
  const std::string name = named ? text_of(named.get()) : "";
  for (const CodeName& known : kCodes) {
    if (known.name == name) code = known.code;
  }
  std::string message = text_of(value);
  if (name.empty()) {
    message = std::string(reinterpret_cast<PyTypeObject*>(type)->tp_name) + ": " + message;
  }
  refuse(code, std::move(message));
}

PyObject* checked(PyObject* object) {
  if (object == nullptr) throw_python_error();
  return object;
}

Owned attribute(PyObject* object, const char* name) {
  return Owned(checked(PyObject_GetAttrString(object, name)));
}

Owned called(PyObject* object, const char* method) {
  return Owned(checked(PyObject_CallMethod(object, method, nullptr)));
}

int64_t integer(PyObject* object) {
  const int64_t value = PyLong_AsLongLong(object);
  if (value == -1 && PyErr_Occurred()) throw_python_error();
  return value;
}

std::string bytes(PyObject* object) {
  char* data;
  Py_ssize_t size;
  if (PyBytes_AsStringAndSize(object, &data, &size) != 0) throw_python_error();
  return {data, static_cast<size_t>(size)};
}

// The items of any sequence.
std::vector<Owned> items(PyObject* object) {
  const Owned list(checked(PySequence_List(object)));
  std::vector<Owned> result;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.get()); ++i) {
    result.push_back(Owned::share(PyList_GET_ITEM(list.get(), i)));
  }
  return result;
}

std::vector<int64_t> integers(PyObject* object) {
  std::vector<int64_t> values;
  for (const Owned& value : items(object)) values.push_back(integer(value.get()));
  return values;
}

// What an argument or a result says of itself.
int memory_kind_of(PyObject* value) {
  const std::string name = text_of(attribute(value, "memory_kind").get());
  for (int kind = 0; kind < kMemoryKindCount; ++kind) {
    if (name == kMemoryKinds[kind]) return kind;
  }
  refuse(ErrorCode::kInvalidArgument, "there is no memory of kind " + name);
}

bool flag(PyObject* value, const char* name) {
  return PyObject_IsTrue(attribute(value, name).get()) == 1;
}

int64_t entry(PyObject* dict, const char* key) {
  const Owned value(PyMapping_GetItemString(dict, key));
  if (!value) {
    PyErr_Clear();
    return 0;
  }
  return integer(value.get());
}

void read_costs(Compiled* compiled) {
  const Owned costs = called(compiled->object, "cost");
  const Owned pairs(checked(PyMapping_Items(costs.get())));
  std::vector<double> values;
  for (const Owned& pair : items(pairs.get())) {
    compiled->cost_names.push_back(text_of(PyTuple_GetItem(pair.get(), 0)));
    values.push_back(PyFloat_AsDouble(PyTuple_GetItem(pair.get(), 1)));
    if (PyErr_Occurred()) throw_python_error();
  }
  for (size_t i = 0; i < values.size(); ++i) {
    NamedValue value{};
    value.struct_size = sizeof value;
    give(compiled->cost_names[i], &value.name, &value.name_size);
    value.type = NamedValue::kFloat;
    value.float_value = static_cast<float>(values[i]);
    value.value_size = 1;
    compiled->costs.push_back(value);
  }
}

void fill_kinds(const std::vector<int>& kinds, std::vector<const char*>* names,
                std::vector<size_t>* sizes) {
  for (const int kind : kinds) {
    names->push_back(kMemoryKinds[kind]);
    sizes->push_back(std::strlen(kMemoryKinds[kind]));
  }
}

void fill_texts(const std::vector<std::string>& texts, Texts* forms) {
  for (const std::string& text : texts) {
    forms->data.push_back(text.data());
    forms->sizes.push_back(text.size());
  }
}

// Takes over the CompiledProgram. With the GIL.
std::shared_ptr<const Compiled> read(PyObject* object, std::string options) {
  auto compiled = std::make_shared<Compiled>();
  compiled->object = object;
  compiled->compile_options = std::move(options);
  compiled->program = program_of(attribute(object, "executable").get());
  if (compiled->program == nullptr) throw_python_error();
  compiled->name = text_of(attribute(object, "name").get());
  compiled->fingerprint = bytes(attribute(object, "fingerprint").get());
  compiled->replicas = static_cast<int>(integer(attribute(object, "num_replicas").get()));
  compiled->partitions = static_cast<int>(integer(attribute(object, "num_partitions").get()));
  for (const Owned& replica : items(attribute(object, "device_ids").get())) {
    for (const Owned& id : items(replica.get())) {
      compiled->device_ids.push_back(static_cast<int>(integer(id.get())));
    }
  }
  for (const Owned& input : items(attribute(object, "inputs").get())) {
    compiled->input_dims.push_back(integers(attribute(input.get(), "shape").get()));
    compiled->input_orders.push_back(integers(attribute(input.get(), "layout").get()));
    compiled->input_memories.push_back(memory_kind_of(input.get()));
    compiled->donated.push_back(flag(input.get(), "donated"));
    compiled->input_shardings.push_back(bytes(attribute(input.get(), "sharding").get()));
  }
  for (const Owned& output : items(attribute(object, "outputs").get())) {
    compiled->output_dims.push_back(integers(attribute(output.get(), "shape").get()));
    compiled->output_orders.push_back(integers(attribute(output.get(), "layout").get()));
    compiled->output_memories.push_back(memory_kind_of(output.get()));
    compiled->is_token.push_back(flag(output.get(), "is_token"));
    compiled->output_shardings.push_back(bytes(attribute(output.get(), "sharding").get()));
  }
  const lamina::Program& program = *compiled->program;
  if (compiled->donated.size() != program.inputs.size() ||
      compiled->is_token.size() != program.outputs.size()) {
    refuse(ErrorCode::kInternal, "the compiler gave a program with other arguments or results");
  }
  fill_texts(compiled->input_shardings, &compiled->input_sharding_texts);
  fill_texts(compiled->output_shardings, &compiled->output_sharding_texts);
  fill_kinds(compiled->input_memories, &compiled->input_kind_names, &compiled->input_kind_sizes);
  fill_kinds(compiled->output_memories, &compiled->output_kind_names, &compiled->output_kind_sizes);
  for (const ArraySpec& spec : program.outputs) {
    compiled->output_dtypes.push_back(spec.dtype);
    const bool is_token = compiled->is_token[compiled->output_types.size()];
    compiled->output_types.push_back(is_token ? BufferType::kToken : type_of(spec.dtype));
  }
  for (const std::vector<int64_t>& dims : compiled->output_dims) {
    compiled->output_ranks.push_back(dims.size());
    compiled->flat_output_dims.insert(compiled->flat_output_dims.end(), dims.begin(), dims.end());
  }
  read_costs(compiled.get());
  const Owned memory = called(object, "memory");
  compiled->argument_bytes = entry(memory.get(), "argument");
  compiled->output_bytes = entry(memory.get(), "output");
  compiled->alias_bytes = entry(memory.get(), "alias");
  compiled->temp_bytes = entry(memory.get(), "temp");
  compiled->code_bytes = entry(memory.get(), "generated_code");
  return compiled;
}

// The exception of the framework, which may be raising one.
class SetAside {
 public:
  SetAside() { PyErr_Fetch(&type_, &value_, &traceback_); }
  ~SetAside() { PyErr_Restore(type_, value_, traceback_); }
  SetAside(const SetAside&) = delete;

 private:
  PyObject *type_, *value_, *traceback_;
};

// lamina.jax_plugin.compiler's function of this name, called.
template <typename... Arguments>
std::shared_ptr<const Compiled> ask_compiler(const char* function, std::string options,
                                             const char* format, Arguments... arguments) {
  const Gil gil;
  const SetAside exception;
  const Owned compiler(checked(PyImport_ImportModule("lamina.jax_plugin.compiler")));
  Owned made(checked(PyObject_CallMethod(compiler.get(), function, format, arguments...)));
  return read(made.detach(), std::move(options));
}

std::string as_proto(const Compiled& compiled, const std::vector<Device*>& devices) {
  // message DeviceAssignmentProto { int32 replica_count = 1; int32 computation_count = 2;
  //   message ComputationDevice { repeated int64 replica_device_ids = 1; }
  //   repeated ComputationDevice computation_devices = 3; }
  Proto proto;
  proto.number(1, compiled.replicas);
  proto.number(2, compiled.partitions);
  for (int p = 0; p < compiled.partitions; ++p) {
    Proto ids, of_partition;
    for (int r = 0; r < compiled.replicas; ++r) {
      const Device* device = devices[static_cast<size_t>(r * compiled.partitions + p)];
      ids.varint(static_cast<uint64_t>(device->description.id));
    }
    of_partition.message(1, ids);
    proto.message(3, of_partition);
  }
  return proto.bytes();
}

LoadedExecutable* load(Client* client, std::shared_ptr<const Compiled> compiled) {
  auto loaded = std::make_unique<LoadedExecutable>();
  loaded->client = client;
  const int count = compiled->replicas * compiled->partitions;
  for (int i = 0; i < count; ++i) {
    const bool is_given = static_cast<size_t>(i) < compiled->device_ids.size();
    loaded->devices.push_back(client->device(is_given ? compiled->device_ids[i] : i));
    loaded->logical_ids.push_back({i / compiled->partitions, i % compiled->partitions});
  }
  loaded->device_assignment = as_proto(*compiled, loaded->devices);
  loaded->compiled = std::move(compiled);
  return loaded.release();
}

std::shared_ptr<const Compiled> compile(const Program& program, const char* options,
                                        size_t options_size) {
  return ask_compiler("compile_program", std::string(options, options_size), "y#s#y#", program.code,
                      static_cast<Py_ssize_t>(program.code_size), program.format,
                      static_cast<Py_ssize_t>(program.format_size), options,
                      static_cast<Py_ssize_t>(options_size));
}

// Bytes that the framework reads until it calls the deleter.
void give_bytes(std::string content, const char** data, size_t* size, void** owner,
                void (**deleter)(void*)) {
  auto* const held = new std::string(std::move(content));
  give(*held, data, size);
  *owner = held;
  *deleter = [](void* owned) { delete static_cast<std::string*>(owned); };
}

}  // namespace

Compiled::~Compiled() {
  if (object != nullptr) drop_reference(object);
}

void time_kernels(const Compiled& compiled) {
  if (compiled.has_timed_kernels.exchange(true)) return;
  const Gil gil;
  const SetAside exception;
  called(compiled.object, "time_kernels");
}

void client_compile(Client_CompileArgs& args) {
  args.executable =
      load(args.client, compile(*args.program, args.compile_options, args.compile_options_size));
}

void compile_for_topology(CompileArgs& args) {
  args.executable =
      new Executable{compile(*args.program, args.compile_options, args.compile_options_size)};
}

void client_load(Client_LoadArgs& args) {
  args.loaded_executable = load(args.client, args.executable->compiled);
}

void executable_deserialize_and_load(Executable_DeserializeAndLoadArgs& args) {
  const bool has_options = args.overridden_serialized_compile_options != nullptr;
  const char* const options = has_options ? args.overridden_serialized_compile_options : "";
  const size_t options_size =
      has_options ? args.overridden_serialized_compile_options_size : size_t{0};
  args.loaded_executable =
      load(args.client, ask_compiler("deserialize_program", std::string(options, options_size),
                                     "y#y#", args.serialized_executable,
                                     static_cast<Py_ssize_t>(args.serialized_executable_size),
                                     options, static_cast<Py_ssize_t>(options_size)));
}

// --- Properties ----------------------------------------------------------------------------------

void executable_destroy(Executable_DestroyArgs& args) { delete args.executable; }

void executable_name(Executable_NameArgs& args) {
  give(args.executable->compiled->name, &args.executable_name, &args.executable_name_size);
}

void executable_num_replicas(Executable_NumReplicasArgs& args) {
  args.num_replicas = static_cast<size_t>(args.executable->compiled->replicas);
}

void executable_num_partitions(Executable_NumPartitionsArgs& args) {
  args.num_partitions = static_cast<size_t>(args.executable->compiled->partitions);
}

void executable_num_outputs(Executable_NumOutputsArgs& args) {
  args.num_outputs = args.executable->compiled->output_types.size();
}

void executable_size_of_generated_code(Executable_SizeOfGeneratedCodeInBytesArgs& args) {
  args.size_in_bytes = args.executable->compiled->code_bytes;
}

void executable_get_cost_analysis(Executable_GetCostAnalysisArgs& args) {
  args.properties = args.executable->compiled->costs.data();
  args.num_properties = args.executable->compiled->costs.size();
}

void executable_get_compiled_memory_stats(Executable_GetCompiledMemoryStatsArgs& args) {
  const Compiled& compiled = *args.executable->compiled;
  args.host_generated_code_size_in_bytes = args.host_argument_size_in_bytes = 0;
  args.host_output_size_in_bytes = args.host_alias_size_in_bytes = args.host_temp_size_in_bytes = 0;
  args.total_size_in_bytes = args.total_allocation_bytes = args.indefinite_allocations = 0;
  args.peak_unpadded_heap_bytes = 0;
  args.generated_code_size_in_bytes = compiled.code_bytes;
  args.argument_size_in_bytes = compiled.argument_bytes;
  args.output_size_in_bytes = compiled.output_bytes;
  args.alias_size_in_bytes = compiled.alias_bytes;
  args.temp_size_in_bytes = compiled.temp_bytes;
  args.peak_memory_in_bytes =
      compiled.argument_bytes + compiled.output_bytes + compiled.temp_bytes - compiled.alias_bytes;
}

void executable_output_memory_kinds(Executable_OutputMemoryKindsArgs& args) {
  const Compiled& compiled = *args.executable->compiled;
  args.num_outputs = compiled.output_kind_names.size();
  args.memory_kinds = compiled.output_kind_names.data();
  args.memory_kind_sizes = compiled.output_kind_sizes.data();
}

void executable_parameter_memory_kinds(Executable_ParameterMemoryKindsArgs& args) {
  const Compiled& compiled = *args.executable->compiled;
  args.num_parameters = compiled.input_kind_names.size();
  args.memory_kinds = compiled.input_kind_names.data();
  args.memory_kind_sizes = compiled.input_kind_sizes.data();
}

void executable_output_element_types(Executable_OutputElementTypesArgs& args) {
  args.output_types = args.executable->compiled->output_types.data();
  args.num_output_types = args.executable->compiled->output_types.size();
}

void executable_output_dimensions(Executable_OutputDimensionsArgs& args) {
  const Compiled& compiled = *args.executable->compiled;
  args.num_outputs = compiled.output_ranks.size();
  args.dims = compiled.flat_output_dims.data();
  args.dim_sizes = compiled.output_ranks.data();
}

// What each device runs, as StableHLO: the kernels that it became have text of their own
// (LAMINA_DUMP).
void executable_optimized_program(Executable_OptimizedProgramArgs& args) {
  static constexpr std::string_view kFormat = "mlir";
  const Compiled& compiled = *args.executable->compiled;
  std::string code;
  {
    const Gil gil;
    code = bytes(called(compiled.object, "optimized_code").get());
  }
  args.program->format = kFormat.data();
  args.program->format_size = kFormat.size();
  if (args.program->code != nullptr) {
    std::memcpy(args.program->code, code.data(), std::min(args.program->code_size, code.size()));
  }
  args.program->code_size = code.size();
}

void executable_fingerprint(Executable_FingerprintArgs& args) {
  give(args.executable->compiled->fingerprint, &args.executable_fingerprint,
       &args.executable_fingerprint_size);
}

void executable_serialize(Executable_SerializeArgs& args) {
  const Gil gil;
  give_bytes(bytes(called(args.executable->compiled->object, "serialize").get()),
             &args.serialized_bytes, &args.serialized_bytes_size, &args.serialized_executable,
             &args.serialized_executable_deleter);
}

void executable_get_compile_options(Executable_GetCompileOptionsArgs& args) {
  give_bytes(args.executable->compiled->compile_options, &args.serialized_bytes,
             &args.serialized_bytes_size, &args.serialized_compile_options,
             &args.serialized_compile_options_deleter);
}

// --- Loaded --------------------------------------------------------------------------------------

void loaded_executable_destroy(LoadedExecutable_DestroyArgs& args) { delete args.executable; }

void loaded_executable_get_executable(LoadedExecutable_GetExecutableArgs& args) {
  args.executable = new Executable{args.loaded_executable->compiled};
}

void loaded_executable_addressable_devices(LoadedExecutable_AddressableDevicesArgs& args) {
  args.addressable_devices = args.executable->devices.data();
  args.num_addressable_devices = args.executable->devices.size();
}

void loaded_executable_logical_ids(LoadedExecutable_AddressableDeviceLogicalIdsArgs& args) {
  args.addressable_device_logical_ids = args.executable->logical_ids.data();
  args.num_addressable_device_logical_ids = args.executable->logical_ids.size();
}

void loaded_executable_get_device_assignment(LoadedExecutable_GetDeviceAssignmentArgs& args) {
  give_bytes(args.executable->device_assignment, &args.serialized_bytes,
             &args.serialized_bytes_size, &args.serialized_device_assignment,
             &args.serialized_device_assignment_deleter);
}

void loaded_executable_fingerprint(LoadedExecutable_FingerprintArgs& args) {
  give(args.executable->compiled->fingerprint, &args.executable_fingerprint,
       &args.executable_fingerprint_size);
}

void loaded_executable_delete(LoadedExecutable_DeleteArgs& args) {
  args.executable->is_deleted = true;
}

void loaded_executable_is_deleted(LoadedExecutable_IsDeletedArgs& args) {
  args.is_deleted = args.executable->is_deleted;
}

}  // namespace lamina::pjrt
