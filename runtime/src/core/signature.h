// signature.h -- the part of a jit call that decides which compiled code serves it.
#pragma once

#include <vector>

#include "core/leaf.h"

namespace lamina {

// Tree structure, leaf types, static values and configuration of a call, as words and objects.
// Dict keys stand in insertion order: no sorting on the way to a hit, at the price of one entry
// for each order that a caller uses.
struct Signature {
  std::vector<uint64_t> words;
  std::vector<PyObject*> objects;  // dict keys, static values, types and aux data of custom nodes
  uint64_t hash = 0;
};

// False where a comparison of objects raised; `*equal` is set otherwise. May run Python code.
bool same_signature(const Signature& a, const Signature& b, bool* equal);

// Reads one call. Everything it holds is borrowed from the call's arguments, but for what custom
// nodes gave, which it keeps until reset().
class CallScanner {
 public:
  // Argument k is static where is_static_position / is_static_name says so.
  struct Statics {
    std::vector<Py_ssize_t> positions;
    std::vector<Owned> names;
  };

  // False, with no error set, for a call that only Python can handle.
  bool scan(PyObject* const* args, Py_ssize_t positional, PyObject* keyword_names,
            const Statics& statics);
  void reset();

  const Signature& signature() const { return signature_; }
  // In the order of the scan.
  const std::vector<Leaf>& leaves() const { return leaves_; }
  // Whose addresses are in the signature.
  const std::vector<PyObject*>& placements() const { return placements_; }

 private:
  bool node(PyObject* object);
  bool container(PyObject* object, PyTypeObject* type);
  bool dict(PyObject* object);
  bool custom(PyObject* object, PyObject* flatten);
  bool static_value(PyObject* value);
  void leaf_words(const Leaf& leaf);
  bool finish_hash();

  Signature signature_;
  std::vector<Leaf> leaves_;
  std::vector<PyObject*> placements_;
  std::vector<Owned> held_;
  bool x64_ = false;
  int depth_ = 0;
};

// For each leaf of a call in canonical order (keywords and dict keys sorted), its place in the
// order of the scan. False with TypeError set where keys cannot be sorted.
bool canonical_order(const Signature& signature, std::vector<uint32_t>* order);

// `flatten(object) -> (children, aux)` for instances of exactly `type`.
bool register_node(PyObject* type, PyObject* flatten);
bool is_namedtuple_type(PyTypeObject* type);

// Configuration words of the calling thread.
struct Config {
  uint64_t epoch = 0;
  bool x64 = false;
};
Config current_config();
void set_config(Config config);
void set_thread_config(Config config);
void clear_thread_config();

bool tracing();
bool set_tracing(bool value);

}  // namespace lamina
