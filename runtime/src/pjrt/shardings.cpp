// shardings.cpp -- PJRT's extension for shardings: how arrays lie on an executable's devices.
#include "pjrt/executables.h"
#include "pjrt/functions.h"
#include "pjrt/status.h"

namespace lamina::pjrt {
namespace {

// Null for programs of one device, which have none.
void give_shardings(const Compiled& compiled, const Texts& texts, size_t* count,
                    const char* const** shardings, const size_t** sizes) {
  const bool has_any = compiled.partitions > 1;
  *count = texts.data.size();
  *shardings = has_any ? texts.data.data() : nullptr;
  *sizes = has_any ? texts.sizes.data() : nullptr;
}

void parameter_shardings(Shardings_Executable_ParameterShardingsArgs& args) {
  const Compiled& compiled = *args.executable->compiled;
  give_shardings(compiled, compiled.input_sharding_texts, &args.num_parameters, &args.shardings,
                 &args.sharding_sizes);
}

void output_shardings(Shardings_Executable_OutputShardingsArgs& args) {
  const Compiled& compiled = *args.executable->compiled;
  give_shardings(compiled, compiled.output_sharding_texts, &args.num_outputs, &args.shardings,
                 &args.sharding_sizes);
}

}  // namespace

ExtensionBase* shardings_extension(ExtensionBase* next) {
  static ShardingsExtension extension{
      {sizeof(ShardingsExtension), ExtensionType::kShardings, next},
      guarded<Shardings_Executable_ParameterShardingsArgs, parameter_shardings>,
      guarded<Shardings_Executable_OutputShardingsArgs, output_shardings>,
  };
  return &extension;
}

}  // namespace lamina::pjrt
