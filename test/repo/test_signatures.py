"""Public functions take the arguments that JAX's take: names, order, kinds and defaults."""

import importlib
import inspect

import jax
import pytest

from lamina.tools.jax_coverage import jax_names

# Arguments that JAX has for what one device, or our way of compiling, has not.
LEFT_OUT = {"out_sharding", "sharding", "accuracy", "_dot_general"}
# Namespaces and functions that differ, and why.
DIFFERENT = {
    "numpy.set_printoptions": "NumPy's own, which JAX wraps", "numpy.printoptions": "the same",
    "numpy.array": "JAX's *args stand for the arguments that ours names",
    "numpy.add": "ufuncs tell *args", "tree_util.register_pytree_node": "same, typed otherwise",
}  # fmt: skip
CHECKED = ["numpy", "tree", "tree_util", "flatten_util", "ops", "image", "dlpack", "scipy.ndimage",
           "scipy.integrate", "scipy.cluster.vq"]  # fmt: skip


def arguments(function):
    """The arguments as (name, kind, default); positional-only ones have no name to speak of."""
    out = []
    for p in inspect.signature(function).parameters.values():
        if p.name in LEFT_OUT:
            continue
        name = "_" if p.kind is p.POSITIONAL_ONLY else p.name
        default = p.default
        if default is not p.empty and not isinstance(default,
            int | float | str | tuple | type | None):
            default = "object"
        out.append((name, p.kind.name, default))
    return out


@pytest.mark.parametrize("path", CHECKED)
def test_arguments_are_jax_s(path):
    theirs = importlib.import_module(f"jax.{path}")
    ours = importlib.import_module(f"lamina.{path}")
    wrong = []
    for name in jax_names()[path]:
        a, b = getattr(theirs, name), getattr(ours, name, None)
        if b is None or f"{path}.{name}" in DIFFERENT or isinstance(a, type | jax.numpy.ufunc):
            continue
        try:
            want = arguments(a)
        except (TypeError, ValueError):
            continue
        if callable(a) and arguments(b) != want:
            wrong.append(f"{name}: {arguments(b)} is not {want}")
    assert not wrong, "\n".join(wrong)
