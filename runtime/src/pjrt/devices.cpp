// devices.cpp -- see devices.h.
#include "pjrt/devices.h"

#include <cstring>
#include <string_view>

#include "core/buffer.h"
#include "pjrt/functions.h"
#include "pjrt/status.h"

namespace lamina::pjrt {
namespace {

// JAX chooses lowering rules, custom calls and the type of a DLPack tensor by the platform's name:
// what it has for its own CPU backend is right for this one.
const std::string kPlatform = "cpu";
const std::string kPlatformVersion = "lamina " LAMINA_VERSION;
const std::string kDeviceKind = "lamina cpu";

}  // namespace

Client::Client(int device_count) {
  for (int id = 0; id < device_count; ++id) {
    Device& device = owned_devices.emplace_back();
    device.client = this;
    device.description = {id, "LaminaDevice(id=" + std::to_string(id) + ")"};
    for (int kind = 0; kind < kMemoryKindCount; ++kind) {
      Memory& memory = owned_memories.emplace_back();
      memory.id = id * kMemoryKindCount + kind;
      memory.kind = kind;
      memory.device = &device;
      memory.text = std::string(kMemoryKinds[kind]) + " memory of " + device.description.text;
      device.memories.push_back(&memory);
      memories.push_back(&memory);
    }
    devices.push_back(&device);
    topology.descriptions.push_back(&device.description);
  }
}

Device* Client::device(int id) const {
  if (id >= 0 && static_cast<size_t>(id) < devices.size()) return devices[id];
  refuse(ErrorCode::kInvalidArgument,
         "there is no device " + std::to_string(id) + ", only " + std::to_string(devices.size()));
}

// --- The client ----------------------------------------------------------------------------------

void client_create(Client_CreateArgs& args) {
  int device_count = 1;
  for (size_t i = 0; i < args.num_options; ++i) {
    const NamedValue& option = args.create_options[i];
    if (std::string_view(option.name, option.name_size) != "num_devices" ||
        option.type != NamedValue::kInt64) {
      continue;
    }
    if (option.int64_value < 1 || option.int64_value > 1024) {
      refuse(ErrorCode::kInvalidArgument, "num_devices is from 1 to 1024");
    }
    device_count = static_cast<int>(option.int64_value);
  }
  args.client = new Client(device_count);
}

// Buffers of a client may outlive it, and know its devices: it stays.
void client_destroy(Client_DestroyArgs&) {}

void client_platform_name(Client_PlatformNameArgs& args) {
  give(kPlatform, &args.platform_name, &args.platform_name_size);
}

void client_platform_version(Client_PlatformVersionArgs& args) {
  give(kPlatformVersion, &args.platform_version, &args.platform_version_size);
}

void client_process_index(Client_ProcessIndexArgs& args) { args.process_index = 0; }

void client_devices(Client_DevicesArgs& args) {
  args.devices = args.client->devices.data();
  args.num_devices = args.client->devices.size();
}

void client_addressable_devices(Client_AddressableDevicesArgs& args) {
  args.addressable_devices = args.client->devices.data();
  args.num_addressable_devices = args.client->devices.size();
}

void client_lookup_device(Client_LookupDeviceArgs& args) {
  args.device = args.client->device(args.id);
}

void client_lookup_addressable_device(Client_LookupAddressableDeviceArgs& args) {
  args.addressable_device = args.client->device(args.local_hardware_id);
}

void client_addressable_memories(Client_AddressableMemoriesArgs& args) {
  args.addressable_memories = args.client->memories.data();
  args.num_addressable_memories = args.client->memories.size();
}

void client_topology_description(Client_TopologyDescriptionArgs& args) {
  args.topology = &args.client->topology;
}

void client_default_device_assignment(Client_DefaultDeviceAssignmentArgs& args) {
  const size_t count = static_cast<size_t>(args.num_replicas) * args.num_partitions;
  if (count > args.client->devices.size() || count > args.default_assignment_size) {
    refuse(ErrorCode::kInvalidArgument,
           std::to_string(args.num_replicas) + " replicas of " +
               std::to_string(args.num_partitions) + " partitions need more than the " +
               std::to_string(args.client->devices.size()) + " devices");
  }
  for (size_t i = 0; i < count; ++i) args.default_assignment[i] = static_cast<int>(i);
}

// --- Devices -------------------------------------------------------------------------------------

void device_get_description(Device_GetDescriptionArgs& args) {
  args.device_description = &args.device->description;
}

void device_is_addressable(Device_IsAddressableArgs& args) { args.is_addressable = true; }

void device_local_hardware_id(Device_LocalHardwareIdArgs& args) {
  args.local_hardware_id = args.device->description.id;
}

void device_addressable_memories(Device_AddressableMemoriesArgs& args) {
  args.memories = args.device->memories.data();
  args.num_memories = args.device->memories.size();
}

void device_default_memory(Device_DefaultMemoryArgs& args) {
  args.memory = args.device->memories.front();
}

void device_get_attributes(Device_GetAttributesArgs& args) {
  args.attributes = nullptr;
  args.num_attributes = 0;
  args.device_attributes = nullptr;
  args.attributes_deleter = [](void*) {};
}

void device_memory_stats(Device_MemoryStatsArgs& args) {
  const PoolStats stats = pool_stats();
  args.peak_bytes_in_use_is_set = args.largest_alloc_size_is_set = args.bytes_limit_is_set = false;
  args.bytes_reserved_is_set = args.peak_bytes_reserved_is_set = false;
  args.bytes_reservable_limit_is_set = args.largest_free_block_bytes_is_set = false;
  args.peak_pool_bytes_is_set = false;
  args.bytes_in_use = static_cast<int64_t>(stats.live_bytes);
  args.num_allocs = static_cast<int64_t>(stats.allocations);
  args.num_allocs_is_set = true;
  args.pool_bytes = static_cast<int64_t>(stats.live_bytes + stats.cached_bytes);
  args.pool_bytes_is_set = true;
}

void device_description_id(DeviceDescription_IdArgs& args) {
  args.id = args.device_description->id;
}

void device_description_process_index(DeviceDescription_ProcessIndexArgs& args) {
  args.process_index = 0;
}

void device_description_attributes(DeviceDescription_AttributesArgs& args) {
  args.attributes = nullptr;
  args.num_attributes = 0;
}

void device_description_kind(DeviceDescription_KindArgs& args) {
  give(kDeviceKind, &args.device_kind, &args.device_kind_size);
}

void device_description_debug_string(DeviceDescription_DebugStringArgs& args) {
  give(args.device_description->text, &args.debug_string, &args.debug_string_size);
}

void device_description_to_string(DeviceDescription_ToStringArgs& args) {
  give(args.device_description->text, &args.to_string, &args.to_string_size);
}

// --- Memories ------------------------------------------------------------------------------------

void memory_id(Memory_IdArgs& args) { args.id = args.memory->id; }

void memory_kind(Memory_KindArgs& args) {
  args.kind = kMemoryKinds[args.memory->kind];
  args.kind_size = std::strlen(args.kind);
}

void memory_kind_id(Memory_Kind_IdArgs& args) { args.kind_id = args.memory->kind; }

void memory_debug_string(Memory_DebugStringArgs& args) {
  give(args.memory->text, &args.debug_string, &args.debug_string_size);
}

void memory_to_string(Memory_ToStringArgs& args) {
  give(args.memory->text, &args.to_string, &args.to_string_size);
}

void memory_addressable_by_devices(Memory_AddressableByDevicesArgs& args) {
  args.devices = &args.memory->device;
  args.num_devices = 1;
}

// --- The topology: what of the devices can be known without a client -----------------------------

void topology_destroy(TopologyDescription_DestroyArgs&) {}

void topology_platform_name(TopologyDescription_PlatformNameArgs& args) {
  give(kPlatform, &args.platform_name, &args.platform_name_size);
}

void topology_platform_version(TopologyDescription_PlatformVersionArgs& args) {
  give(kPlatformVersion, &args.platform_version, &args.platform_version_size);
}

void topology_get_device_descriptions(TopologyDescription_GetDeviceDescriptionsArgs& args) {
  args.descriptions = args.topology->descriptions.data();
  args.num_descriptions = args.topology->descriptions.size();
}

void topology_attributes(TopologyDescription_AttributesArgs& args) {
  args.attributes = nullptr;
  args.num_attributes = 0;
}

void topology_fingerprint(TopologyDescription_FingerprintArgs& args) {
  args.fingerprint = 0x6c616d696e61 + args.topology->descriptions.size();
}

}  // namespace lamina::pjrt
