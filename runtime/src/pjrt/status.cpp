// status.cpp -- see status.h.
#include "pjrt/status.h"

#include <exception>
#include <new>

#include "core/buffer.h"
#include "pjrt/functions.h"

namespace lamina::pjrt {

Error* make_error(const lamina::Error& error) {
  const bool is_memory = error.message.starts_with("out of memory");
  return make_error(is_memory ? ErrorCode::kResourceExhausted : ErrorCode::kInternal,
                    error.message);
}

Error* error_of_exception() {
  try {
    throw;
  } catch (Status& status) {
    return make_error(status.code, std::move(status.message));
  } catch (const OutOfMemory& error) {
    return make_error(ErrorCode::kResourceExhausted,
                      "out of memory: " + std::to_string(error.bytes) + " bytes");
  } catch (const std::bad_alloc&) {
    return make_error(ErrorCode::kResourceExhausted, "out of memory");
  } catch (const std::exception& error) {
    return make_error(ErrorCode::kInternal, error.what());
  }
}

void error_destroy(Error_DestroyArgs& args) { delete args.error; }

void error_message(Error_MessageArgs& args) {
  give(args.error->message, &args.message, &args.message_size);
}

void error_get_code(Error_GetCodeArgs& args) { args.code = args.error->code; }

void error_for_each_payload(Error_ForEachPayloadArgs&) {}

}  // namespace lamina::pjrt
