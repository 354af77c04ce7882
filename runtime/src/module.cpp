// module.cpp -- the Python module lamina.runtime._runtime.
#include <nanobind/nanobind.h>

namespace nb = nanobind;

NB_MODULE(_runtime, m) { m.doc() = "Native runtime of lamina."; }
