// mesh_plan.h -- calls of programs that the devices of a mesh run together: each is given its parts
// of the arguments, and what all made are the parts of the results.
#pragma once

#include <vector>

#include "core/leaf.h"

namespace lamina {

// What the frontend says of such a program (lamina.sharding.execution.OnMesh).
struct MeshPlan {
  struct Input {
    Owned sharding;
    Owned alike;  // another that was found to split as this one; null at first
  };
  struct Output {
    Owned sharding;
    std::vector<int64_t> splits;  // into how many parts each dimension is; empty before it is asked
  };
  Owned run;                     // a list for each device here -> as many lists of results
  Owned cut;                     // array, sharding -> its parts for the devices here
  Py_ssize_t devices = 0;        // of the mesh, in this process
  std::vector<Owned> constants;  // of each the parts
  std::vector<Input> inputs;     // of the leaves that the program takes
  std::vector<Output> outputs;   // of its results
  std::vector<int64_t> donated;  // leaves
};

// Reads `given`; false with a Python error set.
bool read_mesh_plan(PyObject* given, MeshPlan* plan);

// Runs the program, whose inputs[i] is the leaf operands[i]: for each device what it made, a list
// of lists. Null with a Python error set.
Owned run_on_mesh(MeshPlan& plan, const std::vector<Leaf>& operands);

// Result `index` of such a run as an array over the mesh; null with a Python error set.
Owned result_on_mesh(MeshPlan& plan, PyObject* made, size_t index, bool weak_type);

}  // namespace lamina
