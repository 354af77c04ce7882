// library.cpp -- see library.h. Types and numbers are those of the library's stable C
// interface (cublasLt.h).
#include "cuda/library.h"

#include <dlfcn.h>

#include <map>
#include <mutex>

namespace lamina::cuda {
namespace {

constexpr int kTransposeA = 3, kTransposeB = 4, kEpilogue = 7, kBiasPointer = 8, kBiasType = 26;
constexpr int kBatches = 5, kBatchStride = 6;                    // of layouts
constexpr int kMostWorkspace = 1, kAlignments[] = {5, 6, 7, 8};  // of preferences
constexpr uint32_t kAligned = 16;  // bytes, of all that kernels are given
constexpr unsigned kAddBias = 4;
constexpr int kR32F = 0, kR64F = 1, kC32F = 4, kC64F = 5, kR32I = 10;

struct Algorithm {
  uint64_t data[8];
};

struct Heuristic {
  Algorithm algorithm;
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
};

#define LAMINA_CUBLASLT_FUNCTIONS(X)                                                               \
  X(version, size_t, "cublasLtGetVersion", void)                                                   \
  X(create, int, "cublasLtCreate", Handle*)                                                        \
  X(desc_create, int, "cublasLtMatmulDescCreate", Handle*, int, int)                               \
  X(desc_destroy, int, "cublasLtMatmulDescDestroy", Handle)                                        \
  X(desc_set, int, "cublasLtMatmulDescSetAttribute", Handle, int, const void*, size_t)             \
  X(layout_create, int, "cublasLtMatrixLayoutCreate", Handle*, int, uint64_t, uint64_t, int64_t)   \
  X(layout_destroy, int, "cublasLtMatrixLayoutDestroy", Handle)                                    \
  X(layout_set, int, "cublasLtMatrixLayoutSetAttribute", Handle, int, const void*, size_t)         \
  X(preference_create, int, "cublasLtMatmulPreferenceCreate", Handle*)                             \
  X(preference_destroy, int, "cublasLtMatmulPreferenceDestroy", Handle)                            \
  X(preference_set, int, "cublasLtMatmulPreferenceSetAttribute", Handle, int, const void*, size_t) \
  X(heuristic, int, "cublasLtMatmulAlgoGetHeuristic", Handle, Handle, Handle, Handle, Handle,      \
    Handle, Handle, int, Heuristic*, int*)                                                         \
  X(multiply, int, "cublasLtMatmul", Handle, Handle, const void*, const void*, Handle,             \
    const void*, Handle, const void*, const void*, Handle, void*, Handle, const Algorithm*, void*, \
    size_t, Handle)

struct Library {
#define LAMINA_DECLARE(name, type, symbol, ...) type (*name)(__VA_ARGS__) = nullptr;
  LAMINA_CUBLASLT_FUNCTIONS(LAMINA_DECLARE)
#undef LAMINA_DECLARE
  std::map<int, Handle> handles;  // by device
};

std::mutex mutex;

// Null where it is not installed, or lacks what is needed. Call with the mutex held.
Library* library(const std::string& path) {
  static auto& opened = *new std::map<std::pair<uint64_t, std::string>, std::unique_ptr<Library>>;
  const auto [place, is_new] = opened.try_emplace({driver_generation(), path});
  if (!is_new) return place->second.get();
  void* file = nullptr;
  void* found = nullptr;
  if (!driver_is_replaced("", &found)) {
    file = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (file == nullptr) return nullptr;
  }
  auto table = std::make_unique<Library>();
  bool complete = true;
#define LAMINA_FILL(name, type, symbol, ...)                            \
  if (!driver_is_replaced(symbol, &found)) found = dlsym(file, symbol); \
  table->name = reinterpret_cast<decltype(table->name)>(found);         \
  complete = complete && found != nullptr;
  LAMINA_CUBLASLT_FUNCTIONS(LAMINA_FILL)
#undef LAMINA_FILL
  if (complete) place->second = std::move(table);
  return place->second.get();
}

// One as the library wants it, for a sum of this type.
std::vector<unsigned char> number(int type, int value) {
  std::vector<unsigned char> bytes(16);
  const auto write = [&bytes](auto one) {
    const auto* from = reinterpret_cast<const unsigned char*>(&one);
    std::copy(from, from + sizeof one, bytes.begin());
  };
  if (type == kR32I) {
    write(int32_t{value});
  } else if (type == kR64F || type == kC64F) {
    write(static_cast<double>(value));
  } else {
    write(static_cast<float>(value));
  }
  return bytes;
}

}  // namespace

struct LibraryCall::Parts {
  Library* library = nullptr;
  LibraryProduct product;
  Handle handle = nullptr, desc = nullptr, a = nullptr, b = nullptr, d = nullptr;
  Algorithm algorithm{};
  size_t workspace = 0;
  std::vector<unsigned char> one, zero;

  ~Parts() {
    for (const Handle layout : {a, b, d}) {
      if (layout != nullptr) library->layout_destroy(layout);
    }
    if (desc != nullptr) library->desc_destroy(desc);
  }

  bool layout(Handle* to, const LibraryMatrix& of) const {
    if (library->layout_create(to, of.type, of.rows, of.columns, of.leading) != 0) return false;
    if (product.batches == 1) return true;
    const int32_t batches = product.batches;
    return library->layout_set(*to, kBatches, &batches, sizeof batches) == 0 &&
           library->layout_set(*to, kBatchStride, &of.stride, sizeof of.stride) == 0;
  }

  bool describe() {
    if (library->desc_create(&desc, product.compute, product.scale) != 0) return false;
    const int32_t transposed[] = {product.a.transposed, product.b.transposed};
    const unsigned epilogue = kAddBias;
    bool good = library->desc_set(desc, kTransposeA, &transposed[0], sizeof transposed[0]) == 0 &&
                library->desc_set(desc, kTransposeB, &transposed[1], sizeof transposed[1]) == 0;
    if (product.bias >= 0) {
      const int32_t type = product.d.type;
      good = good && library->desc_set(desc, kEpilogue, &epilogue, sizeof epilogue) == 0 &&
             library->desc_set(desc, kBiasType, &type, sizeof type) == 0 &&
             set_bias(kAligned);  // for its alignment
    }
    return good && layout(&a, product.a) && layout(&b, product.b) && layout(&d, product.d);
  }

  bool set_bias(Address address) const {
    return library->desc_set(desc, kBiasPointer, &address, sizeof address) == 0;
  }

  bool choose_algorithm() {
    Handle preference = nullptr;
    if (library->preference_create(&preference) != 0) return false;
    const size_t most = kWorkspaceBytes;
    Heuristic found{};
    int count = 0;
    bool good = library->preference_set(preference, kMostWorkspace, &most, sizeof most) == 0;
    for (const int which : kAlignments) {
      good = good && library->preference_set(preference, which, &kAligned, sizeof kAligned) == 0;
    }
    good = good &&
           library->heuristic(handle, desc, a, b, d, d, preference, 1, &found, &count) == 0 &&
           count == 1 && found.state == 0;
    library->preference_destroy(preference);
    algorithm = found.algorithm;
    workspace = found.workspace;
    return good;
  }
};

LibraryCall::LibraryCall(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
LibraryCall::~LibraryCall() = default;

std::unique_ptr<LibraryCall> LibraryCall::make(Device& device, const std::string& path,
                                               const LibraryProduct& product) {
  const std::lock_guard guard(mutex);
  Library* table = library(path);
  if (table == nullptr) return nullptr;
  const auto [place, is_new] = table->handles.try_emplace(device.number());
  if (is_new && table->create(&place->second) != 0) place->second = nullptr;
  if (place->second == nullptr) return nullptr;
  auto parts = std::make_unique<Parts>();
  parts->library = table;
  parts->product = product;
  parts->handle = place->second;
  parts->one = number(product.scale, 1);
  parts->zero = number(product.scale, 0);
  if (!parts->describe() || !parts->choose_algorithm()) return nullptr;
  return std::unique_ptr<LibraryCall>(new LibraryCall(std::move(parts)));
}

void LibraryCall::issue(const Address* arguments, Address workspace, Handle stream,
                        const std::string& context) {
  const Parts& parts = *parts_;
  const LibraryProduct& product = parts.product;
  const auto at = [arguments](const LibraryMatrix& matrix) {
    return reinterpret_cast<void*>(arguments[matrix.argument]);
  };
  int code = 0;
  if (product.bias >= 0) {
    const Address bias = arguments[product.bias];
    code = parts.library->desc_set(parts.desc, kBiasPointer, &bias, sizeof bias);
  }
  if (code == 0) {
    code = parts.library->multiply(parts.handle, parts.desc, parts.one.data(), at(product.a),
                                   parts.a, at(product.b), parts.b, parts.zero.data(),
                                   at(product.d), parts.d, at(product.d), parts.d, &parts.algorithm,
                                   reinterpret_cast<void*>(workspace), parts.workspace, stream);
  }
  if (code != 0) {
    throw CudaError(-code,
                    "cublasLtMatmul failed " + context + ": cuBLAS status " + std::to_string(code));
  }
}

size_t library_version(const std::string& path) {
  const std::lock_guard guard(mutex);
  const Library* table = library(path);
  return table == nullptr ? 0 : table->version();
}

}  // namespace lamina::cuda
