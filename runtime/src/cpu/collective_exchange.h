// collective_exchange.h -- collectives whose group has devices in several processes.
#pragma once

#include "cpu/collective.h"
#include "cpu/collective_shares.h"

namespace lamina {

// The share of one member of a group that has met here (`slots` are what those here brought). One
// of those here exchanges with the other processes what the shares need. Operands are combined in
// the group's order, as among threads, so that how devices are spread over processes changes no
// bits. False where the run has failed; *done is false where elements can't be combined so.
bool share_with_others(Device* here, CollectiveKind kind, const Team::Group& group, Slots* slots,
                       int member, bool* done);

}  // namespace lamina
