// strides.h -- arrays in memory whose elements lie in another order than row by row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "pjrt/abi.h"

namespace lamina::pjrt {

// The bytes between neighbours along each dimension of a dense array in the order of its rows.
std::vector<int64_t> row_major_strides(const std::vector<int64_t>& dims, size_t element_bytes);

// The strides that a layout says; those of rows for none. Refuses tiles.
std::vector<int64_t> strides_of(const MemoryLayout* layout, const std::vector<int64_t>& dims,
                                size_t element_bytes);

// Whether elements lie row by row, whatever strides of dimensions of size one say.
bool is_row_major(const std::vector<int64_t>& strides, const std::vector<int64_t>& dims,
                  size_t element_bytes);

// Copies all elements, in parallel where they are many.
void copy_elements(const void* from, const std::vector<int64_t>& from_strides, void* to,
                   const std::vector<int64_t>& to_strides, const std::vector<int64_t>& dims,
                   size_t element_bytes);

}  // namespace lamina::pjrt
