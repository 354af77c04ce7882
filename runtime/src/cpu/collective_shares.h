// collective_shares.h -- what a device does to the memory of others when a collective's group has
// met.
#pragma once

#include <vector>

#include "cpu/collective.h"

namespace lamina {

using Slots = std::vector<Team::Slot>;

// The share of one member of a group. False where elements of this type can't be combined so.
bool do_share(CollectiveKind kind, const CollectiveSpec& spec, const Slots& slots, int member);

// Where the part of an all-reduce begins that a member of a group of this size combines.
int64_t part_of(const CollectiveSpec& spec, int64_t member, int64_t size);

// Elements [lo, hi) of all operands of an all-reduce, combined into every result that is here.
bool reduce_all_of(const CollectiveSpec& spec, const Slots& slots, int64_t lo, int64_t hi);

// The share of device `me` in a permutation: what it is sent, or zeros.
void permute(const CollectiveSpec& spec, const Slots& slots, int me);

}  // namespace lamina
