// dtypes.cpp -- see dtypes.h.
#include "core/dtypes.h"

#include <array>
#include <vector>

#include "core/python.h"

namespace lamina {
namespace {

constexpr const char* kNumpyNames[] = {
    "bool",   "int8",   "int16",   "int32",   "int64",   "uint8",     "uint16",
    "uint32", "uint64", "float16", "float32", "float64", "complex64", "complex128",
};
constexpr const char* kExtendedNames[] = {
    "bfloat16",       "float8_e3m4",
    "float8_e4m3",    "float8_e4m3b11fnuz",
    "float8_e4m3fn",  "float8_e4m3fnuz",
    "float8_e5m2",    "float8_e5m2fnuz",
    "float8_e8m0fnu", "float4_e2m1fn",
    "float6_e2m3fn",  "float6_e3m2fn",
    "int2",           "int4",
    "uint2",          "uint4",
    "int1",           "uint1",
};

struct Entry {
  const char* name;
  PyArray_Descr* descr;
  size_t itemsize;
};

std::vector<Entry> table;
std::array<Dtype, NPY_NTYPES_LEGACY> by_type_number;

bool add(const char* name, PyObject* module) {
  const Owned scalar_type(PyObject_GetAttrString(module, name));
  if (!scalar_type) return false;
  PyArray_Descr* descr = nullptr;
  if (PyArray_DescrConverter(scalar_type.get(), &descr) != NPY_SUCCEED) return false;
  table.push_back({name, descr, static_cast<size_t>(PyDataType_ELSIZE(descr))});
  return true;
}

}  // namespace

bool init_dtypes() {
  if (!table.empty()) return true;
  const Owned numpy(PyImport_ImportModule("numpy"));
  const Owned ml_dtypes(PyImport_ImportModule("ml_dtypes"));
  if (!numpy || !ml_dtypes) return false;
  by_type_number.fill(kNoDtype);
  for (const char* name : kNumpyNames) {
    if (!add(name, numpy.get())) return false;
    by_type_number[table.back().descr->type_num] = static_cast<Dtype>(table.size() - 1);
  }
  // NumPy has two names for one 64-bit integer; either may be the one called int64.
  by_type_number[NPY_LONG] = by_type_number[NPY_LONGLONG] = kInt64;
  by_type_number[NPY_ULONG] = by_type_number[NPY_ULONGLONG] = kUint64;
  for (const char* name : kExtendedNames) {
    if (PyObject_HasAttrString(ml_dtypes.get(), name) && !add(name, ml_dtypes.get())) return false;
  }
  return true;
}

Dtype dtype_of(PyArray_Descr* descr) {
  const int number = descr->type_num;
  if (!PyArray_ISNBO(descr->byteorder)) return kNoDtype;
  if (number < NPY_NTYPES_LEGACY) return by_type_number[number];
  for (size_t i = kFirstExtended; i < table.size(); ++i) {
    if (table[i].descr->type_num == number) return static_cast<Dtype>(i);
  }
  return kNoDtype;
}

Dtype dtype_from_object(PyObject* object) {
  PyArray_Descr* descr = nullptr;
  if (PyArray_DescrConverter(object, &descr) != NPY_SUCCEED) return kNoDtype;
  const Dtype dtype = dtype_of(descr);
  if (dtype == kNoDtype) {
    PyErr_Format(PyExc_TypeError, "arrays cannot have elements of type %S", descr);
  }
  Py_DECREF(descr);
  return dtype;
}

int dtype_count() { return static_cast<int>(table.size()); }
PyArray_Descr* descr_of(Dtype dtype) { return table[dtype].descr; }
const char* name_of(Dtype dtype) { return table[dtype].name; }
size_t itemsize_of(Dtype dtype) { return table[dtype].itemsize; }

Dtype canonical(Dtype dtype, bool x64) {
  if (x64) return dtype;
  switch (dtype) {
    case kInt64:
      return kInt32;
    case kUint64:
      return kUint32;
    case kFloat64:
      return kFloat32;
    case kComplex128:
      return kComplex64;
    default:
      return dtype;
  }
}

std::string describe(Dtype dtype, const int64_t* dims, int ndim) {
  std::string text = name_of(dtype);
  text += '[';
  for (int i = 0; i < ndim; ++i) {
    if (i > 0) text += ',';
    text += std::to_string(dims[i]);
  }
  return text + ']';
}

int64_t checked_bytes(Dtype dtype, const int64_t* dims, int ndim) {
  int64_t bytes = static_cast<int64_t>(itemsize_of(dtype));
  bool overflow = false, empty = false;
  for (int i = 0; i < ndim; ++i) {
    if (dims[i] == 0) empty = true;
    if (!empty && __builtin_mul_overflow(bytes, dims[i], &bytes)) overflow = true;
  }
  if (empty) return 0;
  return overflow ? -1 : bytes;
}

}  // namespace lamina
