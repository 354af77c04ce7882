// array.h -- arrays in the memory of GPUs, for the code that knows Python.
#pragma once

#include <vector>

#include "core/array.h"
#include "core/leaf.h"

namespace lamina {

struct ExecutableObject;

// The number of the GPU whose memory this is; -1 for the host's.
int device_number(const Buffer* buffer);

// The content in memory of the host, there when this returns: the buffer itself, or a copy. Null
// with a Python error set.
Ref<Buffer> on_host(Buffer* buffer);

// Whether nothing is known to have gone wrong with what computes the content. False with a Python
// error set.
bool check_not_failed(const Buffer* buffer);

// Gives memory of other libraries back that the buffer's GPU no longer uses.
void drop_retired(const Buffer* buffer);

// Begins the copy that on_host would make. False with a Python error set.
bool begin_host_copy(Buffer* buffer);

// A copy in the memory of a GPU. Null with a Python error set.
Ref<Buffer> to_device(Buffer* buffer, int number);

// Lets the array be in the memory of a GPU, where it is not; its copy on the host stays at hand.
bool move_to_device(ArrayObject* array, int number);

// A copy of an array that is on a GPU, there too.
PyObject* copy_on_device(ArrayObject* array);

// Runs a program for a GPU. As `execute`, which calls it.
bool execute_on_device(ExecutableObject* executable, const Leaf* leaves, size_t count,
                       std::vector<Ref<Buffer>>* results);

// Sets the Python error for the exception being handled, from code about CUDA.
void set_device_error();

}  // namespace lamina
