"""Arrays, memory, threads, executables and the disk store. Knows no MLIR and no tracing."""

import atexit
import os

from lamina.runtime._runtime import (
    ArrayBase,
    Buffer,
    CompiledFunction,
    Executable,
    FastPathEntry,
    array_from_numpy,
    array_from_scalar,
    array_view,
    array_with_type,
    clear_thread_config,
    from_dlpack,
    get_num_threads,
    is_tracing,
    pool_stats,
    register_node,
    set_array_type,
    set_async,
    set_config,
    set_num_threads,
    set_pool_limit,
    set_thread_config,
    set_tracing,
    stop_dispatcher,
    symbols,
    to_array,
    to_dlpack,
    trim_pool,
    wait_all,
    worker_count,
    wrap_memory,
    x64_enabled,
)

__all__ = [
    "ArrayBase",
    "Buffer",
    "CompiledFunction",
    "Executable",
    "FastPathEntry",
    "array_from_numpy",
    "array_from_scalar",
    "array_view",
    "array_with_type",
    "clear_thread_config",
    "from_dlpack",
    "get_num_threads",
    "is_tracing",
    "pool_stats",
    "register_node",
    "set_array_type",
    "set_async",
    "set_config",
    "set_num_threads",
    "set_pool_limit",
    "set_thread_config",
    "set_tracing",
    "stop_dispatcher",
    "symbols",
    "to_array",
    "to_dlpack",
    "trim_pool",
    "wait_all",
    "worker_count",
    "wrap_memory",
    "x64_enabled",
]

# Calls that were made are finished: before a fork, so that the child finds nothing half done, and
# before the interpreter goes away under the dispatcher.
os.register_at_fork(before=wait_all)
atexit.register(stop_dispatcher)
