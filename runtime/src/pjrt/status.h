// status.h -- errors on their way to the framework, and the frame of every function of the table.
#pragma once

#include <string>
#include <utility>

#include "core/completion.h"
#include "pjrt/abi.h"

namespace lamina::pjrt {

struct Error {
  const void* function_table = nullptr;  // see abi.h
  ErrorCode code;
  std::string message;
};

// Thrown by the functions; made an Error on the way out.
struct Status {
  ErrorCode code;
  std::string message;
};

[[noreturn]] inline void refuse(ErrorCode code, std::string message) {
  throw Status{code, std::move(message)};
}

inline Error* make_error(ErrorCode code, std::string message) {
  return new Error{nullptr, code, std::move(message)};
}

// The error of a call that failed while it ran.
Error* make_error(const lamina::Error& error);

// The error for the exception that is being handled.
Error* error_of_exception();

// A function of the table: `function` takes its own arguments and throws.
template <typename A, void (*function)(A&)>
Error* guarded(Args* args) {
  try {
    function(*static_cast<A*>(args));
    return nullptr;
  } catch (...) {
    return error_of_exception();
  }
}

inline void give(const std::string& text, const char** data, size_t* size) {
  *data = text.data();
  *size = text.size();
}

}  // namespace lamina::pjrt
