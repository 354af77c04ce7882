// leaf.cpp -- see leaf.h.
#include "core/leaf.h"

#include <cstring>

namespace lamina {
namespace {

static_assert(sizeof(npy_intp) == sizeof(int64_t), "ndarray shapes are read as int64");

PyArrayObject* ndarray(const Leaf& leaf) { return reinterpret_cast<PyArrayObject*>(leaf.object); }

template <typename T>
void store(void* out, T value) {
  std::memcpy(out, &value, sizeof value);
}

// Fills `data` with the content of an ndarray in row-major order, converted to `dtype`.
bool copy_ndarray(PyArrayObject* source, Dtype dtype, void* data) {
  if (PyArray_IS_C_CONTIGUOUS(source) && dtype_of(PyArray_DESCR(source)) == dtype) {
    const size_t bytes = static_cast<size_t>(PyArray_NBYTES(source));
    if (bytes >= (size_t{1} << 16)) {
      const WithoutGil unlocked;
      std::memcpy(data, PyArray_DATA(source), bytes);
    } else if (bytes > 0) {
      std::memcpy(data, PyArray_DATA(source), bytes);
    }
    return true;
  }
  PyArray_Descr* descr = descr_of(dtype);
  Py_INCREF(descr);
  const Owned target(PyArray_NewFromDescr(&PyArray_Type, descr, PyArray_NDIM(source),
                                          PyArray_DIMS(source), nullptr, data, NPY_ARRAY_CARRAY,
                                          nullptr));
  return target && PyArray_CopyInto(reinterpret_cast<PyArrayObject*>(target.get()), source) == 0;
}

Ref<Buffer> buffer_from_ndarray(PyArrayObject* source, Dtype dtype) {
  Ref<Buffer> buffer = allocate_array(dtype, PyArray_DIMS(source), PyArray_NDIM(source));
  if (buffer && !copy_ndarray(source, dtype, buffer->data())) return {};
  return buffer;
}

bool ndarray_leaf(PyObject* object, bool x64, Leaf* leaf) {
  auto* source = reinterpret_cast<PyArrayObject*>(object);
  const Dtype dtype = dtype_of(PyArray_DESCR(source));
  if (dtype == kNoDtype) return false;
  leaf->kind = LeafKind::kNdarray;
  leaf->dtype = canonical(dtype, x64);
  leaf->weak_type = false;
  leaf->ndim = static_cast<uint8_t>(PyArray_NDIM(source));
  leaf->dims = PyArray_DIMS(source);
  return true;
}

// A float, an int or a complex, of weak type.
bool number_leaf(PyObject* object, bool x64, Leaf* leaf) {
  if (PyFloat_Check(object)) {
    leaf->kind = LeafKind::kFloat;
    leaf->dtype = x64 ? kFloat64 : kFloat32;
  } else if (PyLong_Check(object)) {
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (overflow != 0 || (!x64 && value != static_cast<int32_t>(value))) return false;
    leaf->kind = LeafKind::kInt;
    leaf->dtype = x64 ? kInt64 : kInt32;
  } else {
    leaf->kind = LeafKind::kComplex;
    leaf->dtype = x64 ? kComplex128 : kComplex64;
  }
  return true;
}

}  // namespace

bool classify(PyObject* object, bool x64, Leaf* leaf) {
  leaf->object = object;
  PyTypeObject* type = Py_TYPE(object);
  if (is_array(object)) {
    const auto* array = reinterpret_cast<ArrayObject*>(object);
    leaf->kind = LeafKind::kArray;
    leaf->dtype = array->dtype;
    leaf->weak_type = array->weak_type;
    leaf->ndim = array->ndim;
    leaf->dims = array->dims;
    return true;
  }
  if (type == &PyArray_Type) return ndarray_leaf(object, x64, leaf);
  leaf->ndim = 0;
  leaf->dims = nullptr;
  leaf->weak_type = true;
  if (type == &PyFloat_Type || type == &PyLong_Type || type == &PyComplex_Type) {
    return number_leaf(object, x64, leaf);
  }
  if (type == &PyBool_Type) {
    leaf->kind = LeafKind::kBool;
    leaf->dtype = kBool;
    leaf->weak_type = false;
    return true;
  }
  if (PyArray_IsScalar(object, Generic)) {
    PyArray_Descr* descr = PyArray_DescrFromScalar(object);
    const Dtype dtype = descr == nullptr ? kNoDtype : dtype_of(descr);
    Py_XDECREF(descr);
    PyErr_Clear();
    if (dtype == kNoDtype) return false;
    leaf->kind = LeafKind::kNumpyScalar;
    leaf->dtype = canonical(dtype, x64);
    leaf->weak_type = false;
    return true;
  }
  return false;
}

bool classify_subclass(PyObject* object, bool x64, Leaf* leaf) {
  leaf->object = object;
  if (PyArray_Check(object)) {
    return !PyObject_HasAttrString(object, "mask") && ndarray_leaf(object, x64, leaf);
  }
  leaf->ndim = 0;
  leaf->dims = nullptr;
  leaf->weak_type = true;
  const bool number = PyFloat_Check(object) || PyLong_Check(object) || PyComplex_Check(object);
  return number && number_leaf(object, x64, leaf);
}

void write_scalar(const Leaf& leaf, void* out) {
  switch (leaf.kind) {
    case LeafKind::kBool:
      store(out, static_cast<uint8_t>(leaf.object == Py_True));
      return;
    case LeafKind::kInt: {
      const long long value = PyLong_AsLongLong(leaf.object);
      if (leaf.dtype == kInt64) return store(out, static_cast<int64_t>(value));
      return store(out, static_cast<int32_t>(value));
    }
    case LeafKind::kFloat: {
      const double value = PyFloat_AS_DOUBLE(leaf.object);
      if (leaf.dtype == kFloat64) return store(out, value);
      return store(out, static_cast<float>(value));
    }
    case LeafKind::kComplex: {
      const Py_complex value = PyComplex_AsCComplex(leaf.object);
      if (leaf.dtype == kComplex128) return store(out, std::complex(value.real, value.imag));
      return store(
          out, std::complex<float>(static_cast<float>(value.real), static_cast<float>(value.imag)));
    }
    default:
      return;
  }
}

void* borrowed_data(const Leaf& leaf) {
  if (leaf.kind != LeafKind::kNdarray) return nullptr;
  PyArrayObject* source = ndarray(leaf);
  const bool readable = PyArray_IS_C_CONTIGUOUS(source) && PyArray_ISALIGNED(source) &&
                        dtype_of(PyArray_DESCR(source)) == leaf.dtype;
  return readable ? PyArray_DATA(source) : nullptr;
}

Ref<Buffer> leaf_buffer(const Leaf& leaf) {
  if (leaf.kind == LeafKind::kArray) {
    const auto* array = reinterpret_cast<ArrayObject*>(leaf.object);
    if (!check_alive(array)) return {};
    return Ref<Buffer>::share(array->buffer);
  }
  if (leaf.kind == LeafKind::kNdarray) return buffer_from_ndarray(ndarray(leaf), leaf.dtype);
  if (leaf.kind == LeafKind::kNumpyScalar) {
    const Owned source(PyArray_FromScalar(leaf.object, nullptr));
    if (!source) return {};
    return buffer_from_ndarray(reinterpret_cast<PyArrayObject*>(source.get()), leaf.dtype);
  }
  Ref<Buffer> buffer = allocate_array(leaf.dtype, nullptr, 0);
  if (buffer) write_scalar(leaf, buffer->data());
  return buffer;
}

PyObject* leaf_array(const Leaf& leaf) {
  if (leaf.kind == LeafKind::kArray) return Py_NewRef(leaf.object);
  Ref<Buffer> buffer = leaf_buffer(leaf);
  if (!buffer) return nullptr;
  return make_array(std::move(buffer), leaf.dtype, leaf.dims, leaf.ndim, leaf.weak_type);
}

PyObject* array_from_ndarray(PyObject* object, Dtype dtype, bool weak_type) {
  const Owned held(PyArray_FromAny(object, nullptr, 0, 0, 0, nullptr));
  if (!held) return nullptr;
  auto* source = reinterpret_cast<PyArrayObject*>(held.get());
  if (dtype == kNoDtype) {
    PyArray_Descr* descr = PyArray_DESCR(source);
    if (!PyArray_ISNBO(descr->byteorder))
      descr = PyArray_DescrNewByteorder(descr, NPY_NATIVE);
    else
      Py_INCREF(descr);
    dtype = descr == nullptr ? kNoDtype : dtype_from_object(reinterpret_cast<PyObject*>(descr));
    Py_XDECREF(descr);
    if (dtype == kNoDtype) return nullptr;
  }
  Ref<Buffer> buffer = buffer_from_ndarray(source, dtype);
  if (!buffer) return nullptr;
  return make_array(std::move(buffer), dtype, PyArray_DIMS(source), PyArray_NDIM(source),
                    weak_type);
}

}  // namespace lamina
