// tree.h -- builds the result of a call from its arrays.
#pragma once

#include <vector>

#include "core/python.h"

namespace lamina {

// Compiled from a template: a tree of tuple, list, dict, None and namedtuples whose leaves are
// integers, each an index into the flat results. Anything else callable unflattens by itself.
class OutputTree {
 public:
  // False with an error set where the template holds something else, or an index >= count.
  bool compile(PyObject* tree_template, size_t count);
  // New reference, or null with an error set. Leaves are borrowed.
  PyObject* build(const std::vector<Owned>& leaves) const;

  PyObject* unflatten() const { return unflatten_.get(); }  // borrowed; null for a template

 private:
  enum class Kind { kLeaf, kNone, kTuple, kList, kDict, kNamedTuple };
  struct Node {
    Kind kind = Kind::kNone;
    size_t index = 0;
    std::vector<Node> children;
    std::vector<Owned> keys;
    Owned type;
  };
  static bool compile(PyObject* object, size_t count, Node* node);
  static PyObject* build(const Node& node, const std::vector<Owned>& leaves);

  Node root_;
  Owned unflatten_;
};

}  // namespace lamina
