// strides.h -- arrays in memory whose elements lie in another order than row by row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "pjrt/abi.h"

namespace lamina::pjrt {

// The bytes between neighbours along each dimension of a dense array in the order of its rows.
std::vector<int64_t> row_major_strides(const std::vector<int64_t>& dims, size_t element_bytes);

// The dimensions of a dense array from the slowest to the fastest; empty: row by row.
using DimensionOrder = std::vector<int64_t>;

// The strides of a dense array whose dimensions are in this order.
std::vector<int64_t> strides_of(const DimensionOrder& order, const std::vector<int64_t>& dims,
                                size_t element_bytes);

// The order that a layout says; empty for none and for one that is row by row. Refuses tiles and
// strides.
DimensionOrder order_of(const MemoryLayout* layout, size_t rank);

// An order as XLA writes it, the fastest dimension first: "{0,1}".
std::string layout_text(const DimensionOrder& order, size_t rank);

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
