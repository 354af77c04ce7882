// driver.cpp -- see driver.h.
#include "cuda/driver.h"

#include <dlfcn.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>

namespace lamina::cuda {
namespace {

std::mutex mutex;
std::unique_ptr<Driver> current;
std::atomic<const Driver*> published{nullptr};
std::unique_ptr<std::unordered_map<std::string, uintptr_t>> replacement;
std::atomic<uint64_t> generation{0};

constexpr const char* kInstall =
    "beside pip install 'lamina[cuda]', GPUs need NVIDIA's driver (the package nvidia-driver of "
    "most "
    "distributions; in a container, run it with --gpus all)";

using Find = std::function<void*(const char*)>;

std::unique_ptr<Driver> filled(const Find& find) {
  auto driver = std::make_unique<Driver>();
  const char* missing = nullptr;
#define LAMINA_FILL(name, symbol, ...)                                   \
  driver->name = reinterpret_cast<decltype(driver->name)>(find(symbol)); \
  if (driver->name == nullptr && missing == nullptr) missing = symbol;
  LAMINA_CUDA_FUNCTIONS(LAMINA_FILL)
  if (missing != nullptr) {
    throw Unavailable(std::string("the NVIDIA driver is too old: it has no ") + missing +
                      "; lamina needs one of CUDA 11.4 or newer");
  }
  LAMINA_CUDA_GRAPH_FUNCTIONS(LAMINA_FILL)
  LAMINA_CUDA_TENSOR_MAP_FUNCTIONS(LAMINA_FILL)
#undef LAMINA_FILL
  const Result code = driver->init(0);
  if (code == kNoDevice) throw Unavailable("the NVIDIA driver finds no GPU on this machine");
  if (code != kSuccess) {
    const char* text = nullptr;
    driver->error_name(code, &text);
    throw Unavailable("the NVIDIA driver does not start (cuInit: " +
                      std::string(text != nullptr ? text : "error " + std::to_string(code)) +
                      "); nvidia-smi may say more");
  }
  if (driver->driver_version(&driver->version) != kSuccess) driver->version = 0;
  driver->has_graphs = driver->version >= 12000 && driver->graph_kernel != nullptr &&
                       driver->graph_update_kernel != nullptr &&
                       driver->graph_update_child != nullptr;
  driver->has_conditionals = driver->has_graphs && driver->version >= 12040 &&
                             driver->graph_conditional != nullptr && driver->graph_node != nullptr;
  return driver;
}

std::unique_ptr<Driver> opened() {
  if (replacement) {
    return filled([](const char* symbol) -> void* {
      const auto found = replacement->find(symbol);
      return found == replacement->end() ? nullptr : reinterpret_cast<void*>(found->second);
    });
  }
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw Unavailable(std::string("there is no NVIDIA driver on this machine (no libcuda.so.1): ") +
                      kInstall);
  }
  return filled([library](const char* symbol) { return dlsym(library, symbol); });
}

}  // namespace

const Driver& driver() {
  if (const Driver* ready = published.load(std::memory_order_acquire)) return *ready;
  const std::lock_guard guard(mutex);
  if (!current) current = opened();
  published.store(current.get(), std::memory_order_release);
  return *current;
}

void replace_driver(const std::unordered_map<std::string, uintptr_t>* functions) {
  const std::lock_guard guard(mutex);
  ++generation;
  published.store(nullptr);
  if (current) current.release();  // somebody may still be in it; for tests alone
  replacement.reset();
  if (functions != nullptr) {
    replacement = std::make_unique<std::unordered_map<std::string, uintptr_t>>(*functions);
  }
}

bool driver_is_replaced(const char* symbol, void** found) {
  const std::lock_guard guard(mutex);
  if (!replacement) return false;
  const auto place = replacement->find(symbol);
  *found = place == replacement->end() ? nullptr : reinterpret_cast<void*>(place->second);
  return true;
}

uint64_t driver_generation() { return generation.load(); }

void raise_failure(Result code, const char* call, const std::string& context) {
  const char *name = nullptr, *text = nullptr;
  const Driver& table = driver();
  table.error_name(code, &name);
  table.error_text(code, &text);
  std::string message = std::string(call) + " failed";
  if (!context.empty()) message += " " + context;
  message += ": " + std::string(name != nullptr ? name : "error " + std::to_string(code));
  if (text != nullptr) message += std::string(" (") + text + ")";
  throw CudaError(code, message);
}

}  // namespace lamina::cuda
