// ffi.cpp -- PJRT's extension for XLA's foreign functions: what the framework gives an execution.
//
// JAX passes the Python functions of a program's callbacks so: as the user data of a type with a
// name of its own. The handlers of foreign functions themselves are found by the compiler
// (lamina.jax_plugin), which is Python.
#include <map>
#include <mutex>
#include <string>

#include "executables.h"
#include "functions.h"
#include "status.h"

namespace lamina::pjrt {
namespace {

// The type's name as jaxlib registers it.
constexpr std::string_view kHostCallbacks = "FfiLoadedHostCallbacks";

std::mutex types_mutex;
std::map<std::string, int64_t>& types() {
  static auto* known = new std::map<std::string, int64_t>;
  return *known;
}

void type_register(Ffi_Type_RegisterArgs& args) {
  const std::string name(args.type_name, args.type_name_size);
  const std::lock_guard guard(types_mutex);
  auto [place, is_new] = types().try_emplace(name, args.type_id);
  if (is_new && args.type_id == 0) place->second = static_cast<int64_t>(types().size());
  if (args.type_id == 0) args.type_id = place->second;
}

bool is_host_callbacks(int64_t type_id) {
  const std::lock_guard guard(types_mutex);
  for (const auto& [name, id] : types()) {
    if (id == type_id) return name.find(kHostCallbacks) != std::string::npos;
  }
  return false;
}

void user_data_add(Ffi_UserData_AddArgs& args) {
  if (is_host_callbacks(args.type_id)) {
    args.context->functions = *static_cast<const HostFunctions*>(args.data);
  }
}

void register_handler(Args&) {}

}  // namespace

ExtensionBase* ffi_extension(ExtensionBase* next) {
  static FfiExtension extension{
      {sizeof(FfiExtension), ExtensionType::kFfi, next},
      guarded<Ffi_Type_RegisterArgs, type_register>,
      guarded<Ffi_UserData_AddArgs, user_data_add>,
      guarded<Args, register_handler>,
  };
  return &extension;
}

}  // namespace lamina::pjrt
