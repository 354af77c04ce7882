// layouts.cpp -- PJRT's extension for layouts: every array lies row by row.
#include <cstdlib>
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

std::string row_major(size_t rank) {
  std::string text = "{";
  for (size_t i = rank; i-- > 0;) {
    text += std::to_string(i);
    if (i > 0) text += ',';
  }
  return text + '}';
}

Layout* make_layout(size_t rank) { return new Layout{row_major(rank)}; }

// An array that the framework reads before it drops the executable; each layout it destroys itself.
void give_layouts(const std::vector<std::vector<int64_t>>& dims, size_t* count, Layout*** layouts) {
  thread_local std::vector<Layout*> given;
  given.clear();
  for (const auto& sizes : dims) given.push_back(make_layout(sizes.size()));
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
  args.layout = make_layout(args.num_dims);
}

void topology_default_layout(Layouts_Topology_GetDefaultLayoutArgs& args) {
  args.layout = make_layout(args.num_dims);
}

void buffer_memory_layout(Layouts_Buffer_MemoryLayoutArgs& args) {
  args.layout = make_layout(args.buffer->dims.size());
}

void executable_output_layouts(Layouts_Executable_GetOutputLayoutsArgs& args) {
  give_layouts(args.executable->compiled->output_dims, &args.num_outputs, &args.layouts);
}

void executable_parameter_layouts(Layouts_Executable_GetParameterLayoutsArgs& args) {
  give_layouts(args.executable->compiled->input_dims, &args.num_parameters, &args.layouts);
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
  for (size_t i = 0; i < rank; ++i) minor_to_major[i] = static_cast<int64_t>(rank - 1 - i);
  args.layout = {};
  args.layout.struct_size = sizeof args.layout;
  args.layout.type = MemoryLayout::kTiled;
  args.layout.tiled.struct_size = sizeof args.layout.tiled;
  args.layout.tiled.minor_to_major = minor_to_major.data();
  args.layout.tiled.minor_to_major_size = rank;
}

}  // namespace lamina::pjrt
