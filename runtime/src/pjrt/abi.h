// abi.h -- PJRT's C interface as of version 0.114: what a plugin and a framework hand each other.
//
// An ABI is a fact; its names are those of XLA's pjrt_c_api.h, without the prefix PJRT_.
// test/runtime/test_pjrt_abi.py compares every offset with those that the package pypjrt states.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lamina::pjrt {

inline constexpr int kMajorVersion = 0, kMinorVersion = 114;

// What only the plugin knows the inside of.
struct Buffer;
struct Client;
struct Device;
struct DeviceDescription;
struct Event;
struct ExecuteContext;
struct Executable;
struct LoadedExecutable;
struct Topology;

// The framework looks for a table of functions of its own objects in the first word of these two:
// null says that they are a plugin's.
struct Error;
struct Memory;

enum class ErrorCode : uint32_t {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

enum class BufferType : uint32_t {
  kInvalid = 0,
  kPred = 1,
  kS8 = 2,
  kS16 = 3,
  kS32 = 4,
  kS64 = 5,
  kU8 = 6,
  kU16 = 7,
  kU32 = 8,
  kU64 = 9,
  kF16 = 10,
  kF32 = 11,
  kF64 = 12,
  kBF16 = 13,
  kC64 = 14,
  kC128 = 15,
  kF8E5M2 = 16,
  kF8E4M3FN = 17,
  kF8E4M3B11FNUZ = 18,
  kF8E5M2FNUZ = 19,
  kF8E4M3FNUZ = 20,
  kS4 = 21,
  kU4 = 22,
  kToken = 23,
  kS2 = 24,
  kU2 = 25,
  kF8E4M3 = 26,
  kF8E3M4 = 27,
  kF8E8M0FNU = 28,
  kF4E2M1FN = 29,
  kS1 = 30,
  kU1 = 31,
  kF6E2M3FN = 32,
  kF6E3M2FN = 33,
};

// Until when the framework leaves memory alone that a buffer is made from.
enum class HostBufferSemantics : uint32_t {
  kImmutableOnlyDuringCall = 0,
  kImmutableUntilTransferCompletes = 1,
  kImmutableZeroCopy = 2,
  kMutableZeroCopy = 3,
};

// What all arguments begin with.
struct Args {
  size_t struct_size;
  void* extension_start;
};

struct NamedValue : Args {
  enum Type : uint32_t { kString = 0, kInt64 = 1, kInt64List = 2, kFloat = 3, kBool = 4 };
  const char* name;
  size_t name_size;
  Type type;
  union {
    const char* string_value;
    int64_t int64_value;
    const int64_t* int64_array_value;
    float float_value;
    bool bool_value;
  };
  size_t value_size;
};

struct MemoryLayout : Args {
  enum Type : uint32_t { kTiled = 0, kStrides = 1 };
  struct Tiled : Args {
    const int64_t* minor_to_major;
    size_t minor_to_major_size;
    const int64_t* tile_dims;
    const size_t* tile_dim_sizes;
    size_t num_tiles;
  };
  struct Strides : Args {
    const int64_t* byte_strides;
    size_t num_byte_strides;
  };
  union {
    Tiled tiled;
    Strides strides;
  };
  Type type;
};

struct Program : Args {
  char* code;
  size_t code_size;
  const char* format;
  size_t format_size;
};

struct LogicalDeviceIds {
  int replica;
  int partition;
};

struct ExecuteOptions : Args {
  void* send_callbacks;
  void* recv_callbacks;
  size_t num_send_ops;
  size_t num_recv_ops;
  int launch_id;
  const int64_t* non_donatable_input_indices;
  size_t num_non_donatable_input_indices;
  ExecuteContext* context;
  const char* call_location;
  size_t num_tasks;
  int* task_ids;
  int64_t* incarnation_ids;
  void* multi_slice_config;
  bool use_major_to_minor_data_layout_for_callbacks;
  void* hlo_output_callbacks;
  size_t num_hlo_output_callbacks;
};

// --- Arguments of the functions, in the order of the table ---------------------------------------

struct Error_DestroyArgs : Args {
  Error* error;
};

struct Error_MessageArgs : Args {
  Error* error;
  const char* message;
  size_t message_size;
};

struct Error_GetCodeArgs : Args {
  Error* error;
  ErrorCode code;
};

struct Plugin_InitializeArgs : Args {};

struct Plugin_AttributesArgs : Args {
  const NamedValue* attributes;
  size_t num_attributes;
};

struct Event_DestroyArgs : Args {
  Event* event;
};

struct Event_IsReadyArgs : Args {
  Event* event;
  bool is_ready;
};

struct Event_ErrorArgs : Args {
  Event* event;
};

struct Event_AwaitArgs : Args {
  Event* event;
};

struct Event_OnReadyArgs : Args {
  Event* event;
  void (*callback)(Error*, void*);
  void* user_arg;
};

struct Client_CreateArgs : Args {
  const NamedValue* create_options;
  size_t num_options;
  void* kv_get_callback;
  void* kv_get_user_arg;
  void* kv_put_callback;
  void* kv_put_user_arg;
  Client* client;
  void* kv_try_get_callback;
  void* kv_try_get_user_arg;
};

struct Client_DestroyArgs : Args {
  Client* client;
};

struct Client_PlatformNameArgs : Args {
  Client* client;
  const char* platform_name;
  size_t platform_name_size;
};

struct Client_ProcessIndexArgs : Args {
  Client* client;
  int process_index;
};

struct Client_PlatformVersionArgs : Args {
  Client* client;
  const char* platform_version;
  size_t platform_version_size;
};

struct Client_DevicesArgs : Args {
  Client* client;
  Device* const* devices;
  size_t num_devices;
};

struct Client_AddressableDevicesArgs : Args {
  Client* client;
  Device* const* addressable_devices;
  size_t num_addressable_devices;
};

struct Client_LookupDeviceArgs : Args {
  Client* client;
  int id;
  Device* device;
};

struct Client_LookupAddressableDeviceArgs : Args {
  Client* client;
  int local_hardware_id;
  Device* addressable_device;
};

struct Client_AddressableMemoriesArgs : Args {
  Client* client;
  Memory* const* addressable_memories;
  size_t num_addressable_memories;
};

struct Client_CompileArgs : Args {
  Client* client;
  Program* program;
  const char* compile_options;
  size_t compile_options_size;
  LoadedExecutable* executable;
};

struct Client_DefaultDeviceAssignmentArgs : Args {
  Client* client;
  int num_replicas;
  int num_partitions;
  size_t default_assignment_size;
  int* default_assignment;
};

struct Client_BufferFromHostBufferArgs : Args {
  Client* client;
  const void* data;
  BufferType type;
  const int64_t* dims;
  size_t num_dims;
  const int64_t* byte_strides;
  size_t num_byte_strides;
  HostBufferSemantics host_buffer_semantics;
  Device* device;
  Memory* memory;
  MemoryLayout* device_layout;
  Event* done_with_host_buffer;
  Buffer* buffer;
};

struct DeviceDescription_IdArgs : Args {
  DeviceDescription* device_description;
  int id;
};

struct DeviceDescription_ProcessIndexArgs : Args {
  DeviceDescription* device_description;
  int process_index;
};

struct DeviceDescription_AttributesArgs : Args {
  DeviceDescription* device_description;
  size_t num_attributes;
  const NamedValue* attributes;
};

struct DeviceDescription_KindArgs : Args {
  DeviceDescription* device_description;
  const char* device_kind;
  size_t device_kind_size;
};

struct DeviceDescription_DebugStringArgs : Args {
  DeviceDescription* device_description;
  const char* debug_string;
  size_t debug_string_size;
};

struct DeviceDescription_ToStringArgs : Args {
  DeviceDescription* device_description;
  const char* to_string;
  size_t to_string_size;
};

struct Device_GetDescriptionArgs : Args {
  Device* device;
  DeviceDescription* device_description;
};

struct Device_IsAddressableArgs : Args {
  Device* device;
  bool is_addressable;
};

struct Device_LocalHardwareIdArgs : Args {
  Device* device;
  int local_hardware_id;
};

struct Device_AddressableMemoriesArgs : Args {
  Device* device;
  Memory* const* memories;
  size_t num_memories;
};

struct Device_DefaultMemoryArgs : Args {
  Device* device;
  Memory* memory;
};

struct Device_MemoryStatsArgs : Args {
  Device* device;
  int64_t bytes_in_use;
  int64_t peak_bytes_in_use;
  bool peak_bytes_in_use_is_set;
  int64_t num_allocs;
  bool num_allocs_is_set;
  int64_t largest_alloc_size;
  bool largest_alloc_size_is_set;
  int64_t bytes_limit;
  bool bytes_limit_is_set;
  int64_t bytes_reserved;
  bool bytes_reserved_is_set;
  int64_t peak_bytes_reserved;
  bool peak_bytes_reserved_is_set;
  int64_t bytes_reservable_limit;
  bool bytes_reservable_limit_is_set;
  int64_t largest_free_block_bytes;
  bool largest_free_block_bytes_is_set;
  int64_t pool_bytes;
  bool pool_bytes_is_set;
  int64_t peak_pool_bytes;
  bool peak_pool_bytes_is_set;
  int64_t peak_allocated_bytes;
  bool peak_allocated_bytes_is_set;
};

struct Memory_IdArgs : Args {
  Memory* memory;
  int id;
};

struct Memory_KindArgs : Args {
  Memory* memory;
  const char* kind;
  size_t kind_size;
};

struct Memory_DebugStringArgs : Args {
  Memory* memory;
  const char* debug_string;
  size_t debug_string_size;
};

struct Memory_ToStringArgs : Args {
  Memory* memory;
  const char* to_string;
  size_t to_string_size;
};

struct Memory_AddressableByDevicesArgs : Args {
  Memory* memory;
  Device* const* devices;
  size_t num_devices;
};

struct Executable_DestroyArgs : Args {
  Executable* executable;
};

struct Executable_NameArgs : Args {
  Executable* executable;
  const char* executable_name;
  size_t executable_name_size;
};

struct Executable_NumReplicasArgs : Args {
  Executable* executable;
  size_t num_replicas;
};

struct Executable_NumPartitionsArgs : Args {
  Executable* executable;
  size_t num_partitions;
};

struct Executable_NumOutputsArgs : Args {
  Executable* executable;
  size_t num_outputs;
};

struct Executable_SizeOfGeneratedCodeInBytesArgs : Args {
  Executable* executable;
  int64_t size_in_bytes;
};

struct Executable_GetCostAnalysisArgs : Args {
  Executable* executable;
  size_t num_properties;
  const NamedValue* properties;
};

struct Executable_OutputMemoryKindsArgs : Args {
  Executable* executable;
  size_t num_outputs;
  const char* const* memory_kinds;
  const size_t* memory_kind_sizes;
};

struct Executable_OptimizedProgramArgs : Args {
  Executable* executable;
  Program* program;
};

struct Executable_SerializeArgs : Args {
  Executable* executable;
  const char* serialized_bytes;
  size_t serialized_bytes_size;
  void* serialized_executable;
  void (*serialized_executable_deleter)(void*);
};

struct LoadedExecutable_DestroyArgs : Args {
  LoadedExecutable* executable;
};

struct LoadedExecutable_GetExecutableArgs : Args {
  LoadedExecutable* loaded_executable;
  Executable* executable;
};

struct LoadedExecutable_AddressableDevicesArgs : Args {
  LoadedExecutable* executable;
  Device* const* addressable_devices;
  size_t num_addressable_devices;
};

struct LoadedExecutable_DeleteArgs : Args {
  LoadedExecutable* executable;
};

struct LoadedExecutable_IsDeletedArgs : Args {
  LoadedExecutable* executable;
  bool is_deleted;
};

struct LoadedExecutable_ExecuteArgs : Args {
  LoadedExecutable* executable;
  ExecuteOptions* options;
  Buffer* const* const* argument_lists;
  size_t num_devices;
  size_t num_args;
  Buffer** const* output_lists;
  Event** device_complete_events;
  Device* execute_device;
};

struct Executable_DeserializeAndLoadArgs : Args {
  Client* client;
  const char* serialized_executable;
  size_t serialized_executable_size;
  LoadedExecutable* loaded_executable;
  const char* overridden_serialized_compile_options;
  size_t overridden_serialized_compile_options_size;
  void* load_options;
};

struct LoadedExecutable_FingerprintArgs : Args {
  LoadedExecutable* executable;
  const char* executable_fingerprint;
  size_t executable_fingerprint_size;
};

struct Buffer_DestroyArgs : Args {
  Buffer* buffer;
};

struct Buffer_ElementTypeArgs : Args {
  Buffer* buffer;
  BufferType type;
};

struct Buffer_DimensionsArgs : Args {
  Buffer* buffer;
  const int64_t* dims;
  size_t num_dims;
};

struct Buffer_UnpaddedDimensionsArgs : Args {
  Buffer* buffer;
  const int64_t* unpadded_dims;
  size_t num_dims;
};

struct Buffer_DynamicDimensionIndicesArgs : Args {
  Buffer* buffer;
  const size_t* dynamic_dim_indices;
  size_t num_dynamic_dims;
};

struct Buffer_GetMemoryLayoutArgs : Args {
  Buffer* buffer;
  MemoryLayout layout;
};

struct Buffer_OnDeviceSizeInBytesArgs : Args {
  Buffer* buffer;
  size_t on_device_size_in_bytes;
};

struct Buffer_DeviceArgs : Args {
  Buffer* buffer;
  Device* device;
};

struct Buffer_MemoryArgs : Args {
  Buffer* buffer;
  Memory* memory;
};

struct Buffer_DeleteArgs : Args {
  Buffer* buffer;
};

struct Buffer_IsDeletedArgs : Args {
  Buffer* buffer;
  bool is_deleted;
};

struct Buffer_CopyToDeviceArgs : Args {
  Buffer* buffer;
  Device* dst_device;
  Buffer* dst_buffer;
};

struct Buffer_ToHostBufferArgs : Args {
  Buffer* src;
  MemoryLayout* host_layout;
  void* dst;
  size_t dst_size;
  Event* event;
};

struct Buffer_IsOnCpuArgs : Args {
  Buffer* buffer;
  bool is_on_cpu;
};

struct Buffer_ReadyEventArgs : Args {
  Buffer* buffer;
  Event* event;
};

struct Buffer_UnsafePointerArgs : Args {
  Buffer* buffer;
  size_t buffer_pointer;
};

struct Buffer_IncreaseExternalReferenceCountArgs : Args {
  Buffer* buffer;
};

struct Buffer_DecreaseExternalReferenceCountArgs : Args {
  Buffer* buffer;
};

struct Buffer_OpaqueDeviceMemoryDataPointerArgs : Args {
  Buffer* buffer;
  void* device_memory_ptr;
};

struct TopologyDescription_DestroyArgs : Args {
  Topology* topology;
};

struct TopologyDescription_PlatformNameArgs : Args {
  Topology* topology;
  const char* platform_name;
  size_t platform_name_size;
};

struct TopologyDescription_PlatformVersionArgs : Args {
  Topology* topology;
  const char* platform_version;
  size_t platform_version_size;
};

struct TopologyDescription_GetDeviceDescriptionsArgs : Args {
  Topology* topology;
  DeviceDescription* const* descriptions;
  size_t num_descriptions;
};

struct TopologyDescription_AttributesArgs : Args {
  Topology* topology;
  const NamedValue* attributes;
  size_t num_attributes;
};

struct CompileArgs : Args {
  Topology* topology;
  Program* program;
  const char* compile_options;
  size_t compile_options_size;
  Client* client;
  Executable* executable;
};

struct Executable_OutputElementTypesArgs : Args {
  Executable* executable;
  const BufferType* output_types;
  size_t num_output_types;
};

struct Executable_OutputDimensionsArgs : Args {
  Executable* executable;
  size_t num_outputs;
  const int64_t* dims;
  const size_t* dim_sizes;
};

struct Buffer_CopyToMemoryArgs : Args {
  Buffer* buffer;
  Memory* dst_memory;
  Buffer* dst_buffer;
};

struct Client_CreateViewOfDeviceBufferArgs : Args {
  Client* client;
  void* device_buffer_ptr;
  const int64_t* dims;
  size_t num_dims;
  BufferType element_type;
  MemoryLayout* layout;
  Device* device;
  void (*on_delete_callback)(void*, void*);
  void* on_delete_callback_arg;
  int64_t stream;
  Buffer* buffer;
  Memory* memory;
};

struct Executable_FingerprintArgs : Args {
  Executable* executable;
  const char* executable_fingerprint;
  size_t executable_fingerprint_size;
};

struct Client_TopologyDescriptionArgs : Args {
  Client* client;
  Topology* topology;
};

struct Executable_GetCompiledMemoryStatsArgs : Args {
  Executable* executable;
  int64_t generated_code_size_in_bytes;
  int64_t argument_size_in_bytes;
  int64_t output_size_in_bytes;
  int64_t alias_size_in_bytes;
  int64_t temp_size_in_bytes;
  int64_t host_generated_code_size_in_bytes;
  int64_t host_argument_size_in_bytes;
  int64_t host_output_size_in_bytes;
  int64_t host_alias_size_in_bytes;
  int64_t host_temp_size_in_bytes;
  int64_t peak_memory_in_bytes;
  int64_t total_size_in_bytes;
  int64_t total_allocation_bytes;
  int64_t indefinite_allocations;
  int64_t peak_unpadded_heap_bytes;
};

struct Memory_Kind_IdArgs : Args {
  Memory* memory;
  int kind_id;
};

struct ExecuteContext_CreateArgs : Args {
  ExecuteContext* context;
};

struct ExecuteContext_DestroyArgs : Args {
  ExecuteContext* context;
};

struct Buffer_CopyRawToHostArgs : Args {
  Buffer* buffer;
  void* dst;
  int64_t offset;
  int64_t transfer_size;
  Event* event;
};

struct Client_CreateUninitializedBufferArgs : Args {
  Client* client;
  const int64_t* shape_dims;
  size_t shape_num_dims;
  BufferType shape_element_type;
  MemoryLayout* shape_layout;
  Device* device;
  Memory* memory;
  Buffer* buffer;
};

struct LoadedExecutable_GetDeviceAssignmentArgs : Args {
  LoadedExecutable* executable;
  const char* serialized_bytes;
  size_t serialized_bytes_size;
  void* serialized_device_assignment;
  void (*serialized_device_assignment_deleter)(void*);
};

struct Client_CreateErrorBufferArgs : Args {
  Client* client;
  ErrorCode error_code;
  const char* error_message;
  size_t error_message_size;
  const int64_t* shape_dims;
  size_t shape_num_dims;
  BufferType shape_element_type;
  MemoryLayout* shape_layout;
  Memory* memory;
  Buffer* buffer;
  void* payload;
  size_t num_payload;
};

struct Executable_GetCompileOptionsArgs : Args {
  Executable* executable;
  const char* serialized_bytes;
  size_t serialized_bytes_size;
  void* serialized_compile_options;
  void (*serialized_compile_options_deleter)(void*);
};

struct Event_CreateArgs : Args {
  Event* event;
};

struct Event_SetArgs : Args {
  Event* event;
  ErrorCode error_code;
  const char* error_message;
  size_t error_message_size;
};

struct Device_GetAttributesArgs : Args {
  Device* device;
  const NamedValue* attributes;
  size_t num_attributes;
  void* device_attributes;
  void (*attributes_deleter)(void*);
};

struct Client_LoadArgs : Args {
  Client* client;
  Executable* executable;
  const char* compile_options;
  size_t compile_options_size;
  LoadedExecutable* loaded_executable;
};

struct LoadedExecutable_AddressableDeviceLogicalIdsArgs : Args {
  LoadedExecutable* executable;
  const LogicalDeviceIds* addressable_device_logical_ids;
  size_t num_addressable_device_logical_ids;
};

struct Error_ForEachPayloadArgs : Args {
  Error* error;
  void* visitor;
  void* user_arg;
};

struct TopologyDescription_FingerprintArgs : Args {
  Topology* topology;
  size_t fingerprint;
};

struct Executable_ParameterMemoryKindsArgs : Args {
  Executable* executable;
  size_t num_parameters;
  const char* const* memory_kinds;
  const size_t* memory_kind_sizes;
};

struct Device_ClearMemoryStatsArgs : Args {
  Device* device;
};

// --- Extensions ----------------------------------------------------------------------------------

enum class ExtensionType : uint32_t { kProfiler = 1, kLayouts = 4, kFfi = 5, kShardings = 19 };

struct ExtensionBase {
  size_t struct_size;
  ExtensionType type;
  ExtensionBase* next;
};

using Function = Error* (*)(Args*);

// Layouts of arrays, as text such as "{1,0}".
struct Layout;

struct LayoutsExtension : ExtensionBase {
  Function MemoryLayout_Destroy;
  Function MemoryLayout_Serialize;
  Function Client_GetDefaultLayout;
  Function Buffer_MemoryLayout;
  Function Topology_GetDefaultLayout;
  Function Executable_GetOutputLayouts;
  Function Executable_GetParameterLayouts;
};

struct Layouts_MemoryLayout_DestroyArgs : Args {
  Layout* layout;
};

struct Layouts_MemoryLayout_SerializeArgs : Args {
  Layout* layout;
  const char* serialized_bytes;
  size_t serialized_bytes_size;
  void* serialized_layout;
  void (*serialized_layout_deleter)(void*);
};

struct Layouts_Client_GetDefaultLayoutArgs : Args {
  Client* client;
  BufferType type;
  const int64_t* dims;
  size_t num_dims;
  Layout* layout;
};

struct Layouts_Buffer_MemoryLayoutArgs : Args {
  Buffer* buffer;
  Layout* layout;
};

struct Layouts_Topology_GetDefaultLayoutArgs : Args {
  Topology* topology_description;
  BufferType type;
  const int64_t* dims;
  size_t num_dims;
  Layout* layout;
};

struct Layouts_Executable_GetOutputLayoutsArgs : Args {
  Executable* executable;
  size_t num_outputs;
  Layout** layouts;
};

struct Layouts_Executable_GetParameterLayoutsArgs : Args {
  Executable* executable;
  size_t num_parameters;
  Layout** layouts;
};

// What the framework gives an execution for custom calls: pointers, each of a type that has a name.
struct FfiExtension : ExtensionBase {
  Function type_register;
  Function user_data_add;
  Function register_handler;
};

struct Ffi_Type_RegisterArgs : Args {
  const char* type_name;
  size_t type_name_size;
  int64_t type_id;  // 0: to be given one
  void* type_info;
};

struct Ffi_UserData_AddArgs : Args {
  ExecuteContext* context;
  int64_t type_id;
  void* data;
};

struct Ffi_Register_HandlerArgs {
  size_t struct_size;
  const char* target_name;
  size_t target_name_size;
  void* handler;
  const char* platform_name;
  size_t platform_name_size;
  uint32_t traits;
};

// How arrays lie on the devices of an executable: serialised messages xla.OpSharding.
struct ShardingsExtension : ExtensionBase {
  Function PJRT_Shardings_PJRT_Executable_ParameterShardings;
  Function PJRT_Shardings_PJRT_Executable_OutputShardings;
};

struct Shardings_Executable_ParameterShardingsArgs : Args {
  Executable* executable;
  size_t num_parameters;
  const char* const* shardings;
  const size_t* sharding_sizes;
};

struct Shardings_Executable_OutputShardingsArgs : Args {
  Executable* executable;
  size_t num_outputs;
  const char* const* shardings;
  const size_t* sharding_sizes;
};

// A profiler of the plugin's, which the framework starts, stops and reads beside its own: an
// interface of its own, with errors of its own. Names are XLA's without the prefix PLUGIN_.
struct Profiler;
struct ProfilerError;

struct Profiler_Error_DestroyArgs {
  size_t struct_size;
  void* priv;
  ProfilerError* error;
};

struct Profiler_Error_MessageArgs {
  size_t struct_size;
  void* priv;
  const ProfilerError* error;
  const char* message;
  size_t message_size;
};

struct Profiler_Error_GetCodeArgs {
  size_t struct_size;
  void* priv;
  const ProfilerError* error;
  int code;
};

struct Profiler_CreateArgs {
  size_t struct_size;
  const char* options;
  size_t options_size;
  Profiler* profiler;
};

struct Profiler_DestroyArgs {
  size_t struct_size;
  Profiler* profiler;
};

struct Profiler_StartArgs {
  size_t struct_size;
  Profiler* profiler;
};

struct Profiler_StopArgs {
  size_t struct_size;
  Profiler* profiler;
};

struct Profiler_CollectDataArgs {
  size_t struct_size;
  Profiler* profiler;
  uint8_t* buffer;
  size_t buffer_size_in_bytes;
};

// As jaxlib 0.10 has it, which takes no other size. Later versions have functions behind these, and
// do without them.
struct ProfilerApi {
  size_t struct_size;
  void* priv;
  void (*error_destroy)(Profiler_Error_DestroyArgs*);
  void (*error_message)(Profiler_Error_MessageArgs*);
  ProfilerError* (*error_get_code)(Profiler_Error_GetCodeArgs*);
  ProfilerError* (*create)(void*);
  ProfilerError* (*destroy)(void*);
  ProfilerError* (*start)(void*);
  ProfilerError* (*stop)(void*);
  ProfilerError* (*collect_data)(void*);
};

struct ProfilerExtension : ExtensionBase {
  const ProfilerApi* profiler_api;
  int64_t traceme_context_id;
};

// --- The table -----------------------------------------------------------------------------------

struct Version : Args {
  int major_version;
  int minor_version;
};

inline constexpr size_t kFunctions = 138;

struct Api {
  size_t struct_size;
  ExtensionBase* extension_start;
  Version pjrt_api_version;
  Function functions[kFunctions];
};

}  // namespace lamina::pjrt
