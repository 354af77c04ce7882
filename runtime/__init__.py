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
    begin_host_copy,
    clear_thread_config,
    copy_on_device,
    cuda_enter_stream,
    cuda_leave_stream,
    cuda_order_consumer,
    cuda_set_stream,
    cuda_shut_down,
    cuda_stream,
    enter_native_code,
    from_dlpack,
    get_num_threads,
    is_tracing,
    leave,
    leave_native_code,
    limit_vector_bits,
    machine_limits,
    move_to_device,
    place_array,
    pool_stats,
    register_node,
    request_tile_registers,
    run_on_devices,
    run_on_gpus,
    set_array_type,
    set_async,
    set_collective_timeout,
    set_config,
    set_default_sharding,
    set_gather,
    set_num_threads,
    set_pool_limit,
    set_run_error_type,
    set_single_device_type,
    set_thread_config,
    set_tracing,
    sharded_array,
    symbols,
    tell_processes,
    to_array,
    to_device,
    to_dlpack,
    to_host,
    trim_pool,
    trouble_of_processes,
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
    "begin_host_copy",
    "clear_thread_config",
    "copy_on_device",
    "cuda_enter_stream",
    "cuda_leave_stream",
    "cuda_order_consumer",
    "cuda_set_stream",
    "cuda_shut_down",
    "cuda_stream",
    "enter_native_code",
    "from_dlpack",
    "get_num_threads",
    "is_tracing",
    "leave",
    "leave_native_code",
    "limit_vector_bits",
    "machine_limits",
    "move_to_device",
    "place_array",
    "pool_stats",
    "register_node",
    "request_tile_registers",
    "run_on_devices",
    "run_on_gpus",
    "set_array_type",
    "set_async",
    "set_collective_timeout",
    "set_config",
    "set_default_sharding",
    "set_gather",
    "set_single_device_type",
    "set_num_threads",
    "set_pool_limit",
    "set_run_error_type",
    "set_thread_config",
    "set_tracing",
    "sharded_array",
    "symbols",
    "tell_processes",
    "to_array",
    "to_device",
    "to_dlpack",
    "to_host",
    "trim_pool",
    "trouble_of_processes",
    "wait_all",
    "worker_count",
    "wrap_memory",
    "x64_enabled",
]

# Calls that were made are finished before a fork, so that the child finds nothing half done. At exit
# nobody sees their results any more.
os.register_at_fork(before=wait_all)
atexit.register(cuda_shut_down)
atexit.register(leave)


def _check_environment() -> None:
    """Raises ValueError where LAMINA_NUM_THREADS is no count: it would go unheard. Limits vectors
    where LAMINA_PROCESSOR names a lesser processor."""
    text = os.environ.get("LAMINA_NUM_THREADS", "").strip()
    if text and not (text.isdecimal() and int(text) > 0):
        raise ValueError(
            f"environment variable LAMINA_NUM_THREADS={text!r}: expected how many threads programs may "
            "use, 1 or more"
        )
    if "LAMINA_PROCESSOR" in os.environ:
        from lamina.runtime.processor import assumed_processor, vector_bits

        assumed = assumed_processor()
        if assumed is not None:
            limit_vector_bits(vector_bits(assumed.features))


_check_environment()
