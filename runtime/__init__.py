"""Arrays, memory, threads, executables and the disk store. Knows no MLIR and no tracing."""

import atexit
import os

from lamina.runtime import _runtime
from lamina.runtime._runtime import (
    ArrayBase,
    Buffer,
    CompiledFunction,
    Executable,
    FastPathEntry,
    array_with_type,
    clear_thread_config,
    get_num_threads,
    register_node,
    set_config,
    set_num_threads,
    set_thread_config,
    set_tracing,
    symbols,
    to_array,
    wait_all,
)

__all__ = [
    "ArrayBase",
    "Buffer",
    "CompiledFunction",
    "Executable",
    "FastPathEntry",
    "array_with_type",
    "clear_thread_config",
    "get_num_threads",
    "register_node",
    "set_config",
    "set_num_threads",
    "set_thread_config",
    "set_tracing",
    "symbols",
    "to_array",
    "wait_all",
]

# Calls that were made are finished: before a fork, so that the child finds nothing half done, and
# before the interpreter goes away under the dispatcher.
os.register_at_fork(before=wait_all)
atexit.register(_runtime.stop_dispatcher)
