// array.cpp -- see array.h.
#include "cuda/array.h"

#include "core/callback.h"
#include "cuda/device.h"

namespace lamina {

int device_number(const Buffer* buffer) {
  const cuda::Memory* memory = buffer == nullptr ? nullptr : cuda::memory_of(buffer);
  return memory == nullptr ? -1 : memory->device->number();
}

void set_device_error() {
  try {
    throw;
  } catch (const OutOfMemory& error) {
    PyErr_Format(PyExc_MemoryError, "out of memory: %zu bytes on the GPU", error.bytes);
  } catch (const cuda::CudaError& error) {
    if (error.code == cuda::kOutOfMemory) {
      PyErr_Format(PyExc_MemoryError, "out of memory on the GPU: %s", error.what());
    } else {
      raise_run_error({error.what(), nullptr, nullptr});
    }
  } catch (const std::out_of_range& error) {
    PyErr_SetString(PyExc_ValueError, error.what());
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
}

namespace {

// Nothing but driver calls: others may run Python meanwhile.
template <typename Work>
Ref<Buffer> without_gil(const Work& work) {
  std::exception_ptr failure;
  Ref<Buffer> result;
  {
    const WithoutGil unlocked;
    try {
      result = work();
    } catch (...) {
      failure = std::current_exception();
    }
  }
  if (!failure) return result;
  try {
    std::rethrow_exception(failure);
  } catch (...) {
    set_device_error();
  }
  return {};
}

Ref<Buffer> download(Buffer* buffer) {
  cuda::Device* device = cuda::memory_of(buffer)->device;
  return without_gil([&] { return device->download(buffer); });
}

}  // namespace

namespace {

// Before a copy of what a GPU computes. What computes it says what went wrong; the copy would only
// repeat the driver's word. False with that as a Python error.
bool may_be_copied(const Buffer* buffer) {
  Completion* const pending = buffer->pending();
  const bool is_waited_for =
      pending != nullptr && pending->asked() != nullptr && pending->asked()->may_fail_alone();
  return pending == nullptr || !(is_waited_for || buffer->ready()) || wait_for(pending);
}

}  // namespace

Ref<Buffer> on_host(Buffer* buffer) {
  if (cuda::memory_of(buffer) == nullptr) return Ref<Buffer>::share(buffer);
  if (!may_be_copied(buffer)) return {};
  Ref<Buffer> host = download(buffer);
  if (host && host->pending() != nullptr && !wait_for(host->pending())) {
    if (buffer->pending() != nullptr && buffer->pending()->done() && buffer->pending()->failed()) {
      PyErr_Clear();
      wait_for(buffer->pending());
    }
    return {};
  }
  return host;
}

bool check_not_failed(const Buffer* buffer) {
  Completion* pending = buffer->pending();
  if (pending == nullptr || !pending->done() || !pending->failed()) return true;
  return wait_for(pending);
}

void drop_retired(const Buffer* buffer) {
  if (const cuda::Memory* memory = cuda::memory_of(buffer)) memory->device->drop_retired();
}

bool begin_host_copy(Buffer* buffer) {
  return cuda::memory_of(buffer) == nullptr || static_cast<bool>(download(buffer));
}

Ref<Buffer> to_device(Buffer* buffer, int number) {
  if (device_number(buffer) == number) return Ref<Buffer>::share(buffer);
  if (cuda::memory_of(buffer) != nullptr) {
    if (!may_be_copied(buffer)) return {};
    return without_gil([&] { return cuda::Device::get(number).copy_from_other(buffer); });
  }
  const Ref<Buffer> host = on_host(buffer);
  if (!host || (host->pending() != nullptr && !wait_for(host->pending()))) return {};
  return without_gil([&] { return cuda::Device::get(number).upload(host->data(), host->bytes()); });
}

bool move_to_device(ArrayObject* array, int number) {
  if (!check_alive(array)) return false;
  if (device_number(array->buffer) == number) return true;
  Ref<Buffer> moved = to_device(array->buffer, number);
  if (!moved) return false;
  if (cuda::memory_of(array->buffer) == nullptr) {
    cuda::memory_of(moved.get())->host = Ref<Buffer>::share(array->buffer);
  }
  Buffer* old = std::exchange(array->buffer, moved.detach());
  old->release();
  return true;
}

PyObject* copy_on_device(ArrayObject* array) {
  if (!check_alive(array)) return nullptr;
  const Ref<Buffer> held = Ref<Buffer>::share(array->buffer);
  cuda::Device* device = cuda::memory_of(held.get())->device;
  Ref<Buffer> copy = without_gil([&] { return device->copy(held.get()); });
  if (!copy) return nullptr;
  return make_array(std::move(copy), array->dtype, array->dims, array->ndim, array->weak_type,
                    array->shape);
}

}  // namespace lamina
