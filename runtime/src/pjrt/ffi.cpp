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

// The number that jaxlib has for its type of a program's Python functions: a hash of the type's
// name. The content is an array of PyObject* and how many there are;
// test/runtime/test_pjrt_callbacks.py sees when another jaxlib has another number.
constexpr int64_t kHostCallbacks = 7357244197867843242;

std::mutex types_mutex;

void type_register(Ffi_Type_RegisterArgs& args) {
  static auto* const types = new std::map<std::string, int64_t>;
  const std::string name(args.type_name, args.type_name_size);
  const std::lock_guard guard(types_mutex);
  const auto given = args.type_id != 0 ? args.type_id : static_cast<int64_t>(types->size()) + 1;
  args.type_id = types->try_emplace(name, given).first->second;
}

void user_data_add(Ffi_UserData_AddArgs& args) {
  if (args.type_id == kHostCallbacks) {
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
