// devices.h -- the client: this process's processor as one or several devices, which share memory.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "pjrt/abi.h"

namespace lamina::pjrt {

// Kinds of memory have names that programs may ask for. All are the memory of the process: a copy
// from one to another is none.
inline constexpr const char* kMemoryKinds[] = {"device", "pinned_host", "unpinned_host"};
inline constexpr int kMemoryKindCount = 3;

struct Memory {
  const void* function_table = nullptr;  // see abi.h
  int id;
  int kind;
  Device* device;
  std::string text;
};

struct DeviceDescription {
  int id;
  std::string text;
};

struct Device {
  Client* client;
  DeviceDescription description;
  std::vector<Memory*> memories;  // by kind; the first is the default
};

struct Topology {
  std::vector<DeviceDescription*> descriptions;
};

struct Client {
  explicit Client(int device_count);
  std::deque<Device> owned_devices;
  std::deque<Memory> owned_memories;
  std::vector<Device*> devices;
  std::vector<Memory*> memories;
  Topology topology;

  Device* device(int id) const;
};

}  // namespace lamina::pjrt
