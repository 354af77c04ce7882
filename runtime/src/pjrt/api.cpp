// api.cpp -- GetPjrtApi: lamina's CPU backend as a PJRT plugin.
//
// A framework such as JAX loads this library, asks it for the table of functions below, and gives
// it programs in StableHLO. The library is linked against the runtime's: both see one queue of
// calls, one pool of memory, one pool of threads. Compiling is Python's
// (lamina.jax_plugin.compiler), in the same process; on the way of a call there is none.
#include "pjrt/abi.h"
#include "pjrt/functions.h"
#include "pjrt/status.h"

namespace lamina::pjrt {

namespace {

// The StableHLO that our compiler reads; test/runtime/test_pjrt_abi.py compares it with MLIR's.
constexpr int64_t kStablehloVersion[] = {LAMINA_STABLEHLO_VERSION};
constexpr int64_t kStablehloMinimum[] = {0, 9, 0};

template <size_t length>
NamedValue version(const char (&name)[length], const int64_t (&numbers)[3]) {
  NamedValue value{};
  value.struct_size = sizeof value;
  value.name = name;
  value.name_size = length - 1;
  value.type = NamedValue::kInt64List;
  value.int64_array_value = numbers;
  value.value_size = 3;
  return value;
}

Error* missing(const char* name) {
  return make_error(ErrorCode::kUnimplemented,
                    std::string("lamina's PJRT plugin has no PJRT_") + name);
}

}  // namespace

void plugin_initialize(Plugin_InitializeArgs&) {}

void plugin_attributes(Plugin_AttributesArgs& args) {
  static const NamedValue attributes[] = {
      version("stablehlo_current_version", kStablehloVersion),
      version("stablehlo_minimum_version", kStablehloMinimum),
  };
  args.attributes = attributes;
  args.num_attributes = 2;
}

namespace {

const Api& table() {
#define LAMINA_IMPLEMENTED(name, function) guarded<name##Args, function>,
#define LAMINA_MISSING(name) [](Args*) { return missing(#name); },
  ExtensionBase* extensions = shardings_extension(profiler_extension(nullptr));
  extensions = layouts_extension(ffi_extension(extensions));
  static const Api api = {sizeof(Api),
                          extensions,
                          {{sizeof(Version), nullptr}, kMajorVersion, kMinorVersion},
                          {LAMINA_PJRT_FUNCTIONS(LAMINA_IMPLEMENTED, LAMINA_MISSING)}};
#undef LAMINA_IMPLEMENTED
#undef LAMINA_MISSING
  return api;
}

}  // namespace

}  // namespace lamina::pjrt

extern "C" __attribute__((visibility("default"))) const lamina::pjrt::Api* GetPjrtApi() {
  return &lamina::pjrt::table();
}
