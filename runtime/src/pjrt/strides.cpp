// strides.cpp -- see strides.h.
#include "pjrt/strides.h"

#include <algorithm>
#include <cstring>

#include "cpu/threads.h"
#include "pjrt/status.h"

namespace lamina::pjrt {
namespace {

constexpr int64_t kBytesForATask = int64_t{1} << 20;

struct Copy {
  const char* from;
  char* to;
  const std::vector<int64_t>& from_strides;
  const std::vector<int64_t>& to_strides;
  const std::vector<int64_t>& dims;
  size_t element_bytes;
  size_t rank;         // dimensions that are walked; those behind are dense in both
  size_t block_bytes;  // of the dimensions behind
};

void copy_from(const Copy& copy, size_t dimension, const char* from, char* to, int64_t lo,
               int64_t hi) {
  if (dimension == copy.rank) {
    std::memcpy(to, from, copy.block_bytes);
    return;
  }
  for (int64_t i = lo; i < hi; ++i) {
    const int64_t inner = dimension + 1 < copy.rank ? copy.dims[dimension + 1] : 0;
    copy_from(copy, dimension + 1, from + i * copy.from_strides[dimension],
              to + i * copy.to_strides[dimension], 0, inner);
  }
}

}  // namespace

std::vector<int64_t> row_major_strides(const std::vector<int64_t>& dims, size_t element_bytes) {
  std::vector<int64_t> strides(dims.size());
  int64_t bytes = static_cast<int64_t>(element_bytes);
  for (size_t i = dims.size(); i-- > 0;) {
    strides[i] = bytes;
    bytes *= std::max<int64_t>(dims[i], 1);
  }
  return strides;
}

std::vector<int64_t> strides_of(const DimensionOrder& order, const std::vector<int64_t>& dims,
                                size_t element_bytes) {
  if (order.empty()) return row_major_strides(dims, element_bytes);
  std::vector<int64_t> strides(dims.size());
  auto bytes = static_cast<int64_t>(element_bytes);
  for (size_t i = order.size(); i-- > 0;) {
    const auto dimension = static_cast<size_t>(order[i]);
    strides[dimension] = bytes;
    bytes *= std::max<int64_t>(dims[dimension], 1);
  }
  return strides;
}

DimensionOrder order_of(const MemoryLayout* layout, size_t rank) {
  if (layout == nullptr) return {};
  if (layout->type == MemoryLayout::kStrides || layout->tiled.num_tiles != 0) {
    refuse(ErrorCode::kUnimplemented, "layouts of arrays are orders of their dimensions alone");
  }
  if (layout->tiled.minor_to_major_size != rank) return {};
  const int64_t* const minor_to_major = layout->tiled.minor_to_major;
  DimensionOrder order(minor_to_major, minor_to_major + rank);
  std::reverse(order.begin(), order.end());
  return std::is_sorted(order.begin(), order.end()) ? DimensionOrder{} : order;
}

std::string layout_text(const DimensionOrder& order, size_t rank) {
  std::string text = "{";
  for (size_t i = rank; i-- > 0;) {
    text += std::to_string(order.empty() ? static_cast<int64_t>(i) : order[i]);
    if (i > 0) text += ',';
  }
  return text + '}';
}

std::vector<int64_t> strides_of(const MemoryLayout* layout, const std::vector<int64_t>& dims,
                                size_t element_bytes) {
  if (layout == nullptr) return row_major_strides(dims, element_bytes);
  if (layout->type == MemoryLayout::kStrides) {
    if (layout->strides.num_byte_strides != dims.size()) {
      refuse(ErrorCode::kInvalidArgument, "a layout has strides for another number of dimensions");
    }
    return {layout->strides.byte_strides, layout->strides.byte_strides + dims.size()};
  }
  if (layout->tiled.num_tiles != 0) {
    refuse(ErrorCode::kUnimplemented, "arrays of tiles are not supported");
  }
  if (layout->tiled.minor_to_major_size != dims.size()) {
    return row_major_strides(dims, element_bytes);
  }
  std::vector<int64_t> strides(dims.size());
  int64_t bytes = static_cast<int64_t>(element_bytes);
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t dimension = layout->tiled.minor_to_major[i];
    strides[dimension] = bytes;
    bytes *= std::max<int64_t>(dims[dimension], 1);
  }
  return strides;
}

bool is_row_major(const std::vector<int64_t>& strides, const std::vector<int64_t>& dims,
                  size_t element_bytes) {
  const std::vector<int64_t> dense = row_major_strides(dims, element_bytes);
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return true;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] != 1 && strides[i] != dense[i]) return false;
  }
  return true;
}

void copy_elements(const void* from, const std::vector<int64_t>& from_strides, void* to,
                   const std::vector<int64_t>& to_strides, const std::vector<int64_t>& dims,
                   size_t element_bytes) {
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return;
  Copy copy{static_cast<const char*>(from),
            static_cast<char*>(to),
            from_strides,
            to_strides,
            dims,
            element_bytes,
            dims.size(),
            element_bytes};
  while (copy.rank > 0) {
    const size_t i = copy.rank - 1;
    const auto bytes = static_cast<int64_t>(copy.block_bytes);
    if (dims[i] != 1 && (from_strides[i] != bytes || to_strides[i] != bytes)) break;
    copy.block_bytes *= static_cast<size_t>(dims[i]);
    --copy.rank;
  }
  if (copy.rank > 0) {
    int64_t row_bytes = static_cast<int64_t>(copy.block_bytes);
    for (size_t i = 1; i < copy.rank; ++i) row_bytes *= dims[i];
    lamina_parallel_for(
        [](void* context, int64_t lo, int64_t hi) {
          const Copy& here = *static_cast<Copy*>(context);
          copy_from(here, 0, here.from, here.to, lo, hi);
        },
        &copy, dims[0], std::max<int64_t>(kBytesForATask / row_bytes, 1));
    return;
  }
  lamina_parallel_for(
      [](void* context, int64_t lo, int64_t hi) {
        const Copy& here = *static_cast<Copy*>(context);
        std::memcpy(here.to + lo, here.from + lo, static_cast<size_t>(hi - lo));
      },
      &copy, static_cast<int64_t>(copy.block_bytes), kBytesForATask);
}

}  // namespace lamina::pjrt
