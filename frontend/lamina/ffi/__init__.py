"""Compiled functions of other libraries in programs: XLA's foreign function interface, on the CPU.

`register_ffi_target` takes handlers that were compiled against XLA's headers (version 0 of its typed
interface), as C++ libraries for JAX bring them; `ffi_call` calls one. A call copies its arrays, and
happens on one thread: tasks of XLA's thread pool run at once, and a future that a handler gives is
waited for. There is no memory, stream or state of XLA for a handler to ask for: one that does gets the
error UNIMPLEMENTED, which the call raises.
"""

from lamina.ffi.call import ffi_call as ffi_call
from lamina.ffi.call import ffi_lowering as ffi_lowering
from lamina.ffi.targets import (
    build_ffi_lowering_function as build_ffi_lowering_function,
)
from lamina.ffi.targets import include_dir as include_dir
from lamina.ffi.targets import pycapsule as pycapsule
from lamina.ffi.targets import register_ffi_target as register_ffi_target
from lamina.ffi.targets import (
    register_ffi_target_as_batch_partitionable as register_ffi_target_as_batch_partitionable,
)
from lamina.ffi.targets import register_ffi_type as register_ffi_type
from lamina.ffi.targets import register_ffi_type_id as register_ffi_type_id
