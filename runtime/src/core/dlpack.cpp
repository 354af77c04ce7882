// dlpack.cpp -- see dlpack.h. The structs are DLPack's C ABI, versions 0.8 and 1.x.
#include "core/dlpack.h"

#include "cuda/array.h"
#include "cuda/device.h"

#include <cstring>
#include <memory>
#include <new>

namespace lamina {
namespace {

struct DLDevice {
  int32_t type;
  int32_t id;
};
constexpr int32_t kCpu = 1, kCuda = 2, kCudaManaged = 13;

struct DLDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};

struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};

struct DLManagedTensor {
  DLTensor tensor;
  void* context;
  void (*deleter)(DLManagedTensor*);
};

struct DLManagedTensorVersioned {
  uint32_t major, minor;
  void* context;
  void (*deleter)(DLManagedTensorVersioned*);
  uint64_t flags;
  DLTensor tensor;
};
constexpr uint64_t kReadOnly = 1;

// Type codes of DLPack.
enum : uint8_t {
  kDLInt = 0,
  kDLUint = 1,
  kDLFloat = 2,
  kDLBfloat = 4,
  kDLComplex = 5,
  kDLBool = 6
};

bool dlpack_type(Dtype dtype, DLDataType* out) {
  out->lanes = 1;
  out->bits = static_cast<uint8_t>(8 * itemsize_of(dtype));
  switch (dtype) {
    case kBool:
      out->code = kDLBool;
      return true;
    case kInt8:
    case kInt16:
    case kInt32:
    case kInt64:
      out->code = kDLInt;
      return true;
    case kUint8:
    case kUint16:
    case kUint32:
    case kUint64:
      out->code = kDLUint;
      return true;
    case kFloat16:
    case kFloat32:
    case kFloat64:
      out->code = kDLFloat;
      return true;
    case kComplex64:
    case kComplex128:
      out->code = kDLComplex;
      return true;
    default:
      break;
  }
  out->code = kDLBfloat;
  return std::strcmp(name_of(dtype), "bfloat16") == 0;
}

Dtype dtype_from_dlpack(const DLDataType& type) {
  if (type.lanes != 1) return kNoDtype;
  DLDataType known;
  for (Dtype dtype = kBool; dtype <= kFirstExtended; ++dtype) {  // bfloat16 is the first extended
    if (dlpack_type(dtype, &known) && known.code == type.code && known.bits == type.bits) {
      return dtype;
    }
  }
  return kNoDtype;
}

// What an exported tensor points at.
struct ExportedSizes {
  Ref<Buffer> buffer;
  int64_t shape[kMaxRank];
  int64_t strides[kMaxRank];
};

template <typename Managed>
void drop_exported(Managed* managed) {
  delete static_cast<ExportedSizes*>(managed->context);
  delete managed;
}

template <typename Managed>
PyObject* export_tensor(ArrayObject* array, const DLDataType& type, const char* name) {
  auto* managed = new (std::nothrow) Managed{};
  auto* sizes = new (std::nothrow) ExportedSizes;
  if (managed == nullptr || sizes == nullptr) {
    delete managed;
    delete sizes;
    return PyErr_NoMemory();
  }
  sizes->buffer = Ref<Buffer>::share(array->buffer);
  int64_t stride = 1;
  for (int i = array->ndim; i-- > 0;) {
    sizes->shape[i] = array->dims[i];
    sizes->strides[i] = stride;
    stride *= array->dims[i];
  }
  managed->context = sizes;
  managed->deleter = drop_exported<Managed>;
  const int number = device_number(array->buffer);
  const DLDevice device = number < 0 ? DLDevice{kCpu, 0} : DLDevice{kCuda, number};
  managed->tensor = {array->buffer->data(), device, array->ndim, type, sizes->shape,
                     sizes->strides,        0};
  PyObject* capsule = PyCapsule_New(managed, name, [](PyObject* unused) {
    PyObject *type, *value, *trace;  // of the error that a consumer may just raise
    PyErr_Fetch(&type, &value, &trace);
    // A consumer renames the capsule: only an unconsumed one still owns its tensor.
    if (void* tensor = PyCapsule_GetPointer(unused, PyCapsule_GetName(unused));
        tensor != nullptr && std::strncmp(PyCapsule_GetName(unused), "used_", 5) != 0) {
      auto* left = static_cast<Managed*>(tensor);
      left->deleter(left);
    }
    PyErr_Restore(type, value, trace);
  });
  if (capsule == nullptr) managed->deleter(managed);
  return capsule;
}

bool is_dense(const DLTensor& tensor) {
  if (tensor.strides == nullptr) return true;
  int64_t expected = 1;
  for (int i = tensor.ndim; i-- > 0;) {
    if (tensor.shape[i] != 1 && tensor.strides[i] != expected) return false;
    expected *= tensor.shape[i];
  }
  return true;
}

// A row-major copy of a strided tensor, made by NumPy.
Ref<Buffer> dense_copy(const DLTensor& tensor, Dtype dtype, void* data) {
  npy_intp dims[kMaxRank], strides[kMaxRank];
  for (int i = 0; i < tensor.ndim; ++i) {
    dims[i] = tensor.shape[i];
    strides[i] = tensor.strides[i] * static_cast<npy_intp>(itemsize_of(dtype));
  }
  Ref<Buffer> buffer = allocate_array(dtype, tensor.shape, tensor.ndim);
  if (!buffer) return {};
  const auto view = [&](void* memory, npy_intp* steps, int flags) {
    PyArray_Descr* descr = descr_of(dtype);
    Py_INCREF(descr);
    return Owned(PyArray_NewFromDescr(&PyArray_Type, descr, tensor.ndim, dims, steps, memory, flags,
                                      nullptr));
  };
  const Owned source = view(data, strides, 0);
  const Owned target = view(buffer->data(), nullptr, NPY_ARRAY_CARRAY);
  if (!source || !target ||
      PyArray_CopyInto(reinterpret_cast<PyArrayObject*>(target.get()),
                       reinterpret_cast<PyArrayObject*>(source.get())) != 0) {
    return {};
  }
  return buffer;
}

// The deleter may belong to Python code of the producer: it is called with the GIL.
template <typename Managed>
void drop_imported(void* context) {
  auto* managed = static_cast<Managed*>(context);
  if (managed->deleter == nullptr || !Py_IsInitialized()) return;
  const InNativeCode native;
  const PyGILState_STATE state = PyGILState_Ensure();
  managed->deleter(managed);
  PyGILState_Release(state);
}

// Memory of a producer that has let the calling thread's stream wait for its content. Where this
// throws, it is still the producer's.
Ref<Buffer> wrap_on_device(int number, void* data, size_t bytes, void (*drop)(void*),
                           void* context) {
  cuda::Device& device =
      unlocked([number]() -> cuda::Device& { return cuda::Device::get(number); });
  device.drop_retired();
  return unlocked([&] {
    const cuda::InContext current = device.enter();
    Ref<Buffer> buffer =
        device.wrap(reinterpret_cast<uintptr_t>(data), bytes, [](void*) {}, nullptr);
    Buffer* const filled[] = {buffer.get()};
    device.finish_with(device.stream(), filled, 1, "what another library computes");
    cuda::Memory* memory = cuda::memory_of(buffer.get());
    memory->drop = drop;
    memory->context = context;
    return buffer;
  });
}

template <typename Managed>
PyObject* import_tensor(PyObject* capsule, const char* name, const char* used_name) {
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  if (managed == nullptr) return nullptr;
  const DLTensor& tensor = managed->tensor;
  const bool on_gpu = tensor.device.type == kCuda || tensor.device.type == kCudaManaged;
  if (tensor.device.type != kCpu && !on_gpu) {
    PyErr_Format(PyExc_BufferError,
                 "[from_dlpack] the tensor is on device type %d, neither on the CPU nor on a GPU",
                 tensor.device.type);
    return nullptr;
  }
  const Dtype dtype = dtype_from_dlpack(tensor.dtype);
  if (dtype == kNoDtype || tensor.ndim > kMaxRank) {
    PyErr_Format(PyExc_BufferError,
                 "[from_dlpack] no array type for DLPack type code %d with %d bits, %d lanes",
                 tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes);
    return nullptr;
  }
  void* data = static_cast<char*>(tensor.data) + tensor.byte_offset;
  Ref<Buffer> buffer;
  const int64_t bytes = checked_bytes(dtype, tensor.shape, tensor.ndim);
  if (on_gpu) {
    if (!is_dense(tensor)) {
      PyErr_SetString(PyExc_BufferError,
                      "[from_dlpack] a tensor on a GPU must be dense and row-major: make it "
                      "contiguous first");
      return nullptr;
    }
    try {
      buffer = wrap_on_device(tensor.device.id, data, static_cast<size_t>(bytes),
                              drop_imported<Managed>, managed);
    } catch (...) {
      set_device_error();
      return nullptr;
    }
  } else if (is_dense(tensor)) {
    buffer = Ref<Buffer>::steal(
        Buffer::wrap(data, static_cast<size_t>(bytes), drop_imported<Managed>, managed));
  } else {
    buffer = dense_copy(tensor, dtype, data);
  }
  if (!buffer) return nullptr;
  PyObject* array = make_array(buffer, dtype, tensor.shape, tensor.ndim, false);
  if (PyCapsule_SetName(capsule, used_name) != 0) return nullptr;
  if (buffer->pooled()) drop_imported<Managed>(managed);
  return array;
}

}  // namespace

PyObject* to_dlpack(ArrayObject* array, bool versioned) {
  DLDataType type;
  if (!dlpack_type(array->dtype, &type)) {
    PyErr_Format(PyExc_BufferError, "DLPack has no type for %s", name_of(array->dtype));
    return nullptr;
  }
  if (device_number(array->buffer) < 0 && !wait_for_array(array)) return nullptr;
  if (!versioned) return export_tensor<DLManagedTensor>(array, type, "dltensor");
  PyObject* capsule = export_tensor<DLManagedTensorVersioned>(array, type, "dltensor_versioned");
  if (capsule != nullptr) {
    auto* managed =
        static_cast<DLManagedTensorVersioned*>(PyCapsule_GetPointer(capsule, "dltensor_versioned"));
    managed->major = 1;
    managed->minor = 0;
    managed->flags = kReadOnly;
  }
  return capsule;
}

PyObject* from_dlpack(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
    return import_tensor<DLManagedTensorVersioned>(capsule, "dltensor_versioned",
                                                   "used_dltensor_versioned");
  }
  if (PyCapsule_IsValid(capsule, "dltensor")) {
    return import_tensor<DLManagedTensor>(capsule, "dltensor", "used_dltensor");
  }
  PyErr_SetString(PyExc_TypeError, "[from_dlpack] not an unconsumed DLPack capsule");
  return nullptr;
}

}  // namespace lamina
