// buffers.h -- arrays that the framework holds: memory of the runtime, a type, and a place.
#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include "core/buffer.h"
#include "core/dtypes.h"
#include "core/platform.h"
#include "pjrt/abi.h"
#include "pjrt/strides.h"

namespace lamina::pjrt {

struct Buffer {
  Buffer(Ref<lamina::Buffer> made, Dtype of, std::vector<int64_t> sizes, Memory* place,
         DimensionOrder layout = {})
      : dtype(of),
        dims(std::move(sizes)),
        order(std::move(layout)),
        memory(place),
        content(std::move(made)) {}

  // The content; refused where it was deleted or donated.
  Ref<lamina::Buffer> held(const char* what);
  // Nobody gets it from here any more. Memory that somebody outside looks at stays until they are
  // done.
  void drop();
  bool dropped();

  const Dtype dtype;
  const std::vector<int64_t> dims;  // where the framework's pointers to dimensions point
  const DimensionOrder order;       // in memory
  Memory* const memory;
  int external_references = 0;  // under lock

  SpinLock lock;
  Ref<lamina::Buffer> content;
  bool is_dropped = false;  // under lock
};

Dtype dtype_of(BufferType type);
BufferType type_of(Dtype dtype);

// Memory for an array; throws OutOfMemory, or refuses sizes that 63 bits don't count.
Ref<lamina::Buffer> allocate(Dtype dtype, const std::vector<int64_t>& dims);

}  // namespace lamina::pjrt
