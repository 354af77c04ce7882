// leaf.h -- what jit accepts as an argument: its type, and its way into array memory.
#pragma once

#include <complex>

#include "core/array.h"

namespace lamina {

enum class LeafKind : uint8_t { kArray, kNdarray, kNumpyScalar, kBool, kInt, kFloat, kComplex };

// An argument and the type a trace sees for it. `object` and `dims` are borrowed.
struct Leaf {
  PyObject* object = nullptr;
  const int64_t* dims = nullptr;
  LeafKind kind = LeafKind::kArray;
  Dtype dtype = kNoDtype;
  uint8_t ndim = 0;
  bool weak_type = false;
};

// False (no error set) for an object that is none of the kinds, and for a Python int that does not
// fit its weak type.
bool classify(PyObject* object, bool x64, Leaf* leaf);

// The same for objects of classes derived from those kinds' (memory maps, enumerations), unless
// they have a mask. Apart, because a class that is registered as a tree is one first.
bool classify_subclass(PyObject* object, bool x64, Leaf* leaf);

// The sharding under which somebody placed the array that the leaf is, in the host's memory; null
// for none. What lies on a GPU runs there whoever put it there: that is part of the signature.
inline PyObject* placement_of(const Leaf& leaf) {
  if (leaf.kind != LeafKind::kArray) return nullptr;
  const auto* array = reinterpret_cast<const ArrayObject*>(leaf.object);
  const bool on_host = array->buffer == nullptr || array->buffer->device_memory() == nullptr;
  return on_host ? array->sharding : nullptr;
}

// The same, where that is one device: results of calls with it are there, too. Over a mesh the
// program says where they are.
inline PyObject* single_placement_of(const Leaf& leaf) {
  PyObject* const placement = placement_of(leaf);
  return placement != nullptr && Py_TYPE(placement) == single_device_type ? placement : nullptr;
}

// The most bytes write_scalar writes.
inline constexpr size_t kScalarBytes = sizeof(std::complex<double>);

// Writes the value of a leaf that is a Python scalar. Cannot fail after classify.
void write_scalar(const Leaf& leaf, void* out);

// The memory of an ndarray that a kernel could read in place, or null.
void* borrowed_data(const Leaf& leaf);

// A Buffer with the leaf's content: an Array's own, or a copy. Null with a Python error set.
Ref<Buffer> leaf_buffer(const Leaf& leaf);

// An Array for the leaf: itself where it is one.
PyObject* leaf_array(const Leaf& leaf);

// A new Array with the content of an ndarray, of dtype `dtype` (kNoDtype: as it is).
PyObject* array_from_ndarray(PyObject* ndarray, Dtype dtype, bool weak_type);

}  // namespace lamina
