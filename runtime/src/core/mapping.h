// mapping.h -- fresh memory from the kernel, in pages of the size that comes sooner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace lamina {

// Zeros, writable and aligned to pages; null where there is no memory. `munmap` gives it back.
void* map_pages(size_t bytes);

// Whether a block is to be of huge pages. `touch` touches one at so many bytes from the block's
// begin and says how many nanoseconds that took; `tried` is how many bytes it has touched in the
// end.
bool huge_pages_come_soon(size_t bytes, const std::function<int64_t(size_t)>& touch, size_t& tried);

}  // namespace lamina
