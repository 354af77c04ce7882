// collective_kind.h -- what collectives there are, by whatever they are carried.
#pragma once

#include <cstdint>

namespace lamina {

// What a collective does. Operands and results are dense; n is the size of the group.
enum class CollectiveKind : int32_t {
  kAllReduce,      // count elements -> count elements
  kReduceScatter,  // n * count -> count
  kAllGather,      // count -> n * count
  kAllToAll,       // n * count -> n * count
  kPermute,        // count -> count; zeros where nothing arrives
  kBroadcast,      // count -> count: the first of the group's; zeros outside every group
  kDeviceId,       // -> one uint32
};

// Their names in StableHLO.
inline constexpr const char* kCollectiveNames[] = {
    "all_reduce",         "reduce_scatter",       "all_gather",  "all_to_all",
    "collective_permute", "collective_broadcast", "partition_id"};

}  // namespace lamina
