// signature.cpp -- see signature.h.
#include "core/signature.h"

#include <algorithm>
#include <unordered_map>

#include "cuda/array.h"
#include "cuda/driver.h"

namespace lamina {
namespace {

// The low byte of a word that opens a node. A count, or a leaf's type, lies above it.
enum Word : uint64_t {
  kCall = 1,
  kLeaf,
  kStatic,
  kNone,
  kTuple,
  kList,
  kDict,
  kNamedTuple,
  kCustom
};

// In a leaf's word: whether the address of its sharding comes behind its dimensions.
constexpr int kPlacedBit = 17;

constexpr int kMostDepth = 200;

std::unordered_map<PyTypeObject*, Owned>& registered_nodes() {
  static auto* nodes = new std::unordered_map<PyTypeObject*, Owned>;
  return *nodes;
}

uint64_t counted(Word word, Py_ssize_t count) { return word | static_cast<uint64_t>(count) << 8; }
uint64_t address(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

uint64_t mix(uint64_t hash, uint64_t word) {
  const auto product = static_cast<unsigned __int128>(hash ^ word) * 0x9e3779b97f4a7c15u;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

}  // namespace

bool register_node(PyObject* type, PyObject* flatten) {
  if (!PyType_Check(type) || !PyCallable_Check(flatten)) {
    PyErr_SetString(PyExc_TypeError, "register_node wants a type and a callable");
    return false;
  }
  registered_nodes()[reinterpret_cast<PyTypeObject*>(Py_NewRef(type))] = Owned::share(flatten);
  return true;
}

bool is_namedtuple_type(PyTypeObject* type) {
  return PyType_IsSubtype(type, &PyTuple_Type) && type != &PyTuple_Type &&
         PyObject_HasAttrString(reinterpret_cast<PyObject*>(type), "_fields");
}

bool same_signature(const Signature& a, const Signature& b, bool* equal) {
  *equal = false;
  if (a.hash != b.hash || a.words != b.words || a.objects.size() != b.objects.size()) return true;
  for (size_t i = 0; i < a.objects.size(); ++i) {
    PyObject *x = a.objects[i], *y = b.objects[i];
    if (x == y) continue;
    if (Py_TYPE(x) != Py_TYPE(y)) return true;  // 1, 1.0 and True are three signatures
    const InNativeCode native;
    const int same = PyObject_RichCompareBool(x, y, Py_EQ);
    if (same <= 0) return same == 0;
  }
  *equal = true;
  return true;
}

// --- Scanning ------------------------------------------------------------------------------------

void CallScanner::reset() {
  signature_.words.clear();
  signature_.objects.clear();
  leaves_.clear();
  placements_.clear();
  held_.clear();
  depth_ = 0;
}

bool CallScanner::scan(PyObject* const* args, Py_ssize_t positional, PyObject* keyword_names,
                       const Statics& statics) {
  const Config config = current_config();
  x64_ = config.x64;
  const Py_ssize_t keywords = keyword_names == nullptr ? 0 : PyTuple_GET_SIZE(keyword_names);
  signature_.words.push_back(cuda::driver_generation() << 40 | config.epoch << 1 |
                             static_cast<uint64_t>(config.x64));
  signature_.words.push_back(counted(kCall, positional));
  signature_.words.push_back(static_cast<uint64_t>(keywords));
  for (Py_ssize_t i = 0; i < positional; ++i) {
    const bool is_static =
        std::find(statics.positions.begin(), statics.positions.end(), i) != statics.positions.end();
    if (!(is_static ? static_value(args[i]) : node(args[i]))) return false;
  }
  for (Py_ssize_t i = 0; i < keywords; ++i) {
    PyObject* name = PyTuple_GET_ITEM(keyword_names, i);
    const bool is_static =
        std::any_of(statics.names.begin(), statics.names.end(), [&](const Owned& known) {
          return known.get() == name || PyUnicode_Compare(known.get(), name) == 0;
        });
    signature_.objects.push_back(name);
    PyObject* value = args[positional + i];
    if (!(is_static ? static_value(value) : node(value))) return false;
  }
  return finish_hash();
}

bool CallScanner::node(PyObject* object) {
  Leaf leaf;
  if (object == Py_None) {
    signature_.words.push_back(kNone);
    return true;
  }
  PyTypeObject* type = Py_TYPE(object);
  if (type == &PyTuple_Type || type == &PyList_Type || type == &PyDict_Type) {
    return container(object, type);
  }
  if (classify(object, x64_, &leaf)) {
    leaf_words(leaf);
    leaves_.push_back(leaf);
    return true;
  }
  const auto& nodes = registered_nodes();
  if (const auto found = nodes.find(type); found != nodes.end()) {
    return custom(object, found->second.get());
  }
  if (is_namedtuple_type(type)) return container(object, type);
  if (!classify_subclass(object, x64_, &leaf)) return false;
  leaf_words(leaf);
  leaves_.push_back(leaf);
  return true;
}

bool CallScanner::container(PyObject* object, PyTypeObject* type) {
  if (++depth_ > kMostDepth) return false;
  bool known = true;
  if (type == &PyDict_Type) {
    known = dict(object);
  } else if (type == &PyList_Type) {
    signature_.words.push_back(counted(kList, PyList_GET_SIZE(object)));
    for (Py_ssize_t i = 0; known && i < PyList_GET_SIZE(object); ++i) {
      known = node(PyList_GET_ITEM(object, i));
    }
  } else {
    signature_.words.push_back(
        counted(type == &PyTuple_Type ? kTuple : kNamedTuple, PyTuple_GET_SIZE(object)));
    if (type != &PyTuple_Type) {
      signature_.objects.push_back(reinterpret_cast<PyObject*>(type));
    }
    for (Py_ssize_t i = 0; known && i < PyTuple_GET_SIZE(object); ++i) {
      known = node(PyTuple_GET_ITEM(object, i));
    }
  }
  --depth_;
  return known;
}

bool CallScanner::dict(PyObject* object) {
  signature_.words.push_back(counted(kDict, PyDict_GET_SIZE(object)));
  PyObject *key, *value;
  for (Py_ssize_t position = 0; PyDict_Next(object, &position, &key, &value);) {
    signature_.objects.push_back(key);
    if (!node(value)) return false;
  }
  return true;
}

bool CallScanner::custom(PyObject* object, PyObject* flatten) {
  if (++depth_ > kMostDepth) return false;
  const InNativeCode native;
  Owned flat(PyObject_CallOneArg(flatten, object));
  PyObject *children = nullptr, *aux = nullptr;
  if (!flat || !PyArg_ParseTuple(flat.get(), "OO", &children, &aux)) {
    PyErr_Clear();  // miss meets the same error, and says where
    return false;
  }
  Owned items(PySequence_Fast(children, "children"));
  if (!items) {
    PyErr_Clear();
    return false;
  }
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(items.get());
  signature_.words.push_back(counted(kCustom, count));
  signature_.objects.push_back(reinterpret_cast<PyObject*>(Py_TYPE(object)));
  signature_.objects.push_back(aux);
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (!node(PySequence_Fast_GET_ITEM(items.get(), i))) return false;
  }
  held_.push_back(std::move(flat));
  held_.push_back(std::move(items));
  --depth_;
  return true;
}

bool CallScanner::static_value(PyObject* value) {
  signature_.words.push_back(kStatic);
  signature_.words.push_back(address(Py_TYPE(value)));
  signature_.objects.push_back(value);
  return true;
}

void CallScanner::leaf_words(const Leaf& leaf) {
  const int device = leaf.kind == LeafKind::kArray
                         ? device_number(reinterpret_cast<ArrayObject*>(leaf.object)->buffer)
                         : -1;
  PyObject* const placement = placement_of(leaf);
  signature_.words.push_back(
      kLeaf | static_cast<uint64_t>(leaf.dtype) << 8 | static_cast<uint64_t>(leaf.weak_type) << 16 |
      static_cast<uint64_t>(placement != nullptr) << kPlacedBit |
      static_cast<uint64_t>(leaf.ndim) << 24 | static_cast<uint64_t>(device + 1) << 32);
  for (int i = 0; i < leaf.ndim; ++i) {
    signature_.words.push_back(static_cast<uint64_t>(leaf.dims[i]));
  }
  if (placement != nullptr) {
    signature_.words.push_back(address(placement));
    placements_.push_back(placement);
  }
}

bool CallScanner::finish_hash() {
  uint64_t hash = 0x243f6a8885a308d3u;
  for (const uint64_t word : signature_.words) hash = mix(hash, word);
  for (PyObject* object : signature_.objects) {
    const Py_hash_t value = PyObject_Hash(object);
    if (value == -1) {
      PyErr_Clear();
      return false;
    }
    hash = mix(hash, static_cast<uint64_t>(value));
  }
  signature_.hash = hash;
  return true;
}

// --- Canonical order -----------------------------------------------------------------------------

namespace {

// Sorts pairs of a key and a number as trees order a dictionary: by the keys; where those can't be
// compared by the names of their types first; where that does not help, either, as they are given.
bool sort_keys(PyObject* pairs) {
  const Py_ssize_t count = PyList_GET_SIZE(pairs);
  const Owned given(PyList_GetSlice(pairs, 0, count));  // a sort that fails has moved some
  if (!given) return false;
  if (PyList_Sort(pairs) == 0) return true;
  if (!PyErr_ExceptionMatches(PyExc_TypeError)) return false;
  PyErr_Clear();
  const Owned typed(PyList_New(0));
  if (!typed) return false;
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* pair = PyList_GET_ITEM(given.get(), i);
    PyObject* key = PyTuple_GET_ITEM(pair, 0);
    PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(key));
    const Owned module(PyObject_GetAttrString(type, "__module__"));
    const Owned name(PyObject_GetAttrString(type, "__qualname__"));
    if (!module || !name) return false;
    const Owned row(
        Py_BuildValue("(NOO)", PyUnicode_FromFormat("%S.%S", module.get(), name.get()), key, pair));
    if (!row || PyList_Append(typed.get(), row.get()) != 0) return false;
  }
  const bool sorted = PyList_Sort(typed.get()) == 0;
  if (!sorted && !PyErr_ExceptionMatches(PyExc_TypeError)) return false;
  PyErr_Clear();
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* pair = sorted ? PyTuple_GET_ITEM(PyList_GET_ITEM(typed.get(), i), 2)
                            : PyList_GET_ITEM(given.get(), i);
    if (PyList_SetItem(pairs, i, Py_NewRef(pair)) != 0) return false;
  }
  return true;
}

// Walks a signature once more, handing out the places of its leaves with keys sorted.
class Canonicalizer {
 public:
  explicit Canonicalizer(const Signature& signature) : signature_(signature) {}

  bool call(std::vector<uint32_t>* order) {
    ++word_;  // configuration
    const uint64_t positional = next_word() >> 8;
    const uint64_t keywords = next_word();
    for (uint64_t i = 0; i < positional; ++i) {
      if (!node(order)) return false;
    }
    return keyed(keywords, order);
  }

 private:
  uint64_t next_word() { return signature_.words[word_++]; }
  PyObject* next_object() { return signature_.objects[object_++]; }

  bool node(std::vector<uint32_t>* order) {
    const uint64_t word = next_word();
    const uint64_t count = word >> 8;
    switch (word & 0xff) {
      case kLeaf:
        word_ += (word >> 24 & 0xff) + (word >> kPlacedBit & 1);
        order->push_back(leaf_++);
        return true;
      case kStatic:
        ++word_;
        ++object_;
        return true;
      case kNone:
        return true;
      case kDict:
        return keyed(count, order);
      case kNamedTuple:
        ++object_;
        break;
      case kCustom:
        object_ += 2;
        break;
      default:
        break;
    }
    for (uint64_t i = 0; i < count; ++i) {
      if (!node(order)) return false;
    }
    return true;
  }

  bool keyed(uint64_t count, std::vector<uint32_t>* order) {
    std::vector<std::vector<uint32_t>> values(count);
    const Owned pairs(PyList_New(0));
    if (!pairs) return false;
    for (uint64_t i = 0; i < count; ++i) {
      // Keys are distinct, so the index beside a key never takes part in the comparison.
      const Owned pair(Py_BuildValue("OK", next_object(), static_cast<unsigned long long>(i)));
      if (!pair || PyList_Append(pairs.get(), pair.get()) != 0 || !node(&values[i])) return false;
    }
    if (!sort_keys(pairs.get())) return false;
    for (uint64_t i = 0; i < count; ++i) {
      PyObject* pair = PyList_GET_ITEM(pairs.get(), static_cast<Py_ssize_t>(i));
      const auto& value = values[PyLong_AsSize_t(PyTuple_GET_ITEM(pair, 1))];
      order->insert(order->end(), value.begin(), value.end());
    }
    return true;
  }

  const Signature& signature_;
  size_t word_ = 0, object_ = 0;
  uint32_t leaf_ = 0;
};

}  // namespace

bool canonical_order(const Signature& signature, std::vector<uint32_t>* order) {
  order->clear();
  return Canonicalizer(signature).call(order);
}

}  // namespace lamina
