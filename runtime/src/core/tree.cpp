// tree.cpp -- see tree.h.
#include "core/tree.h"

#include "core/signature.h"

namespace lamina {

bool OutputTree::compile(PyObject* tree_template, size_t count) {
  if (PyCallable_Check(tree_template)) {
    unflatten_ = Owned::share(tree_template);
    return true;
  }
  return compile(tree_template, count, &root_);
}

bool OutputTree::compile(PyObject* object, size_t count, Node* node) {
  PyTypeObject* type = Py_TYPE(object);
  if (object == Py_None) {
    node->kind = Kind::kNone;
    return true;
  }
  if (type == &PyLong_Type) {
    node->kind = Kind::kLeaf;
    node->index = PyLong_AsSize_t(object);
    if (PyErr_Occurred() || node->index >= count) {
      PyErr_Format(PyExc_ValueError, "out_tree names result %S of %zu", object, count);
      return false;
    }
    return true;
  }
  if (type == &PyDict_Type) {
    node->kind = Kind::kDict;
    PyObject *key, *value;
    for (Py_ssize_t position = 0; PyDict_Next(object, &position, &key, &value);) {
      node->keys.push_back(Owned::share(key));
      if (!compile(value, count, &node->children.emplace_back())) return false;
    }
    return true;
  }
  if (type == &PyTuple_Type || type == &PyList_Type || is_namedtuple_type(type)) {
    node->kind = type == &PyTuple_Type  ? Kind::kTuple
                 : type == &PyList_Type ? Kind::kList
                                        : Kind::kNamedTuple;
    node->type = Owned::share(reinterpret_cast<PyObject*>(type));
    const Owned items(PySequence_Fast(object, "a sequence"));
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
      PyObject* item = PySequence_Fast_GET_ITEM(items.get(), i);
      if (!compile(item, count, &node->children.emplace_back())) return false;
    }
    return true;
  }
  PyErr_Format(PyExc_TypeError,
               "out_tree holds a %s: give a callable for trees with nodes of other types",
               type->tp_name);
  return false;
}

PyObject* OutputTree::build(const std::vector<Owned>& leaves) const {
  if (!unflatten_) return build(root_, leaves);
  const Owned list(PyList_New(static_cast<Py_ssize_t>(leaves.size())));
  if (!list) return nullptr;
  for (size_t i = 0; i < leaves.size(); ++i) {
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), Py_NewRef(leaves[i].get()));
  }
  const InNativeCode native;
  return PyObject_CallOneArg(unflatten_.get(), list.get());
}

PyObject* OutputTree::build(const Node& node, const std::vector<Owned>& leaves) {
  const auto count = static_cast<Py_ssize_t>(node.children.size());
  switch (node.kind) {
    case Kind::kLeaf:
      return Py_NewRef(leaves[node.index].get());
    case Kind::kNone:
      return Py_NewRef(Py_None);
    case Kind::kTuple:
    case Kind::kNamedTuple: {
      Owned tuple(PyTuple_New(count));
      for (Py_ssize_t i = 0; tuple && i < count; ++i) {
        PyObject* child = build(node.children[i], leaves);
        if (child == nullptr) return nullptr;
        PyTuple_SET_ITEM(tuple.get(), i, child);
      }
      if (!tuple || node.kind == Kind::kTuple) return tuple.detach();
      // What namedtuple's own _make does: the class's __new__ may take other arguments.
      const Owned arguments(PyTuple_Pack(1, tuple.get()));
      if (!arguments) return nullptr;
      auto* type = reinterpret_cast<PyTypeObject*>(node.type.get());
      return PyTuple_Type.tp_new(type, arguments.get(), nullptr);
    }
    case Kind::kList: {
      Owned list(PyList_New(count));
      for (Py_ssize_t i = 0; list && i < count; ++i) {
        PyObject* child = build(node.children[i], leaves);
        if (child == nullptr) return nullptr;
        PyList_SET_ITEM(list.get(), i, child);
      }
      return list.detach();
    }
    case Kind::kDict: {
      Owned dict(PyDict_New());
      for (Py_ssize_t i = 0; dict && i < count; ++i) {
        const Owned child(build(node.children[i], leaves));
        if (!child || PyDict_SetItem(dict.get(), node.keys[i].get(), child.get()) != 0) {
          return nullptr;
        }
      }
      return dict.detach();
    }
  }
  return nullptr;
}

}  // namespace lamina
