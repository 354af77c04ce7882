// top_k.h -- the greatest elements of rows, as compiled code asks for them.
#pragma once

#include <cstdint>

extern "C" {
// The greatest elements of each row, the greatest first, of equal ones the first first, and their
// positions.
//
// plan: rows, length, count, then an element's width in bytes and the kind of its order (0
// unsigned, 1 signed, 3 floating point in IEEE total order). Rows are dense. values and positions
// (int32) are written unless null. Fails the running call when out of memory.
void lamina_top_k(const int64_t* plan, const void* input, void* values, void* positions);
}
