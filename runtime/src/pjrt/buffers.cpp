// buffers.cpp -- see buffers.h.
#include "pjrt/buffers.h"

#include <array>
#include <cstring>
#include <memory>
#include <string_view>

#include "pjrt/devices.h"
#include "pjrt/event.h"
#include "pjrt/functions.h"
#include "pjrt/status.h"
#include "pjrt/strides.h"

namespace lamina::pjrt {
namespace {

struct Name {
  BufferType type;
  std::string_view name;
};
constexpr Name kNames[] = {
    {BufferType::kPred, "bool"},
    {BufferType::kS8, "int8"},
    {BufferType::kS16, "int16"},
    {BufferType::kS32, "int32"},
    {BufferType::kS64, "int64"},
    {BufferType::kU8, "uint8"},
    {BufferType::kU16, "uint16"},
    {BufferType::kU32, "uint32"},
    {BufferType::kU64, "uint64"},
    {BufferType::kF16, "float16"},
    {BufferType::kF32, "float32"},
    {BufferType::kF64, "float64"},
    {BufferType::kBF16, "bfloat16"},
    {BufferType::kC64, "complex64"},
    {BufferType::kC128, "complex128"},
    {BufferType::kF8E5M2, "float8_e5m2"},
    {BufferType::kF8E4M3FN, "float8_e4m3fn"},
    {BufferType::kF8E4M3B11FNUZ, "float8_e4m3b11fnuz"},
    {BufferType::kF8E5M2FNUZ, "float8_e5m2fnuz"},
    {BufferType::kF8E4M3FNUZ, "float8_e4m3fnuz"},
    {BufferType::kF8E4M3, "float8_e4m3"},
    {BufferType::kF8E3M4, "float8_e3m4"},
    {BufferType::kF8E8M0FNU, "float8_e8m0fnu"},
    {BufferType::kF4E2M1FN, "float4_e2m1fn"},
    {BufferType::kF6E2M3FN, "float6_e2m3fn"},
    {BufferType::kF6E3M2FN, "float6_e3m2fn"},
    {BufferType::kS1, "int1"},
    {BufferType::kS2, "int2"},
    {BufferType::kS4, "int4"},
    {BufferType::kU1, "uint1"},
    {BufferType::kU2, "uint2"},
    {BufferType::kU4, "uint4"},
};

// The runtime's numbers of types, which NumPy and ml_dtypes decide when the runtime is loaded.
struct Table {
  std::array<Dtype, 64> dtypes;
  std::array<BufferType, 256> types;

  Table() {
    dtypes.fill(kNoDtype);
    types.fill(BufferType::kInvalid);
    for (int dtype = 0; dtype < dtype_count(); ++dtype) {
      for (const Name& known : kNames) {
        if (known.name != name_of(static_cast<Dtype>(dtype))) continue;
        dtypes[static_cast<size_t>(known.type)] = static_cast<Dtype>(dtype);
        types[static_cast<size_t>(dtype)] = known.type;
      }
    }
  }
};

const Table& table() {
  static const auto* made = new Table;
  return *made;
}

Memory* place_of(Device* device, Memory* memory, const Client* client) {
  if (memory != nullptr) return memory;
  return (device != nullptr ? device : client->devices.front())->memories.front();
}

size_t bytes_of(const Buffer* buffer) {
  return static_cast<size_t>(
      checked_bytes(buffer->dtype, buffer->dims.data(), static_cast<int>(buffer->dims.size())));
}

// What is done once the content of a buffer is there, and the event of it.
template <typename Work>
Event* when_ready(const Ref<lamina::Buffer>& content, Work work) {
  Completion* pending = content->pending();
  if (pending == nullptr || pending->done()) {
    if (pending != nullptr && pending->failed()) return make_event(pending);
    work();
    return make_done_event();
  }
  struct Later {
    Ref<lamina::Buffer> content;
    Work work;
    Ref<Completion> done;
  };
  auto* const later =
      new Later{content, std::move(work), Ref<Completion>::steal(Completion::create())};
  Event* const event = make_event(later->done.get());
  pending->when_done(
      [](void* context) {
        const std::unique_ptr<Later> here(static_cast<Later*>(context));
        const Completion* filled = here->content->pending();
        if (filled->failed()) return here->done->fail(filled->error());
        here->work();
        here->done->finish();
      },
      later);
  return event;
}

}  // namespace

Dtype dtype_of(BufferType type) {
  const auto index = static_cast<size_t>(type);
  const Dtype dtype = index < table().dtypes.size() ? table().dtypes[index] : kNoDtype;
  if (dtype == kNoDtype) {
    refuse(ErrorCode::kUnimplemented,
           "arrays of PJRT's type " + std::to_string(index) + " are not supported");
  }
  return dtype;
}

BufferType type_of(Dtype dtype) { return table().types[dtype]; }

Ref<lamina::Buffer> allocate(Dtype dtype, const std::vector<int64_t>& dims) {
  const int64_t bytes = checked_bytes(dtype, dims.data(), static_cast<int>(dims.size()));
  if (bytes < 0)
    refuse(ErrorCode::kResourceExhausted, "out of memory: more bytes than 63 bits count");
  return Ref<lamina::Buffer>::steal(lamina::Buffer::allocate(static_cast<size_t>(bytes)));
}

Ref<lamina::Buffer> Buffer::held(const char* what) {
  const std::lock_guard guard(lock);
  if (is_dropped) {
    refuse(ErrorCode::kInvalidArgument, std::string(what) + ": buffer has been deleted or donated");
  }
  return content;
}

void Buffer::drop() {
  Ref<lamina::Buffer> last;
  const std::lock_guard guard(lock);
  is_dropped = true;
  if (external_references == 0) last = std::move(content);
}

bool Buffer::dropped() {
  const std::lock_guard guard(lock);
  return is_dropped;
}

// --- From and to memory of the host --------------------------------------------------------------

void client_buffer_from_host_buffer(Client_BufferFromHostBufferArgs& args) {
  const Dtype dtype = dtype_of(args.type);
  const std::vector<int64_t> dims(args.dims, args.dims + args.num_dims);
  const size_t element_bytes = itemsize_of(dtype);
  Memory* const memory = place_of(args.device, args.memory, args.client);
  const std::vector<int64_t> strides =
      args.num_byte_strides == 0
          ? row_major_strides(dims, element_bytes)
          : std::vector<int64_t>(args.byte_strides, args.byte_strides + args.num_byte_strides);
  const int64_t bytes = checked_bytes(dtype, dims.data(), static_cast<int>(dims.size()));
  const bool may_keep = args.host_buffer_semantics == HostBufferSemantics::kImmutableZeroCopy ||
                        args.host_buffer_semantics == HostBufferSemantics::kMutableZeroCopy;
  const bool is_aligned =
      reinterpret_cast<uintptr_t>(args.data) % std::min(element_bytes, size_t{16}) == 0;
  DimensionOrder order = order_of(args.device_layout, dims.size());
  if (may_keep && bytes > 0 && is_aligned && order.empty() &&
      is_row_major(strides, dims, element_bytes)) {
    // The framework lets go of the memory when the last reader here has.
    Ref<Completion> released = Ref<Completion>::steal(Completion::create());
    args.done_with_host_buffer = make_event(released.get());
    Ref<lamina::Buffer> content = Ref<lamina::Buffer>::steal(lamina::Buffer::wrap(
        const_cast<void*>(args.data), static_cast<size_t>(bytes),
        [](void* context) {
          const Ref<Completion> done = Ref<Completion>::steal(static_cast<Completion*>(context));
          done->finish();
        },
        released.detach()));
    args.buffer = new Buffer(std::move(content), dtype, dims, memory);
    return;
  }
  Ref<lamina::Buffer> content = allocate(dtype, dims);
  copy_elements(args.data, strides, content->data(), strides_of(order, dims, element_bytes), dims,
                element_bytes);
  args.done_with_host_buffer = make_done_event();
  args.buffer = new Buffer(std::move(content), dtype, dims, memory, std::move(order));
}

void buffer_to_host_buffer(Buffer_ToHostBufferArgs& args) {
  const size_t bytes = bytes_of(args.src);
  if (args.dst == nullptr) {
    args.dst_size = bytes;
    return;
  }
  if (args.dst_size < bytes) {
    refuse(ErrorCode::kInvalidArgument, "an array of " + std::to_string(bytes) +
                                            " bytes does not fit in " +
                                            std::to_string(args.dst_size));
  }
  const Ref<lamina::Buffer> content = args.src->held("copying to the host");
  const size_t element_bytes = itemsize_of(args.src->dtype);
  const std::vector<int64_t> from = strides_of(args.src->order, args.src->dims, element_bytes);
  const std::vector<int64_t> strides =
      args.host_layout == nullptr ? from
                                  : strides_of(args.host_layout, args.src->dims, element_bytes);
  args.event = when_ready(
      content, [content, to = args.dst, dims = args.src->dims, element_bytes, from, strides] {
        copy_elements(content->data(), from, to, strides, dims, element_bytes);
      });
}

void buffer_copy_raw_to_host(Buffer_CopyRawToHostArgs& args) {
  const Ref<lamina::Buffer> content = args.buffer->held("copying to the host");
  if (args.offset < 0 || args.transfer_size < 0 ||
      static_cast<size_t>(args.offset) + static_cast<size_t>(args.transfer_size) >
          bytes_of(args.buffer)) {
    refuse(ErrorCode::kInvalidArgument, "the copied range ends behind the array");
  }
  args.event = when_ready(content, [content, to = args.dst, from = args.offset,
                                    bytes = args.transfer_size] {
    std::memcpy(to, static_cast<const char*>(content->data()) + from, static_cast<size_t>(bytes));
  });
}

void client_create_view_of_device_buffer(Client_CreateViewOfDeviceBufferArgs& args) {
  const Dtype dtype = dtype_of(args.element_type);
  const std::vector<int64_t> dims(args.dims, args.dims + args.num_dims);
  const size_t element_bytes = itemsize_of(dtype);
  const std::vector<int64_t> strides = strides_of(args.layout, dims, element_bytes);
  Memory* const memory = place_of(args.device, args.memory, args.client);
  if (!is_row_major(strides, dims, element_bytes)) {
    Ref<lamina::Buffer> content = allocate(dtype, dims);
    copy_elements(args.device_buffer_ptr, strides, content->data(),
                  row_major_strides(dims, element_bytes), dims, element_bytes);
    args.buffer = new Buffer(std::move(content), dtype, dims, memory);
    if (args.on_delete_callback != nullptr) {
      args.on_delete_callback(args.device_buffer_ptr, args.on_delete_callback_arg);
    }
    return;
  }
  struct Owner {
    void (*drop)(void*, void*);
    void* data;
    void* context;
  };
  auto* const owner =
      new Owner{args.on_delete_callback, args.device_buffer_ptr, args.on_delete_callback_arg};
  const auto bytes =
      static_cast<size_t>(checked_bytes(dtype, dims.data(), static_cast<int>(dims.size())));
  Ref<lamina::Buffer> content = Ref<lamina::Buffer>::steal(lamina::Buffer::wrap(
      args.device_buffer_ptr, bytes,
      [](void* context) {
        const std::unique_ptr<Owner> here(static_cast<Owner*>(context));
        if (here->drop != nullptr) here->drop(here->data, here->context);
      },
      owner));
  args.buffer = new Buffer(std::move(content), dtype, dims, memory);
}

void client_create_uninitialized_buffer(Client_CreateUninitializedBufferArgs& args) {
  const Dtype dtype = dtype_of(args.shape_element_type);
  std::vector<int64_t> dims(args.shape_dims, args.shape_dims + args.shape_num_dims);
  Ref<lamina::Buffer> content = allocate(dtype, dims);
  std::memset(content->data(), 0, content->bytes());  // what other programs left is not shown
  args.buffer = new Buffer(std::move(content), dtype, std::move(dims),
                           place_of(args.device, args.memory, args.client));
}

void client_create_error_buffer(Client_CreateErrorBufferArgs& args) {
  const Dtype dtype = dtype_of(args.shape_element_type);
  std::vector<int64_t> dims(args.shape_dims, args.shape_dims + args.shape_num_dims);
  Ref<lamina::Buffer> content = allocate(dtype, dims);
  const Ref<Completion> failed = Ref<Completion>::steal(Completion::create());
  failed->fail({std::string(args.error_message, args.error_message_size), nullptr, nullptr});
  content->set_pending(failed.get());
  args.buffer = new Buffer(std::move(content), dtype, std::move(dims),
                           place_of(nullptr, args.memory, args.client));
}

// --- Properties ----------------------------------------------------------------------------------

void buffer_destroy(Buffer_DestroyArgs& args) { delete args.buffer; }

void buffer_element_type(Buffer_ElementTypeArgs& args) { args.type = type_of(args.buffer->dtype); }

void buffer_dimensions(Buffer_DimensionsArgs& args) {
  args.dims = args.buffer->dims.data();
  args.num_dims = args.buffer->dims.size();
}

void buffer_unpadded_dimensions(Buffer_UnpaddedDimensionsArgs& args) {
  args.unpadded_dims = args.buffer->dims.data();
  args.num_dims = args.buffer->dims.size();
}

void buffer_dynamic_dimension_indices(Buffer_DynamicDimensionIndicesArgs& args) {
  args.dynamic_dim_indices = nullptr;
  args.num_dynamic_dims = 0;
}

void buffer_on_device_size_in_bytes(Buffer_OnDeviceSizeInBytesArgs& args) {
  args.on_device_size_in_bytes = bytes_of(args.buffer);
}

void buffer_device(Buffer_DeviceArgs& args) { args.device = args.buffer->memory->device; }

void buffer_memory(Buffer_MemoryArgs& args) { args.memory = args.buffer->memory; }

void buffer_is_on_cpu(Buffer_IsOnCpuArgs& args) { args.is_on_cpu = true; }

// --- Life ----------------------------------------------------------------------------------------

void buffer_delete(Buffer_DeleteArgs& args) { args.buffer->drop(); }

void buffer_is_deleted(Buffer_IsDeletedArgs& args) { args.is_deleted = args.buffer->dropped(); }

void buffer_copy_to_memory(Buffer_CopyToMemoryArgs& args) {
  args.dst_buffer = new Buffer(args.buffer->held("copying to a memory"), args.buffer->dtype,
                               args.buffer->dims, args.dst_memory, args.buffer->order);
}

void buffer_copy_to_device(Buffer_CopyToDeviceArgs& args) {
  args.dst_buffer =
      new Buffer(args.buffer->held("copying to a device"), args.buffer->dtype, args.buffer->dims,
                 args.dst_device->memories.front(), args.buffer->order);
}

void buffer_ready_event(Buffer_ReadyEventArgs& args) {
  args.event = make_event(args.buffer->held("waiting")->pending(), true);
}

void buffer_increase_external_reference_count(Buffer_IncreaseExternalReferenceCountArgs& args) {
  const std::lock_guard guard(args.buffer->lock);
  if (args.buffer->is_dropped) {
    refuse(ErrorCode::kInvalidArgument, "buffer has been deleted or donated");
  }
  ++args.buffer->external_references;
}

void buffer_decrease_external_reference_count(Buffer_DecreaseExternalReferenceCountArgs& args) {
  Ref<lamina::Buffer> last;
  const std::lock_guard guard(args.buffer->lock);
  if (--args.buffer->external_references == 0 && args.buffer->is_dropped) {
    last = std::move(args.buffer->content);
  }
}

namespace {

// Whoever looks at the memory itself looks at what is there.
void* data_of(Buffer* buffer) {
  const Ref<lamina::Buffer> content = buffer->held("looking at the memory");
  if (Completion* pending = content->pending()) {
    wait_until_done(*pending);
    if (pending->failed()) refuse(ErrorCode::kInternal, pending->error().message);
  }
  return content->data();
}

}  // namespace

void buffer_unsafe_pointer(Buffer_UnsafePointerArgs& args) {
  args.buffer_pointer = reinterpret_cast<uintptr_t>(data_of(args.buffer));
}

void buffer_opaque_device_memory_data_pointer(Buffer_OpaqueDeviceMemoryDataPointerArgs& args) {
  args.device_memory_ptr = data_of(args.buffer);
}

}  // namespace lamina::pjrt
