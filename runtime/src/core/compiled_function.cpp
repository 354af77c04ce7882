// compiled_function.cpp -- see compiled_function.h.
#include "core/compiled_function.h"

#include <structmember.h>

#include <list>
#include <memory>
#include <unordered_map>
#include <vector>

#include "core/fast_path.h"
#include "core/signature.h"

namespace lamina {
namespace {

constexpr size_t kMostEntries = 8192;

// A signature that was met, and what serves it. Owns the objects of the signature.
struct Known {
  Signature signature;
  std::vector<Owned> held;
  Owned entry;  // FastPathEntry
  std::vector<uint32_t> place;

  const Plan& plan() const { return *reinterpret_cast<FastPathObject*>(entry.get())->plan; }
};

// Signatures met last come first; the one met longest ago is forgotten when there are too many.
class SignatureCache {
 public:
  // Null where it is not known. False with an error set where a comparison raised.
  bool find(const Signature& signature, std::shared_ptr<Known>* known) {
    if (!order_.empty() && order_.front()->signature.hash == signature.hash) {
      const std::shared_ptr<Known> candidate = order_.front();
      bool equal = false;
      if (!same_signature(candidate->signature, signature, &equal)) return false;
      if (equal) {
        *known = candidate;
        return true;
      }
    }
    const auto [first, last] = by_hash_.equal_range(signature.hash);
    std::vector<Iterator> candidates;  // copied: a comparison may run Python, and that a jit call
    for (auto it = first; it != last; ++it) candidates.push_back(it->second);
    const uint64_t version = version_;
    for (const Iterator candidate : candidates) {
      const std::shared_ptr<Known> held = *candidate;
      bool equal = false;
      if (!same_signature(held->signature, signature, &equal)) return false;
      if (version_ != version) return true;
      if (!equal) continue;
      order_.splice(order_.begin(), order_, candidate);
      *known = held;
      return true;
    }
    return true;
  }

  void insert(std::shared_ptr<Known> known) {
    ++version_;
    const uint64_t hash = known->signature.hash;
    order_.push_front(std::move(known));
    by_hash_.emplace(hash, order_.begin());
    if (order_.size() <= kMostEntries) return;
    const auto oldest = std::prev(order_.end());
    const auto [first, last] = by_hash_.equal_range((*oldest)->signature.hash);
    for (auto it = first; it != last; ++it) {
      if (it->second == oldest) {
        by_hash_.erase(it);
        break;
      }
    }
    const std::shared_ptr<Known> dropped = *oldest;  // its destructors may run Python: last of all
    order_.pop_back();
  }

  void clear() {
    ++version_;
    by_hash_.clear();
    std::list<std::shared_ptr<Known>> dropped;
    dropped.swap(order_);
  }

  size_t size() const { return order_.size(); }
  const std::list<std::shared_ptr<Known>>& all() const { return order_; }

 private:
  using Iterator = std::list<std::shared_ptr<Known>>::iterator;
  std::list<std::shared_ptr<Known>> order_;
  std::unordered_multimap<uint64_t, Iterator> by_hash_;
  uint64_t version_ = 0;
};

struct CompiledFunctionObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* weak_references;
  PyObject* dict;
  PyObject* miss;
  CallScanner::Statics* statics;
  SignatureCache* cache;
};

CompiledFunctionObject* cast(PyObject* self) {
  return reinterpret_cast<CompiledFunctionObject*>(self);
}

// A scanner for the length of a call; nested calls (in __eq__, in miss) take another one.
class BorrowedScanner {
 public:
  BorrowedScanner() {
    if (spare().empty()) {
      scanner_ = std::make_unique<CallScanner>();
    } else {
      scanner_ = std::move(spare().back());
      spare().pop_back();
    }
  }
  ~BorrowedScanner() {
    scanner_->reset();
    spare().push_back(std::move(scanner_));
  }
  CallScanner& get() { return *scanner_; }

 private:
  static std::vector<std::unique_ptr<CallScanner>>& spare() {
    static thread_local std::vector<std::unique_ptr<CallScanner>> scanners;
    return scanners;
  }
  std::unique_ptr<CallScanner> scanner_;
};

// --- Calls ---------------------------------------------------------------------------------------

// miss(args, kwargs).
Owned call_miss(CompiledFunctionObject* self, PyObject* const* args, Py_ssize_t positional,
                PyObject* keyword_names) {
  const Owned arguments(PyTuple_New(positional)), keywords(PyDict_New());
  if (!arguments || !keywords) return {};
  for (Py_ssize_t i = 0; i < positional; ++i) {
    PyTuple_SET_ITEM(arguments.get(), i, Py_NewRef(args[i]));
  }
  const Py_ssize_t count = keyword_names == nullptr ? 0 : PyTuple_GET_SIZE(keyword_names);
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* name = PyTuple_GET_ITEM(keyword_names, i);
    if (PyDict_SetItem(keywords.get(), name, args[positional + i]) != 0) return {};
  }
  PyObject* const both[] = {arguments.get(), keywords.get()};
  return Owned(PyObject_Vectorcall(self->miss, both, 2, nullptr));
}

// Stores what serves a signature; null with an error set where it does not fit.
std::shared_ptr<Known> remember(CompiledFunctionObject* self, const CallScanner& scanner,
                                PyObject* entry) {
  auto known = std::make_shared<Known>();
  known->signature = scanner.signature();
  known->held.reserve(known->signature.objects.size());
  for (PyObject* object : known->signature.objects) known->held.push_back(Owned::share(object));
  for (PyObject* object : scanner.placements()) known->held.push_back(Owned::share(object));
  known->entry = Owned::share(entry);
  if (!canonical_order(known->signature, &known->place) ||
      !check_plan(known->plan(), scanner.leaves(), known->place.data())) {
    return nullptr;
  }
  self->cache->insert(known);
  return known;
}

PyObject* run(const Known& known, const CallScanner& scanner) {
  return run_plan(known.plan(), scanner.leaves(), known.place.data());
}

PyObject* call_and_learn(CompiledFunctionObject* self, PyObject* const* args, Py_ssize_t positional,
                         PyObject* keyword_names, const CallScanner* scanner) {
  const InNativeCode native;
  std::vector<Owned> alive;  // miss runs user code, which may empty the containers of the call
  if (scanner != nullptr) {
    for (const Leaf& leaf : scanner->leaves()) alive.push_back(Owned::share(leaf.object));
    for (PyObject* object : scanner->signature().objects) alive.push_back(Owned::share(object));
  }
  const Owned answer = call_miss(self, args, positional, keyword_names);
  if (!answer) return nullptr;
  if (Py_TYPE(answer.get()) == fast_path_type) {
    if (scanner == nullptr) {
      PyErr_SetString(PyExc_TypeError,
                      "miss gave an entry for a call that only Python can flatten: "
                      "return (entry(leaves), None)");
      return nullptr;
    }
    const std::shared_ptr<Known> known = remember(self, *scanner, answer.get());
    return known ? run(*known, *scanner) : nullptr;
  }
  PyObject *result, *entry;
  if (!PyTuple_Check(answer.get()) || !PyArg_ParseTuple(answer.get(), "OO", &result, &entry)) {
    PyErr_SetString(PyExc_TypeError, "miss gives a FastPathEntry or (result, entry or None)");
    return nullptr;
  }
  const bool learn = scanner != nullptr && Py_TYPE(entry) == fast_path_type;
  if (learn && !remember(self, *scanner, entry)) return nullptr;
  return Py_NewRef(result);
}

PyObject* call(PyObject* object, PyObject* const* args, size_t flags, PyObject* keyword_names) {
  CompiledFunctionObject* self = cast(object);
  if (self->miss == nullptr) {
    PyErr_SetString(PyExc_RuntimeError, "this compiled function was garbage collected");
    return nullptr;
  }
  const Py_ssize_t positional = PyVectorcall_NARGS(flags);
  BorrowedScanner borrowed;
  CallScanner& scanner = borrowed.get();
  if (tracing() || !scanner.scan(args, positional, keyword_names, *self->statics)) {
    return call_and_learn(self, args, positional, keyword_names, nullptr);
  }
  std::shared_ptr<Known> known;
  if (!self->cache->find(scanner.signature(), &known)) return nullptr;
  if (known) return run(*known, scanner);
  return call_and_learn(self, args, positional, keyword_names, &scanner);
}

// --- Life ----------------------------------------------------------------------------------------

bool read_statics(PyObject* positions, PyObject* names, CallScanner::Statics* statics) {
  const Owned numbers(PySequence_Fast(positions, "static_argnums is a sequence of int"));
  if (!numbers) return false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(numbers.get()); ++i) {
    const Py_ssize_t position =
        PyNumber_AsSsize_t(PySequence_Fast_GET_ITEM(numbers.get(), i), PyExc_OverflowError);
    if (position == -1 && PyErr_Occurred()) return false;
    if (position < 0) {
      PyErr_SetString(PyExc_ValueError, "static_argnums of a CompiledFunction are not negative");
      return false;
    }
    statics->positions.push_back(position);
  }
  const Owned strings(PySequence_Fast(names, "static_argnames is a sequence of str"));
  if (!strings) return false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(strings.get()); ++i) {
    PyObject* name = PySequence_Fast_GET_ITEM(strings.get(), i);
    if (!PyUnicode_Check(name)) {
      PyErr_SetString(PyExc_TypeError, "static_argnames is a sequence of str");
      return false;
    }
    statics->names.push_back(Owned::share(name));
  }
  return true;
}

PyObject* function_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* const names[] = {"miss", "static_argnums", "static_argnames", nullptr};
  const Owned none(PyTuple_New(0));
  PyObject *miss, *positions = none.get(), *static_names = none.get();
  if (!none || !PyArg_ParseTupleAndKeywords(args, kwargs, "O|OO", const_cast<char**>(names), &miss,
                                            &positions, &static_names)) {
    return nullptr;
  }
  if (!PyCallable_Check(miss)) {
    PyErr_SetString(PyExc_TypeError, "miss must be callable");
    return nullptr;
  }
  auto statics = std::make_unique<CallScanner::Statics>();
  if (!read_statics(positions, static_names, statics.get())) return nullptr;
  PyObject* object = type->tp_alloc(type, 0);
  if (object == nullptr) return nullptr;
  CompiledFunctionObject* self = cast(object);
  self->vectorcall = call;
  self->miss = Py_NewRef(miss);
  self->statics = statics.release();
  self->cache = new SignatureCache;
  return object;
}

int function_traverse(PyObject* object, visitproc visit, void* arg) {
  CompiledFunctionObject* self = cast(object);
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(self->dict);
  Py_VISIT(self->miss);
  if (self->cache == nullptr) return 0;
  for (const auto& known : self->cache->all()) {
    Py_VISIT(known->entry.get());
    for (const Owned& held : known->held) Py_VISIT(held.get());
  }
  return 0;
}

int function_clear(PyObject* object) {
  CompiledFunctionObject* self = cast(object);
  Py_CLEAR(self->dict);
  Py_CLEAR(self->miss);
  if (self->cache != nullptr) self->cache->clear();
  return 0;
}

void function_dealloc(PyObject* object) {
  CompiledFunctionObject* self = cast(object);
  PyObject_GC_UnTrack(object);
  if (self->weak_references != nullptr) PyObject_ClearWeakRefs(object);
  function_clear(object);
  delete self->statics;
  delete self->cache;
  PyTypeObject* type = Py_TYPE(object);
  type->tp_free(object);
  Py_DECREF(type);
}

PyObject* function_get(PyObject* self, PyObject* instance, PyObject*) {
  if (instance == nullptr || instance == Py_None) return Py_NewRef(self);
  return PyMethod_New(self, instance);
}

PyObject* function_repr(PyObject* self) {
  const Owned wrapped(PyObject_GetAttrString(self, "__wrapped__"));
  if (!wrapped) {
    PyErr_Clear();
    return PyUnicode_FromFormat("<compiled function at %p>", self);
  }
  return PyUnicode_FromFormat("<compiled %R>", wrapped.get());
}

PyObject* cache_size(PyObject* self, PyObject*) {
  return PyLong_FromSize_t(cast(self)->cache->size());
}

PyObject* clear_cache(PyObject* self, PyObject*) {
  cast(self)->cache->clear();
  Py_RETURN_NONE;
}

PyMethodDef function_methods[] = {
    {"cache_size", cache_size, METH_NOARGS, "Number of signatures the fast path knows."},
    {"clear_cache", clear_cache, METH_NOARGS, "Forgets them all."},
    {nullptr}};

PyMemberDef function_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(CompiledFunctionObject, vectorcall), READONLY},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(CompiledFunctionObject, weak_references), READONLY},
    {"__dictoffset__", T_PYSSIZET, offsetof(CompiledFunctionObject, dict), READONLY},
    {nullptr}};

PyGetSetDef function_getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr}, {nullptr}};

PyType_Slot function_slots[] = {
    {Py_tp_doc,
     const_cast<char*>("A function that runs compiled code for the signatures it has met, and asks "
                       "miss(args, kwargs) for the others.")},
    {Py_tp_new, reinterpret_cast<void*>(function_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(function_dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(function_traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(function_clear)},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_descr_get, reinterpret_cast<void*>(function_get)},
    {Py_tp_repr, reinterpret_cast<void*>(function_repr)},
    {Py_tp_methods, function_methods},
    {Py_tp_members, function_members},
    {Py_tp_getset, function_getset},
    {0, nullptr}};

PyType_Spec function_spec = {"lamina.runtime._runtime.CompiledFunction",
                             sizeof(CompiledFunctionObject), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE |
                                 Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
                             function_slots};

}  // namespace

bool init_compiled_function(PyObject* module) {
  auto* type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&function_spec));
  return type != nullptr && PyModule_AddType(module, type) == 0;
}

}  // namespace lamina
