// array.h -- ArrayBase, the CPython type behind lamina.Array.
#pragma once

#include "core/buffer.h"
#include "core/dtypes.h"
#include "core/python.h"

namespace lamina {

struct ArrayObject {
  PyObject_HEAD Buffer* buffer;  // null once deleted, and while only the shards are there
  PyObject* weak_references;
  PyObject* shape;     // tuple, made on first use
  PyObject* aval;      // the frontend's cache, never read here
  PyObject* sharding;  // where the user or a computation placed it; null: nowhere in particular
  PyObject* shards;    // a list of Arrays, one for each device of the sharding; null: not split
  int64_t* dims;       // inline_dims, or a block of its own for higher ranks
  Dtype dtype;
  uint8_t ndim;
  bool weak_type;
  int64_t inline_dims[4];
};

// Adds ArrayBase and Buffer to the module. False with a Python error set.
bool init_array(PyObject* module);

// C++ makes instances of `type` (a subclass of ArrayBase without state of its own) from now on.
bool set_array_type(PyObject* type);

extern PyTypeObject* array_base_type;
extern PyTypeObject* array_type;

inline bool is_array(PyObject* object) {
  return Py_TYPE(object) == array_type || PyObject_TypeCheck(object, array_base_type);
}

// A new Array; the reference to the buffer is taken over in any case. `shape` is an optional tuple
// of the dims, to share.
PyObject* make_array(Ref<Buffer> buffer, Dtype dtype, const int64_t* dims, int ndim, bool weak_type,
                     PyObject* shape = nullptr);

// Pool memory for an array; null with MemoryError set where there is none.
Ref<Buffer> allocate_array(Dtype dtype, const int64_t* dims, int ndim);

// False with RuntimeError set where the array was deleted or donated. Puts the shards of an array
// together that has nothing else: afterwards there is a buffer.
bool check_alive(const ArrayObject* array);

// The content was deleted or donated.
void drop_content(ArrayObject* array);

// The same content under a sharding; or shards that have not been put together.
PyObject* place_array(ArrayObject* array, PyObject* sharding);
PyObject* make_sharded_array(PyObject* sharding, PyObject* shards, Dtype dtype, const int64_t* dims,
                             int ndim, bool weak_type);
// gather(array) -> an Array with the content of its shards.
void set_gather(PyObject* gather);
// The class of shardings that are one device, of which there is one object for each device.
extern PyTypeObject* single_device_type;
void set_single_device_type(PyObject* type);
// The sharding of arrays that nobody placed: of this thread, or of the process. None for none.
void set_default_sharding(PyObject* sharding, bool of_thread);

// Returns when the content is there; false with a Python error set.
bool wait_for_array(const ArrayObject* array, bool* interrupted = nullptr);

// A read-only ndarray on the array's memory. The array must be ready.
PyObject* numpy_view(ArrayObject* array);

// A Python handle that keeps a Buffer alive.
PyObject* make_buffer_handle(Ref<Buffer> buffer);

inline int64_t element_count(const ArrayObject* array) {
  int64_t count = 1;
  for (int i = 0; i < array->ndim; ++i) count *= array->dims[i];
  return count;
}

}  // namespace lamina
