// compiled_function.h -- CompiledFunction: what jit(f) is, and the way of a call that hits.
#pragma once

#include "core/python.h"

namespace lamina {

bool init_compiled_function(PyObject* module);

}  // namespace lamina
