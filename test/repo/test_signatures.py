"""Public functions take the arguments that JAX's take: names, order, kinds and defaults."""

import importlib
import inspect

import jax
import numpy as np
import pytest

from lamina.tools.jax_coverage import jax_names

# Arguments that JAX has for what one device, or our way of compiling, has not, or that it deprecates.
LEFT_OUT = {"out_sharding", "sharding", "accuracy", "_dot_general", "reduce_axes", "sum_match",
            "_use_logging"}  # fmt: skip
# Keyword arguments that lamina has and JAX has not.
OURS = {"control_flow", "lanes", "global_arg_shapes"}
# Namespaces and functions that differ, and why.
DIFFERENT = {
    "numpy.set_printoptions": "NumPy's own, which JAX wraps", "numpy.printoptions": "the same",
    "numpy.array": "JAX's *args stand for the arguments that ours names",
    "numpy.add": "ufuncs tell *args", "tree_util.register_pytree_node": "same, typed otherwise",
    "lax.random_gamma_grad": "JAX's *args stand for the arguments that ours names",
    "lax.PrecisionLike": "a type", "lax.ConvGeneralDilatedDimensionNumbers": "a type",
    "debug.breakpoint": "the debuggers of JAX take options of their own",
    "debug.print": "JAX may leave the format out, to no end",
    ".checkpoint": "ours is a decorator with options too", ".remat": "the same",
    ".shard_map": "ours takes the arguments of JAX's older form too", ".smap": "None infers, as Infer",
    ".jit": "JAX's default is a value that stands for none; ours is None",
    ".disable_jit": "the flags of lamina.config are context managers of one form",
    ".checking_leaks": "the same", ".transfer_guard": "the same",
}  # fmt: skip
CHECKED = [".", "numpy", "numpy.linalg", "numpy.fft", "lax", "lax.linalg", "nn", "nn.initializers", "random",
           "tree", "tree_util", "flatten_util", "ops", "image", "dtypes", "dlpack", "debug",
           "custom_derivatives", "ad_checkpoint", "scipy.special", "scipy.linalg", "scipy.signal", "scipy.fft",
           "scipy.ndimage", "scipy.integrate", "scipy.cluster.vq", "scipy.optimize",
           *(p for p in jax_names() if p.startswith(("scipy.sparse", "scipy.stats", "scipy.spatial")))]  # fmt: skip


def arguments(function):
    """The arguments as (name, kind, default); positional-only ones and those that collect others
    have no name to speak of, keyword-only ones no order."""
    out = []
    for p in inspect.signature(function).parameters.values():
        if p.name in LEFT_OUT | OURS:
            continue
        named = p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
        default = p.default.item() if isinstance(p.default, np.generic) else p.default
        # True is what our flags are set to by default.
        if p.name == "new_val":
            default = "object"
        if default is not p.empty and not isinstance(default,
            int | float | str | tuple | type | None):
            default = "object"
        out.append((p.name if named else "_", p.kind.name, default))
    return sorted(out, key=lambda a: a[0] if a[1] == "KEYWORD_ONLY" else "")


def _namespace(root, path):
    """A module, or what stands for one: scipy.stats.multivariate_normal is an attribute."""
    found = importlib.import_module(root)
    for part in path.split(".") if path != "." else ():
        try:
            found = importlib.import_module(f"{found.__name__}.{part}")
        except ModuleNotFoundError:
            found = getattr(found, part, found)
    return found


@pytest.mark.parametrize("path", CHECKED)
def test_arguments_are_jax_s(path):
    theirs = _namespace("jax", path)
    ours = _namespace("lamina", path)
    wrong = []
    for name in jax_names()[path]:
        a, b = getattr(theirs, name, None), getattr(ours, name, None)
        if b is None or f"{path.strip('.')}.{name}" in DIFFERENT or isinstance(a, type | jax.numpy.ufunc):
            continue
        try:
            want = arguments(a)
        except (TypeError, ValueError):
            continue
        if callable(a) and arguments(b) != want:
            wrong.append(f"{name}: {arguments(b)} is not {want}")
    assert not wrong, "\n".join(wrong)
