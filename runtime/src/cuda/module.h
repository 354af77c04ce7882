// module.h -- what Python sees of GPUs.
#pragma once

#include <nanobind/nanobind.h>

namespace lamina {

void define_cuda(nanobind::module_& m);

}  // namespace lamina
