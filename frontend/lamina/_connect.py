"""The injections that cut import cycles, and the threads between settings and runtime.

- core's evaluation trace gets the compiler (an operation outside any transformation runs at once);
- Array and Tracer get operators and methods, which stand above them in lamina.numpy;
- modules that are loaded at first use are loaded whole;
- MLIR's side tells the runtime which threads are inside it.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from typing import Any

from lamina import config, errors, runtime
from lamina.array import ArrayImpl, first_gpu
from lamina.core import current_mesh, trace
from lamina.core.array_class import Array
from lamina.core.avals import ShapedArray
from lamina.core.placed import Placed
from lamina.dialects import whole_imports
from lamina.dialects.interrupts import set_native_code
from lamina.interpreters.evaluation import EvalTrace


def _array_aval(x: ArrayImpl) -> ShapedArray:
    aval = x.aval_cache
    if aval is None:
        place = x.placement
        aval = ShapedArray(x.shape, x.dtype, x.weak_type, sharding=place)
        if not config.remove_size_one_mesh_axis_from_type.value:  # a type of that setting's block
            x.aval_cache = aval
    elif aval.placed is not None and config.remove_size_one_mesh_axis_from_type.value:
        return ShapedArray(x.shape, x.dtype, x.weak_type, sharding=x.placement)
    return aval


def _parts_of_defaultdict(d: defaultdict[Any, Any]) -> tuple[Any, Any]:
    keys = sorted(d)
    return [d[key] for key in keys], (d.default_factory, *keys)


def _settings_changed(scope: str) -> None:
    epoch = hash((config.call_key(), current_mesh.key())) & 0x7FFF_FFFF
    x64 = config.enable_x64.value
    _default_device_changed(scope)
    if scope == "thread":
        runtime.set_thread_config(epoch, x64)
    elif scope == "thread ends":
        runtime.clear_thread_config()
    else:
        runtime.set_config(epoch, x64)


def _default_device_changed(scope: str) -> None:
    device = config.default_device.value
    if device is None and config.platforms.value[0] == "cuda":
        device = first_gpu()
    if device is None and not _default_device_set:
        return
    _default_device_set.add(scope)  # once set, it may have to be taken back
    from lamina.placement import uncommitted

    sharding = None if scope == "thread ends" else uncommitted(device)
    runtime.set_default_sharding(sharding, scope != "process")


_default_device_set: set[str] = set()


def _sharding_of_type(aval: ShapedArray) -> object:
    from lamina.sharding.explicit import sharding_of

    return sharding_of(aval)


def _placed_by(sharding: object, ndim: int) -> Placed | None:
    if getattr(sharding, "mesh", None) is None:  # on one device, as most
        return None
    from lamina.sharding.explicit import placed_by

    return placed_by(sharding, ndim)


def _gather(array: ArrayImpl) -> ArrayImpl:
    from lamina.placement import gather

    return gather(array)


def connect() -> None:
    """Called once, when lamina is imported."""
    from lamina import shape_dtype
    from lamina.jit import programs
    from lamina.key_array import KeyArray
    from lamina.numpy.array_methods import attach, attach_compiled

    ShapedArray.sharding_rule = staticmethod(_sharding_of_type)
    ShapedArray.placed_rule = staticmethod(_placed_by)
    trace.register_value_type(ArrayImpl, _array_aval)
    trace.register_type_alone(shape_dtype.ShapeDtypeStruct, lambda x: x.aval)
    trace.register_value_type(KeyArray, lambda x: x.aval, lambda x: x.packed)
    runtime.register_node(OrderedDict, lambda d: (tuple(d.values()), tuple(d)))
    runtime.register_node(defaultdict, _parts_of_defaultdict)
    runtime.register_node(KeyArray, lambda keys: ((keys.packed,), keys.dtype))  # a leaf, as its array is
    trace.set_eval_trace(EvalTrace(programs.compile_primitive, programs.run_jaxpr))
    trace.observe_tracing(runtime.set_tracing)
    config.on_change(_settings_changed)
    runtime.set_run_error_type(errors.JaxRuntimeError)
    runtime.set_gather(_gather)
    whole_imports.install()
    set_native_code(runtime.enter_native_code, runtime.leave_native_code)
    attach(Array)
    attach(trace.Tracer)
    attach_compiled(ArrayImpl)
    ArrayImpl.aval = property(_array_aval)  # type: ignore
