// array.cpp -- see array.h.
#include "core/array.h"

#include "cuda/array.h"

#include <structmember.h>

#include <cstdio>
#include <cstring>
#include <new>

namespace lamina {

PyTypeObject* array_base_type = nullptr;
PyTypeObject* array_type = nullptr;
PyTypeObject* single_device_type = nullptr;

namespace {

PyTypeObject* buffer_type = nullptr;
PyObject* gather_function = nullptr;
PyObject* process_sharding = nullptr;
thread_local PyObject* thread_sharding = nullptr;

ArrayObject* cast(PyObject* self) { return reinterpret_cast<ArrayObject*>(self); }

struct BufferObject {
  PyObject_HEAD Buffer* buffer;
};

// --- ArrayBase: life -----------------------------------------------------------------------------

void array_dealloc(PyObject* self) {
  ArrayObject* array = cast(self);
  if (array->weak_references != nullptr) PyObject_ClearWeakRefs(self);
  if (array->buffer != nullptr) array->buffer->release();
  Py_XDECREF(array->shape);
  Py_XDECREF(array->aval);
  Py_XDECREF(array->sharding);
  Py_XDECREF(array->shards);
  if (array->dims != array->inline_dims) PyMem_Free(array->dims);
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* array_new(PyTypeObject* type, PyObject*, PyObject*) {
  PyErr_Format(PyExc_TypeError, "%s has no constructor: use the functions array or asarray",
               type->tp_name);
  return nullptr;
}

PyObject* shape_of(ArrayObject* array) {
  if (array->shape == nullptr) array->shape = dims_tuple(array->dims, array->ndim);
  return array->shape;
}

// --- ArrayBase: attributes -----------------------------------------------------------------------

PyObject* get_shape(PyObject* self, void*) { return Py_XNewRef(shape_of(cast(self))); }
PyObject* get_dtype(PyObject* self, void*) {
  return Py_NewRef(reinterpret_cast<PyObject*>(descr_of(cast(self)->dtype)));
}
PyObject* get_ndim(PyObject* self, void*) { return PyLong_FromLong(cast(self)->ndim); }
PyObject* get_size(PyObject* self, void*) { return PyLong_FromLongLong(element_count(cast(self))); }
PyObject* get_itemsize(PyObject* self, void*) {
  return PyLong_FromSize_t(itemsize_of(cast(self)->dtype));
}
PyObject* get_nbytes(PyObject* self, void*) {
  return PyLong_FromLongLong(element_count(cast(self)) *
                             static_cast<int64_t>(itemsize_of(cast(self)->dtype)));
}
PyObject* get_weak_type(PyObject* self, void*) { return PyBool_FromLong(cast(self)->weak_type); }
PyObject* get_aval_cache(PyObject* self, void*) {
  PyObject* aval = cast(self)->aval;
  return Py_NewRef(aval != nullptr ? aval : Py_None);
}
int set_aval_cache(PyObject* self, PyObject* value, void*) {
  Py_XSETREF(cast(self)->aval, Py_XNewRef(value));
  return 0;
}
PyObject* or_none(PyObject* object) { return Py_NewRef(object != nullptr ? object : Py_None); }
PyObject* get_sharding(PyObject* self, void*) { return or_none(cast(self)->sharding); }
PyObject* get_shards(PyObject* self, void*) { return or_none(cast(self)->shards); }
int set_shards(PyObject* self, PyObject* value, void*) {
  Py_XSETREF(cast(self)->shards, value == Py_None ? nullptr : Py_XNewRef(value));
  return 0;
}
PyObject* get_device_number(PyObject* self, void*) {
  const int number = device_number(cast(self)->buffer);
  return number < 0 ? Py_NewRef(Py_None) : PyLong_FromLong(number);
}
PyObject* get_buffer_handle(PyObject* self, void*) {
  if (!check_alive(cast(self))) return nullptr;
  return make_buffer_handle(Ref<Buffer>::share(cast(self)->buffer));
}

PyGetSetDef array_getset[] = {
    {"shape", get_shape, nullptr, "Sizes of the dimensions, a tuple of int.", nullptr},
    {"dtype", get_dtype, nullptr, "Element type, a numpy.dtype.", nullptr},
    {"ndim", get_ndim, nullptr, "Number of dimensions.", nullptr},
    {"size", get_size, nullptr, "Number of elements.", nullptr},
    {"itemsize", get_itemsize, nullptr, "Bytes of one element.", nullptr},
    {"nbytes", get_nbytes, nullptr, "Bytes of all elements.", nullptr},
    {"weak_type", get_weak_type, nullptr, "Whether the dtype yields to others in promotion.",
     nullptr},
    {"aval_cache", get_aval_cache, set_aval_cache, "A slot for the frontend; None at first.",
     nullptr},
    {"placement", get_sharding, nullptr, "The sharding it was given, or None.", nullptr},
    {"shards", get_shards, set_shards, "Its parts, an Array for each device, or None.", nullptr},
    {"device_number", get_device_number, nullptr, "Of the GPU whose memory it is in, or None.",
     nullptr},
    {"buffer", get_buffer_handle, nullptr, "Handle that keeps the memory alive.", nullptr},
    {nullptr}};

// --- ArrayBase: methods --------------------------------------------------------------------------

PyObject* is_deleted(PyObject* self, PyObject*) {
  return PyBool_FromLong(cast(self)->buffer == nullptr && cast(self)->shards == nullptr);
}

PyObject* delete_array(PyObject* self, PyObject*) {
  drop_content(cast(self));
  Py_RETURN_NONE;
}

// Whether only the parts of an array are there, which need not be put together to be waited for.
bool is_in_parts(PyObject* self) {
  return cast(self)->buffer == nullptr && cast(self)->shards != nullptr;
}

PyObject* block_until_ready(PyObject* self, PyObject*) {
  if (is_in_parts(self)) {
    const Owned parts(PySequence_Fast(cast(self)->shards, "the parts of an array are a list"));
    if (!parts) return nullptr;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(parts.get()); ++i) {
      if (!wait_for_array(cast(PySequence_Fast_GET_ITEM(parts.get(), i)))) return nullptr;
    }
    return Py_NewRef(self);
  }
  return wait_for_array(cast(self)) ? Py_NewRef(self) : nullptr;
}

PyObject* is_ready(PyObject* self, PyObject*) {
  if (is_in_parts(self)) Py_RETURN_TRUE;  // programs on several devices return when they are done
  if (!check_alive(cast(self))) return nullptr;
  return PyBool_FromLong(cast(self)->buffer->ready());
}

PyObject* unsafe_buffer_pointer(PyObject* self, PyObject*) {
  if (!check_alive(cast(self))) return nullptr;
  return PyLong_FromVoidPtr(cast(self)->buffer->data());
}

PyObject* array_numpy_view(PyObject* self, PyObject*) {
  if (raise_kept_interrupt()) return nullptr;
  return wait_for_array(cast(self)) ? numpy_view(cast(self)) : nullptr;
}

PyMethodDef array_methods[] = {
    {"is_deleted", is_deleted, METH_NOARGS, "Whether delete() or a donation took the content."},
    {"delete", delete_array, METH_NOARGS, "Gives the memory back; later uses raise RuntimeError."},
    {"block_until_ready", block_until_ready, METH_NOARGS,
     "Returns self once it is computed; raises what the computation failed with."},
    {"is_ready", is_ready, METH_NOARGS, "Whether block_until_ready would return at once."},
    {"unsafe_buffer_pointer", unsafe_buffer_pointer, METH_NOARGS,
     "Address of the first element. Valid while the array lives; ready or not."},
    {"numpy_view", array_numpy_view, METH_NOARGS,
     "Read-only ndarray on the same memory. Waits until it is computed."},
    {nullptr}};

PyMemberDef array_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(ArrayObject, weak_references), READONLY},
    {nullptr}};

// --- ArrayBase: buffer protocol ------------------------------------------------------------------

// The struct-module codes of the types it has; others have no code and are refused.
const char* format_of(Dtype dtype) {
  static const char* const codes[] = {"?", "b", "h", "i", "q", "B",  "H",
                                      "I", "Q", "e", "f", "d", "Zf", "Zd"};
  return dtype < kFirstExtended ? codes[dtype] : nullptr;
}

// What an export needs beyond the array: a reference to the memory (a donation during the export
// must not reuse it), and sizes of Python's type.
struct Export {
  Ref<Buffer> buffer;
  Py_ssize_t shape[kMaxRank];
  Py_ssize_t strides[kMaxRank];
};

int array_getbuffer(PyObject* self, Py_buffer* view, int flags) {
  ArrayObject* array = cast(self);
  view->obj = nullptr;
  const char* format = format_of(array->dtype);
  if (format == nullptr) {
    PyErr_Format(PyExc_BufferError, "the buffer protocol has no code for %s; use numpy.asarray",
                 name_of(array->dtype));
    return -1;
  }
  if ((flags & PyBUF_WRITABLE) != 0) {
    PyErr_SetString(PyExc_BufferError, "arrays are immutable: no writable buffer");
    return -1;
  }
  bool interrupted = false;
  if (!wait_for_array(array, &interrupted)) {
    if (interrupted) keep_interrupt();
    return -1;
  }
  auto* exported = new (std::nothrow) Export;
  if (exported == nullptr) {
    PyErr_NoMemory();
    return -1;
  }
  if (!(exported->buffer = on_host(array->buffer))) {
    delete exported;
    return -1;
  }
  view->itemsize = static_cast<Py_ssize_t>(itemsize_of(array->dtype));
  view->len = view->itemsize;
  for (int i = array->ndim; i-- > 0;) {
    exported->shape[i] = array->dims[i];
    exported->strides[i] = view->len;
    view->len *= array->dims[i];
  }
  view->buf = exported->buffer->data();
  view->obj = Py_NewRef(self);
  view->readonly = 1;
  view->ndim = array->ndim;
  view->format = (flags & PyBUF_FORMAT) != 0 ? const_cast<char*>(format) : nullptr;
  view->shape = (flags & PyBUF_ND) != 0 ? exported->shape : nullptr;
  view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? exported->strides : nullptr;
  view->suboffsets = nullptr;
  view->internal = exported;
  return 0;
}

void array_releasebuffer(PyObject*, Py_buffer* view) {
  delete static_cast<Export*>(view->internal);
}

PyType_Slot array_slots[] = {
    {Py_tp_doc, const_cast<char*>("An immutable array in memory of the runtime.")},
    {Py_tp_new, reinterpret_cast<void*>(array_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(array_dealloc)},
    {Py_tp_getset, array_getset},
    {Py_tp_methods, array_methods},
    {Py_tp_members, array_members},
    {Py_bf_getbuffer, reinterpret_cast<void*>(array_getbuffer)},
    {Py_bf_releasebuffer, reinterpret_cast<void*>(array_releasebuffer)},
    {0, nullptr}};

PyType_Spec array_spec = {"lamina.runtime._runtime.ArrayBase", sizeof(ArrayObject), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, array_slots};

// --- Buffer handle -------------------------------------------------------------------------------

Buffer* buffer_of(PyObject* self) { return reinterpret_cast<BufferObject*>(self)->buffer; }

void buffer_dealloc(PyObject* self) {
  buffer_of(self)->release();
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyGetSetDef buffer_getset[] = {
    {"nbytes", [](PyObject* self, void*) { return PyLong_FromSize_t(buffer_of(self)->bytes()); },
     nullptr, "Bytes of content.", nullptr},
    {"pointer", [](PyObject* self, void*) { return PyLong_FromVoidPtr(buffer_of(self)->data()); },
     nullptr, "Address of the content.", nullptr},
    {"owned", [](PyObject* self, void*) { return PyBool_FromLong(buffer_of(self)->pooled()); },
     nullptr, "Whether the memory is the pool's, not somebody else's.", nullptr},
    {"references",
     [](PyObject* self, void*) {
       return PyLong_FromLong(static_cast<long>(buffer_of(self)->refs()) - 1);
     },
     nullptr, "Holders of the memory besides this handle.", nullptr},
    {nullptr}};

PyType_Slot buffer_slots[] = {{Py_tp_doc, const_cast<char*>("Keeps the memory of an array alive.")},
                              {Py_tp_dealloc, reinterpret_cast<void*>(buffer_dealloc)},
                              {Py_tp_getset, buffer_getset},
                              {0, nullptr}};

PyType_Spec buffer_spec = {"lamina.runtime._runtime.Buffer", sizeof(BufferObject), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, buffer_slots};

}  // namespace

bool init_array(PyObject* module) {
  array_base_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&array_spec));
  buffer_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&buffer_spec));
  if (array_base_type == nullptr || buffer_type == nullptr) return false;
  array_type = array_base_type;
  return PyModule_AddType(module, array_base_type) == 0 &&
         PyModule_AddType(module, buffer_type) == 0;
}

bool set_array_type(PyObject* type) {
  auto* wanted = reinterpret_cast<PyTypeObject*>(type);
  if (!PyType_Check(type) || !PyType_IsSubtype(wanted, array_base_type) ||
      wanted->tp_dictoffset != 0 || wanted->tp_basicsize != array_base_type->tp_basicsize) {
    PyErr_SetString(PyExc_TypeError,
                    "set_array_type wants a subclass of ArrayBase with __slots__ = ()");
    return false;
  }
  array_type = reinterpret_cast<PyTypeObject*>(Py_NewRef(type));
  return true;
}

PyObject* make_array(Ref<Buffer> buffer, Dtype dtype, const int64_t* dims, int ndim, bool weak_type,
                     PyObject* shape) {
  PyObject* self = array_type->tp_alloc(array_type, 0);
  if (self == nullptr) return nullptr;
  ArrayObject* array = cast(self);
  array->dims = array->inline_dims;
  if (ndim > static_cast<int>(std::size(array->inline_dims))) {
    array->dims = static_cast<int64_t*>(PyMem_Malloc(ndim * sizeof(int64_t)));
    if (array->dims == nullptr) {
      array->dims = array->inline_dims;
      Py_DECREF(self);
      return PyErr_NoMemory();
    }
  }
  if (ndim > 0) std::memcpy(array->dims, dims, ndim * sizeof(int64_t));
  array->buffer = buffer.detach();
  array->shape = Py_XNewRef(shape);
  array->dtype = dtype;
  array->ndim = static_cast<uint8_t>(ndim);
  array->weak_type = weak_type;
  if (thread_sharding != nullptr || process_sharding != nullptr) {
    PyObject* sharding = thread_sharding != nullptr ? thread_sharding : process_sharding;
    if (sharding != Py_None) array->sharding = Py_NewRef(sharding);
  }
  return self;
}

// Lets an array have the same parts as another one, as arrays of its own: a donation of one array
// leaves the other.
static bool share_parts(ArrayObject* from, ArrayObject* to) {
  const Owned parts(PySequence_List(from->shards));
  if (!parts) return false;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(parts.get()); ++i) {
    ArrayObject* const part = cast(PyList_GET_ITEM(parts.get(), i));
    PyObject* const sharding = part->sharding == nullptr ? Py_None : part->sharding;
    PyObject* own = place_array(part, sharding);
    if (own == nullptr || PyList_SetItem(parts.get(), i, own) != 0) return false;
  }
  Py_XSETREF(to->shards, Py_NewRef(parts.get()));
  return true;
}

PyObject* place_array(ArrayObject* array, PyObject* sharding) {
  if (array->shards == nullptr && !check_alive(array)) return nullptr;
  PyObject* self = make_array(Ref<Buffer>::share(array->buffer), array->dtype, array->dims,
                              array->ndim, array->weak_type, array->shape);
  if (self == nullptr) return nullptr;
  Py_XSETREF(cast(self)->sharding, sharding == Py_None ? nullptr : Py_NewRef(sharding));
  if (array->buffer == nullptr && !share_parts(array, cast(self))) {
    Py_DECREF(self);
    return nullptr;
  }
  return self;
}

PyObject* make_sharded_array(PyObject* sharding, PyObject* shards, Dtype dtype, const int64_t* dims,
                             int ndim, bool weak_type) {
  PyObject* self = make_array({}, dtype, dims, ndim, weak_type);
  if (self == nullptr) return nullptr;
  Py_XSETREF(cast(self)->sharding, Py_NewRef(sharding));
  cast(self)->shards = Py_NewRef(shards);
  return self;
}

void set_gather(PyObject* gather) { Py_XSETREF(gather_function, Py_XNewRef(gather)); }

void set_single_device_type(PyObject* type) {
  Py_XSETREF(single_device_type, reinterpret_cast<PyTypeObject*>(Py_NewRef(type)));
}

void set_default_sharding(PyObject* sharding, bool of_thread) {
  Py_XSETREF(of_thread ? thread_sharding : process_sharding, Py_XNewRef(sharding));
}

void drop_content(ArrayObject* array) {
  if (Buffer* buffer = std::exchange(array->buffer, nullptr)) buffer->release();
  Py_CLEAR(array->shards);
}

Ref<Buffer> allocate_array(Dtype dtype, const int64_t* dims, int ndim) {
  const int64_t bytes = checked_bytes(dtype, dims, ndim);
  if (bytes < 0) {
    PyErr_Format(PyExc_MemoryError, "out of memory: the bytes of %s do not fit in 64 bits",
                 describe(dtype, dims, ndim).c_str());
    return {};
  }
  try {
    return Ref<Buffer>::steal(Buffer::allocate(static_cast<size_t>(bytes)));
  } catch (const OutOfMemory& error) {
    set_out_of_memory(error.bytes, describe(dtype, dims, ndim));
    return {};
  }
}

bool check_alive(const ArrayObject* array) {
  if (array->buffer != nullptr) return true;
  if (array->shards != nullptr && gather_function != nullptr) {
    auto* self = const_cast<ArrayObject*>(array);  // the value stays as it is
    const Owned whole(PyObject_CallOneArg(gather_function, reinterpret_cast<PyObject*>(self)));
    if (!whole) return false;
    if (self->buffer == nullptr)
      self->buffer = Ref<Buffer>::share(cast(whole.get())->buffer).detach();
    return true;
  }
  PyErr_Format(
      PyExc_RuntimeError,
      "Array has been deleted with shape=%s. A call that it was donated to took its memory "
      "(donate_argnums), or delete() was called: use what the call returned, or do not "
      "donate what is needed afterwards.",
      describe(array->dtype, array->dims, array->ndim).c_str());
  return false;
}

bool wait_for_array(const ArrayObject* array, bool* interrupted) {
  if (!check_alive(array)) return false;
  const auto buffer = Ref<Buffer>::share(array->buffer);
  if (buffer->pending() != nullptr && !wait_for(buffer->pending(), interrupted)) return false;
  drop_retired(buffer.get());
  return true;
}

PyObject* numpy_view(ArrayObject* array) {
  npy_intp dims[kMaxRank];
  for (int i = 0; i < array->ndim; ++i) dims[i] = array->dims[i];
  Ref<Buffer> buffer = on_host(array->buffer);
  if (!buffer) return nullptr;
  PyArray_Descr* descr = descr_of(array->dtype);
  Py_INCREF(descr);
  PyObject* view = PyArray_NewFromDescr(&PyArray_Type, descr, array->ndim, dims, nullptr,
                                        buffer->data(), NPY_ARRAY_CARRAY_RO, nullptr);
  if (view == nullptr) return nullptr;
  PyObject* handle = make_buffer_handle(std::move(buffer));
  if (handle == nullptr ||
      PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(view), handle) != 0) {
    Py_DECREF(view);
    return nullptr;
  }
  return view;
}

PyObject* make_buffer_handle(Ref<Buffer> buffer) {
  PyObject* self = buffer_type->tp_alloc(buffer_type, 0);
  if (self != nullptr) reinterpret_cast<BufferObject*>(self)->buffer = buffer.detach();
  return self;
}

}  // namespace lamina
