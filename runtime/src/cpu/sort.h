// sort.h -- the sort that compiled code calls where the order is one of numbers.
#pragma once

#include <cstdint>

extern "C" {
// Sorts rows of `plan` by one or several keys, all operands alike, stably.
//
// plan: outer, length, inner, operands, keys, then the width in bytes of each operand, then for
// each key, the most important first: operand, kind (0 unsigned, 1 signed, 2 floating point with
// -0 equal to +0 and NaN last, 3 floating point in IEEE total order), descending (0 or 1).
// Element j of row (o, i) lies at (o * length + j) * inner + i. inputs[k] is read, outputs[k]
// written unless null; neither overlaps another. Fails the running call when out of memory.
void lamina_sort(const int64_t* plan, const void* const* inputs, void* const* outputs);
}
