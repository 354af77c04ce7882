// functions.h -- PJRT's table of functions, in its order, and the functions of ours behind it.
#pragma once

#include "pjrt/abi.h"

// IMPLEMENTED(PJRT's name, the function) or MISSING(PJRT's name).
#define LAMINA_PJRT_FUNCTIONS(IMPLEMENTED, MISSING)                                            \
  IMPLEMENTED(Error_Destroy, error_destroy)                                                    \
  IMPLEMENTED(Error_Message, error_message)                                                    \
  IMPLEMENTED(Error_GetCode, error_get_code)                                                   \
  IMPLEMENTED(Plugin_Initialize, plugin_initialize)                                            \
  IMPLEMENTED(Plugin_Attributes, plugin_attributes)                                            \
  IMPLEMENTED(Event_Destroy, event_destroy)                                                    \
  IMPLEMENTED(Event_IsReady, event_is_ready)                                                   \
  IMPLEMENTED(Event_Error, event_error)                                                        \
  IMPLEMENTED(Event_Await, event_await)                                                        \
  IMPLEMENTED(Event_OnReady, event_on_ready)                                                   \
  IMPLEMENTED(Client_Create, client_create)                                                    \
  IMPLEMENTED(Client_Destroy, client_destroy)                                                  \
  IMPLEMENTED(Client_PlatformName, client_platform_name)                                       \
  IMPLEMENTED(Client_ProcessIndex, client_process_index)                                       \
  IMPLEMENTED(Client_PlatformVersion, client_platform_version)                                 \
  IMPLEMENTED(Client_Devices, client_devices)                                                  \
  IMPLEMENTED(Client_AddressableDevices, client_addressable_devices)                           \
  IMPLEMENTED(Client_LookupDevice, client_lookup_device)                                       \
  IMPLEMENTED(Client_LookupAddressableDevice, client_lookup_addressable_device)                \
  IMPLEMENTED(Client_AddressableMemories, client_addressable_memories)                         \
  IMPLEMENTED(Client_Compile, client_compile)                                                  \
  IMPLEMENTED(Client_DefaultDeviceAssignment, client_default_device_assignment)                \
  IMPLEMENTED(Client_BufferFromHostBuffer, client_buffer_from_host_buffer)                     \
  IMPLEMENTED(DeviceDescription_Id, device_description_id)                                     \
  IMPLEMENTED(DeviceDescription_ProcessIndex, device_description_process_index)                \
  IMPLEMENTED(DeviceDescription_Attributes, device_description_attributes)                     \
  IMPLEMENTED(DeviceDescription_Kind, device_description_kind)                                 \
  IMPLEMENTED(DeviceDescription_DebugString, device_description_debug_string)                  \
  IMPLEMENTED(DeviceDescription_ToString, device_description_to_string)                        \
  IMPLEMENTED(Device_GetDescription, device_get_description)                                   \
  IMPLEMENTED(Device_IsAddressable, device_is_addressable)                                     \
  IMPLEMENTED(Device_LocalHardwareId, device_local_hardware_id)                                \
  IMPLEMENTED(Device_AddressableMemories, device_addressable_memories)                         \
  IMPLEMENTED(Device_DefaultMemory, device_default_memory)                                     \
  IMPLEMENTED(Device_MemoryStats, device_memory_stats)                                         \
  IMPLEMENTED(Memory_Id, memory_id)                                                            \
  IMPLEMENTED(Memory_Kind, memory_kind)                                                        \
  IMPLEMENTED(Memory_DebugString, memory_debug_string)                                         \
  IMPLEMENTED(Memory_ToString, memory_to_string)                                               \
  IMPLEMENTED(Memory_AddressableByDevices, memory_addressable_by_devices)                      \
  IMPLEMENTED(Executable_Destroy, executable_destroy)                                          \
  IMPLEMENTED(Executable_Name, executable_name)                                                \
  IMPLEMENTED(Executable_NumReplicas, executable_num_replicas)                                 \
  IMPLEMENTED(Executable_NumPartitions, executable_num_partitions)                             \
  IMPLEMENTED(Executable_NumOutputs, executable_num_outputs)                                   \
  IMPLEMENTED(Executable_SizeOfGeneratedCodeInBytes, executable_size_of_generated_code)        \
  IMPLEMENTED(Executable_GetCostAnalysis, executable_get_cost_analysis)                        \
  IMPLEMENTED(Executable_OutputMemoryKinds, executable_output_memory_kinds)                    \
  IMPLEMENTED(Executable_OptimizedProgram, executable_optimized_program)                       \
  IMPLEMENTED(Executable_Serialize, executable_serialize)                                      \
  IMPLEMENTED(LoadedExecutable_Destroy, loaded_executable_destroy)                             \
  IMPLEMENTED(LoadedExecutable_GetExecutable, loaded_executable_get_executable)                \
  IMPLEMENTED(LoadedExecutable_AddressableDevices, loaded_executable_addressable_devices)      \
  IMPLEMENTED(LoadedExecutable_Delete, loaded_executable_delete)                               \
  IMPLEMENTED(LoadedExecutable_IsDeleted, loaded_executable_is_deleted)                        \
  IMPLEMENTED(LoadedExecutable_Execute, loaded_executable_execute)                             \
  IMPLEMENTED(Executable_DeserializeAndLoad, executable_deserialize_and_load)                  \
  IMPLEMENTED(LoadedExecutable_Fingerprint, loaded_executable_fingerprint)                     \
  IMPLEMENTED(Buffer_Destroy, buffer_destroy)                                                  \
  IMPLEMENTED(Buffer_ElementType, buffer_element_type)                                         \
  IMPLEMENTED(Buffer_Dimensions, buffer_dimensions)                                            \
  IMPLEMENTED(Buffer_UnpaddedDimensions, buffer_unpadded_dimensions)                           \
  IMPLEMENTED(Buffer_DynamicDimensionIndices, buffer_dynamic_dimension_indices)                \
  IMPLEMENTED(Buffer_GetMemoryLayout, buffer_get_memory_layout)                                \
  IMPLEMENTED(Buffer_OnDeviceSizeInBytes, buffer_on_device_size_in_bytes)                      \
  IMPLEMENTED(Buffer_Device, buffer_device)                                                    \
  IMPLEMENTED(Buffer_Memory, buffer_memory)                                                    \
  IMPLEMENTED(Buffer_Delete, buffer_delete)                                                    \
  IMPLEMENTED(Buffer_IsDeleted, buffer_is_deleted)                                             \
  IMPLEMENTED(Buffer_CopyToDevice, buffer_copy_to_device)                                      \
  IMPLEMENTED(Buffer_ToHostBuffer, buffer_to_host_buffer)                                      \
  IMPLEMENTED(Buffer_IsOnCpu, buffer_is_on_cpu)                                                \
  IMPLEMENTED(Buffer_ReadyEvent, buffer_ready_event)                                           \
  IMPLEMENTED(Buffer_UnsafePointer, buffer_unsafe_pointer)                                     \
  IMPLEMENTED(Buffer_IncreaseExternalReferenceCount, buffer_increase_external_reference_count) \
  IMPLEMENTED(Buffer_DecreaseExternalReferenceCount, buffer_decrease_external_reference_count) \
  IMPLEMENTED(Buffer_OpaqueDeviceMemoryDataPointer, buffer_opaque_device_memory_data_pointer)  \
  MISSING(CopyToDeviceStream_Destroy)                                                          \
  MISSING(CopyToDeviceStream_AddChunk)                                                         \
  MISSING(CopyToDeviceStream_TotalBytes)                                                       \
  MISSING(CopyToDeviceStream_GranuleSize)                                                      \
  MISSING(CopyToDeviceStream_CurrentBytes)                                                     \
  MISSING(TopologyDescription_Create)                                                          \
  IMPLEMENTED(TopologyDescription_Destroy, topology_destroy)                                   \
  IMPLEMENTED(TopologyDescription_PlatformName, topology_platform_name)                        \
  IMPLEMENTED(TopologyDescription_PlatformVersion, topology_platform_version)                  \
  IMPLEMENTED(TopologyDescription_GetDeviceDescriptions, topology_get_device_descriptions)     \
  MISSING(TopologyDescription_Serialize)                                                       \
  IMPLEMENTED(TopologyDescription_Attributes, topology_attributes)                             \
  IMPLEMENTED(Compile, compile_for_topology)                                                   \
  IMPLEMENTED(Executable_OutputElementTypes, executable_output_element_types)                  \
  IMPLEMENTED(Executable_OutputDimensions, executable_output_dimensions)                       \
  IMPLEMENTED(Buffer_CopyToMemory, buffer_copy_to_memory)                                      \
  IMPLEMENTED(Client_CreateViewOfDeviceBuffer, client_create_view_of_device_buffer)            \
  IMPLEMENTED(Executable_Fingerprint, executable_fingerprint)                                  \
  IMPLEMENTED(Client_TopologyDescription, client_topology_description)                         \
  IMPLEMENTED(Executable_GetCompiledMemoryStats, executable_get_compiled_memory_stats)         \
  IMPLEMENTED(Memory_Kind_Id, memory_kind_id)                                                  \
  IMPLEMENTED(ExecuteContext_Create, execute_context_create)                                   \
  IMPLEMENTED(ExecuteContext_Destroy, execute_context_destroy)                                 \
  IMPLEMENTED(Buffer_CopyRawToHost, buffer_copy_raw_to_host)                                   \
  MISSING(AsyncHostToDeviceTransferManager_Destroy)                                            \
  MISSING(AsyncHostToDeviceTransferManager_TransferData)                                       \
  MISSING(Client_CreateBuffersForAsyncHostToDevice)                                            \
  MISSING(AsyncHostToDeviceTransferManager_RetrieveBuffer)                                     \
  MISSING(AsyncHostToDeviceTransferManager_Device)                                             \
  MISSING(AsyncHostToDeviceTransferManager_BufferCount)                                        \
  MISSING(AsyncHostToDeviceTransferManager_BufferSize)                                         \
  MISSING(AsyncHostToDeviceTransferManager_SetBufferError)                                     \
  MISSING(AsyncHostToDeviceTransferManager_AddMetadata)                                        \
  MISSING(Client_DmaMap)                                                                       \
  MISSING(Client_DmaUnmap)                                                                     \
  IMPLEMENTED(Client_CreateUninitializedBuffer, client_create_uninitialized_buffer)            \
  MISSING(Client_UpdateGlobalProcessInfo)                                                      \
  MISSING(TopologyDescription_Deserialize)                                                     \
  MISSING(Client_CreateAliasBuffer)                                                            \
  MISSING(Client_FulfillAliasBuffer)                                                           \
  IMPLEMENTED(LoadedExecutable_GetDeviceAssignment, loaded_executable_get_device_assignment)   \
  IMPLEMENTED(Client_CreateErrorBuffer, client_create_error_buffer)                            \
  MISSING(AsyncHostToDeviceTransferManager_TransferLiteral)                                    \
  MISSING(Buffer_CopyRawToHostFuture)                                                          \
  MISSING(Device_PoisonExecution)                                                              \
  MISSING(Device_CreateAsyncTrackingEvent)                                                     \
  MISSING(AsyncTrackingEvent_Destroy)                                                          \
  IMPLEMENTED(Executable_GetCompileOptions, executable_get_compile_options)                    \
  MISSING(Buffer_DonateWithControlDependency)                                                  \
  IMPLEMENTED(Event_Create, event_create)                                                      \
  IMPLEMENTED(Event_Set, event_set)                                                            \
  IMPLEMENTED(Device_GetAttributes, device_get_attributes)                                     \
  IMPLEMENTED(Client_Load, client_load)                                                        \
  IMPLEMENTED(LoadedExecutable_AddressableDeviceLogicalIds, loaded_executable_logical_ids)     \
  MISSING(Buffer_Bitcast)                                                                      \
  IMPLEMENTED(Error_ForEachPayload, error_for_each_payload)                                    \
  IMPLEMENTED(TopologyDescription_Fingerprint, topology_fingerprint)                           \
  IMPLEMENTED(Executable_ParameterMemoryKinds, executable_parameter_memory_kinds)              \
  MISSING(Device_ClearMemoryStats)                                                             \
  MISSING(TopologyDescription_MakeCanonicalShapeForMemorySpace)                                \
  MISSING(TopologyDescription_GetMemorySpaceKindIds)

namespace lamina::pjrt {

#define LAMINA_DECLARE(name, function) void function(name##Args& args);
#define LAMINA_DECLARE_NOTHING(name)
LAMINA_PJRT_FUNCTIONS(LAMINA_DECLARE, LAMINA_DECLARE_NOTHING)
#undef LAMINA_DECLARE
#undef LAMINA_DECLARE_NOTHING

// The extensions, chained: each gives itself, with `next` behind it.
ExtensionBase* layouts_extension(ExtensionBase* next);
ExtensionBase* ffi_extension(ExtensionBase* next);
ExtensionBase* shardings_extension(ExtensionBase* next);
ExtensionBase* profiler_extension(ExtensionBase* next);

}  // namespace lamina::pjrt
