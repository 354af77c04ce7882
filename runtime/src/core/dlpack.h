// dlpack.h -- arrays in and out of other libraries without a copy, through DLPack.
#pragma once

#include "core/array.h"

namespace lamina {

// A capsule "dltensor", or "dltensor_versioned" (marked read-only) where versioned.
PyObject* to_dlpack(ArrayObject* array, bool versioned);

// An Array on the memory of either kind of capsule, which is consumed. The memory is shared where
// it is dense and row-major, copied otherwise.
PyObject* from_dlpack(PyObject* capsule);

}  // namespace lamina
