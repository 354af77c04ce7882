// layouts.cpp -- PJRT's extension for layouts: the order in which an array's dimensions lie in
// memory.
#include <string>

#include "pjrt/buffers.h"
#include "pjrt/executables.h"
#include "pjrt/functions.h"
#include "pjrt/status.h"

namespace lamina::pjrt {

struct Layout {
  std::string text;  // the dimensions from the fastest to the slowest: "{1,0}"
};

namespace {

Layout* make_layout(const DimensionOrder& order, size_t rank) {
  return new Layout{layout_text(order, rank)};
}

// An array that the framework reads before it drops the executable; each layout it destroys itself.
void give_layouts(const std::vector<std::vector<int64_t>>& dims,
                  const std::vector<DimensionOrder>& orders, size_t* count, Layout*** layouts) {
  thread_local std::vector<Layout*> given;
  given.clear();
  for (size_t i = 0; i < dims.size(); ++i) given.push_back(make_layout(orders[i], dims[i].size()));
  *count = given.size();
  *layouts = given.data();
}

void memory_layout_destroy(Layouts_MemoryLayout_DestroyArgs& args) { delete args.layout; }

void memory_layout_serialize(Layouts_MemoryLayout_SerializeArgs& args) {
  auto* const text = new std::string(args.layout->text);
  give(*text, &args.serialized_bytes, &args.serialized_bytes_size);
  args.serialized_layout = text;
  args.serialized_layout_deleter = [](void* owned) { delete static_cast<std::string*>(owned); };
}

void client_default_layout(Layouts_Client_GetDefaultLayoutArgs& args) {
  args.layout = make_layout({}, args.num_dims);
}

void topology_default_layout(Layouts_Topology_GetDefaultLayoutArgs& args) {
  args.layout = make_layout({}, args.num_dims);
}

void buffer_memory_layout(Layouts_Buffer_MemoryLayoutArgs& args) {
  args.layout = make_layout(args.buffer->order, args.buffer->dims.size());
}

void executable_output_layouts(Layouts_Executable_GetOutputLayoutsArgs& args) {
  const Compiled& compiled = *args.executable->compiled;
  give_layouts(compiled.output_dims, compiled.output_orders, &args.num_outputs, &args.layouts);
}

void executable_parameter_layouts(Layouts_Executable_GetParameterLayoutsArgs& args) {
  const Compiled& compiled = *args.executable->compiled;
  give_layouts(compiled.input_dims, compiled.input_orders, &args.num_parameters, &args.layouts);
}

}  // namespace

ExtensionBase* layouts_extension(ExtensionBase* next) {
  static LayoutsExtension extension{
      {sizeof(LayoutsExtension), ExtensionType::kLayouts, next},
      guarded<Layouts_MemoryLayout_DestroyArgs, memory_layout_destroy>,
      guarded<Layouts_MemoryLayout_SerializeArgs, memory_layout_serialize>,
      guarded<Layouts_Client_GetDefaultLayoutArgs, client_default_layout>,
      guarded<Layouts_Buffer_MemoryLayoutArgs, buffer_memory_layout>,
      guarded<Layouts_Topology_GetDefaultLayoutArgs, topology_default_layout>,
      guarded<Layouts_Executable_GetOutputLayoutsArgs, executable_output_layouts>,
      guarded<Layouts_Executable_GetParameterLayoutsArgs, executable_parameter_layouts>,
  };
  return &extension;
}

void buffer_get_memory_layout(Buffer_GetMemoryLayoutArgs& args) {
  thread_local std::vector<int64_t> minor_to_major;
  const size_t rank = args.buffer->dims.size();
  minor_to_major.resize(rank);
  const DimensionOrder& order = args.buffer->order;
  for (size_t i = 0; i < rank; ++i) {
    minor_to_major[i] = order.empty() ? static_cast<int64_t>(rank - 1 - i) : order[rank - 1 - i];
  }
  args.layout = {};
  args.layout.struct_size = sizeof args.layout;
  args.layout.type = MemoryLayout::kTiled;
  args.layout.tiled.struct_size = sizeof args.layout.tiled;
  args.layout.tiled.minor_to_major = minor_to_major.data();
  args.layout.tiled.minor_to_major_size = rank;
}

}  // namespace lamina::pjrt
