"""Programs as JAX hands them to a plugin, and what they give when lamina compiles and runs them."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jaxlib import _jax, xla_client

from lamina.dialects.vendors import stablehlo_ext
from lamina.jax_plugin.compiler import CompiledProgram, compile_program
from lamina.runtime import array_from_numpy

VERSION = stablehlo_ext.get_current_version()


def bytes_of(lowered: Any, version: str = VERSION) -> bytes:
    """What JAX's client for plugins sends of a lowered function, for a plugin that reads `version`."""
    return _jax.mlir.serialize_portable_artifact(lowered.compiler_ir("stablehlo"), version, True)


def options(**settings: Any) -> bytes:
    """Serialised compile options for one device, with JAX's compiler_options."""
    made = xla_client.CompileOptions()
    made.num_replicas = made.num_partitions = 1
    made.device_assignment = xla_client.DeviceAssignment.create(np.zeros((1, 1), np.int32))
    made.env_option_overrides = list(settings.items())
    return made.SerializeAsString()


def lowered(f: Callable[..., Any], *args: Any, platform: str = "cpu", **jit_options: Any) -> Any:
    """A function as JAX lowers it for a platform, with all of its arguments."""
    traced = jax.jit(f, keep_unused=True, **jit_options).trace(*args)
    return traced.lower(lowering_platforms=(platform,))


def compiled(f: Callable[..., Any], *args: Any, **jit_options: Any) -> CompiledProgram:
    """A function lowered by JAX, compiled by lamina."""
    return compile_program(bytes_of(lowered(f, *args, **jit_options)), "mlir", options())


def run(program: CompiledProgram, args: Sequence[Any]) -> list[np.ndarray]:
    """What a program gives for the leaves of these arguments."""
    leaves = [np.asarray(_physical(x)) for x in jax.tree_util.tree_leaves(args)]
    arrays = [array_from_numpy(np.asarray(x, spec.dtype)) for x, spec in zip(leaves, _dtypes(program), strict=True)]
    return [np.asarray(x) for x in program.executable(arrays)]


def _physical(x: Any) -> Any:
    is_key = isinstance(x, jax.Array) and jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key)
    return jax.random.key_data(x) if is_key else x


def _dtypes(program: CompiledProgram) -> list[Any]:
    from lamina.runtime.executable import dtype_named

    class Spec:
        def __init__(self, name: str) -> None:
            self.dtype = dtype_named(name)

    return [Spec(of.dtype) for of in program.inputs]


def check(f: Callable[..., Any], *args: Any, rtol: float = 2e-5, atol: float = 1e-6) -> None:
    """A function gives the same through lamina as by JAX's own CPU backend."""
    got = run(compiled(f, *args), args)
    want = [np.asarray(_physical(x)) for x in jax.tree_util.tree_leaves(jax.jit(f)(*args))]
    assert len(got) == len(want)
    for a, b in zip(got, want, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape, (a.dtype, a.shape, b.dtype, b.shape)
        np.testing.assert_allclose(_wide(a), _wide(b), rtol=rtol, atol=atol)


def _wide(x: np.ndarray) -> np.ndarray:
    """Numbers of dtypes that NumPy does not know as ones that it does."""
    return x if x.dtype.isbuiltin == 1 else x.astype(np.float64)
