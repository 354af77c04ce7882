// fast_path.h -- FastPathEntry: from the flat leaves of a call to its result.
#pragma once

#include <memory>
#include <vector>

#include "core/executable.h"
#include "core/mesh_plan.h"
#include "core/tree.h"

namespace lamina {

struct Plan {
  Owned executable;            // an Executable, or a callable list -> list
  std::vector<uint32_t> kept;  // leaves the executable takes, after the constants
  std::vector<Owned> constants;
  std::vector<Leaf> constant_leaves;
  std::vector<int64_t> outputs;  // index of a result, or ~i for leaf i passed through
  std::vector<bool> weak_types;
  OutputTree tree;
  std::unique_ptr<MeshPlan> mesh;  // of programs that devices run together
  size_t leaf_count = 0;           // least number of leaves it can serve
};

struct FastPathObject {
  PyObject_HEAD Plan* plan;
};

extern PyTypeObject* fast_path_type;

bool init_fast_path(PyObject* module);

// Runs the plan. `place`, where not null, says at which index of `leaves` canonical leaf i stands.
PyObject* run_plan(const Plan& plan, const std::vector<Leaf>& leaves, const uint32_t* place);

// Whether leaves of these types can be given to the plan; false with an error set.
bool check_plan(const Plan& plan, const std::vector<Leaf>& leaves, const uint32_t* place);

}  // namespace lamina
