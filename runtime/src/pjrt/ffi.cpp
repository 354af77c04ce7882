// ffi.cpp -- PJRT's extension for XLA's foreign functions: what the framework gives an execution.
//
// JAX passes the Python functions of a program's callbacks so: as the user data of a type with a
// name of its own. The handlers of foreign functions themselves are found by the compiler
// (lamina.jax_plugin), which is Python.
#include <map>
#include <mutex>
#include <string>

#include "pjrt/executables.h"
#include "pjrt/functions.h"
#include "pjrt/status.h"

namespace lamina::pjrt {
namespace {

std::mutex types_mutex;

void type_register(Ffi_Type_RegisterArgs& args) {
  static auto* const types = new std::map<std::string, int64_t>;
  const std::string name(args.type_name, args.type_name_size);
  const std::lock_guard guard(types_mutex);
  const auto given = args.type_id != 0 ? args.type_id : static_cast<int64_t>(types->size()) + 1;
  args.type_id = types->try_emplace(name, given).first->second;
}

void user_data_add(Ffi_UserData_AddArgs& args) {
  args.context->user_data.emplace_back(args.type_id, args.data);
}

void register_handler(Args&) {}

}  // namespace

HostFunctions ExecuteContext::functions() const {
  if (user_data.empty()) return {};
  if (user_data.size() > 1) {
    refuse(ErrorCode::kUnimplemented,
           "the framework gives the program " + std::to_string(user_data.size()) +
               " kinds of data, and it isn't known which are its Python functions");
  }
  struct OfJax {
    void* const* functions;
    size_t count;
  };
  const auto [type, data] = user_data.front();
  const auto* const given = static_cast<const OfJax*>(data);
  return {given->functions, given->count, type, data};
}

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
