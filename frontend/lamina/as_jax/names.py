"""The names that classes of ours have in JAX: where messages show a class, or a program asks for the
module of one, it is JAX's."""

from __future__ import annotations

import copyreg
import importlib

from lamina import errors
from lamina.core.array_class import ArrayMeta

_CLASSES = {
    "lamina.array:ArrayImpl": "jaxlib._jax:ArrayImpl",
    "lamina.core.array_class:Array": "jax:Array",
    "lamina.core.refs:Ref": "jax._src.core:Ref",
    "lamina.core.trace:Tracer": "jax._src.core:Tracer",
    "lamina.interpreters.batching:VmapTracer": "jax._src.interpreters.batching:BatchTracer",
    "lamina.interpreters.jvp:GradTracer": "jax._src.interpreters.ad:JVPTracer",
    "lamina.interpreters.linearize:UnknownTracer": "jax._src.interpreters.ad:LinearizeTracer",
    "lamina.interpreters.staging:JitTracer": "jax._src.interpreters.partial_eval:DynamicJaxprTracer",
    "lamina.key_array:KeyArray": "jax._src.random.prng:PRNGKeyArray",
    "lamina.shape_dtype:ShapeDtypeStruct": "jax:ShapeDtypeStruct",
}


def give() -> None:
    """Renames the classes, for the rest of the process."""
    for ours, theirs in _CLASSES.items():
        module, _, name = theirs.partition(":")
        _rename(_class(ours), module, name)
    copyreg.pickle(ArrayMeta, _by_our_name)  # type: ignore[arg-type]
    for name in dir(errors):
        cls = getattr(errors, name)
        if isinstance(cls, type) and cls.__module__ == errors.__name__:
            _rename(cls, "jax.errors", cls.__name__.replace("Lamina", "JAX"))


def _class(place: str) -> type:
    home, _, name = place.partition(":")
    found: type = getattr(importlib.import_module(home), name)
    return found


def _by_our_name(cls: type) -> object:
    """How a class of arrays is pickled: JAX's modules of some are not there to be imported."""
    for place in _CLASSES:
        if _class(place) is cls:
            return _class, (place,)
    return cls.__qualname__


def _rename(cls: type, module: str, name: str) -> None:
    cls.__module__, cls.__name__, cls.__qualname__ = module, name, name
