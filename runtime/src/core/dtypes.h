// dtypes.h -- the element types an array can have, numbered, and their NumPy descriptors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/numpy_api.h"
#include "core/shared.h"

namespace lamina {

// An index into the table of dtypes; kNoDtype where NumPy's type is none of ours.
using Dtype = uint8_t;
inline constexpr Dtype kNoDtype = 0xff;

// The types that scalars of Python and the x64 rule need by name; the table holds more.
enum : Dtype {
  kBool,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUint8,
  kUint16,
  kUint32,
  kUint64,
  kFloat16,
  kFloat32,
  kFloat64,
  kComplex64,
  kComplex128,
  kFirstExtended,
};

// Fills the table from numpy and ml_dtypes. Sets a Python error and gives false when it can't.
bool init_dtypes();

// kNoDtype for byte-swapped, structured, object and string types.
Dtype dtype_of(PyArray_Descr* descr);
// Of any Python object that numpy.dtype() takes; sets TypeError and gives kNoDtype otherwise.
Dtype dtype_from_object(PyObject* object);

// How many types there are: they are numbered from 0.
LAMINA_SHARED int dtype_count();
PyArray_Descr* descr_of(Dtype dtype);  // borrowed
LAMINA_SHARED const char* name_of(Dtype dtype);
LAMINA_SHARED size_t itemsize_of(Dtype dtype);
// Without x64, 64-bit types stand for their 32-bit counterparts.
Dtype canonical(Dtype dtype, bool x64);

// "float32[2,3]"
LAMINA_SHARED std::string describe(Dtype dtype, const int64_t* dims, int ndim);

// Product of dims times the item size; -1 when it does not fit in 63 bits.
LAMINA_SHARED int64_t checked_bytes(Dtype dtype, const int64_t* dims, int ndim);

}  // namespace lamina
