"""How these tests make jaxprs: by tracing functions of given types, without running anything."""

import pytest

from lamina.core import ShapedArray, dtypes
from lamina.core.jaxpr import ClosedJaxpr
from lamina.interpreters.staging import trace_to_jaxpr


def aval(text: str) -> ShapedArray:
    """The type written as jaxprs write it: f32[2,3]."""
    name, _, shape = text.rstrip("]").partition("[")
    return ShapedArray(tuple(int(d) for d in shape.split(",") if d), dtypes.from_short_name(name))


@pytest.fixture
def trace():
    """trace(fun, "f32[3]", ...): the jaxpr of a function of these types."""

    def make(fun, *types: str) -> ClosedJaxpr:
        def flat(*args):
            out = fun(*args)
            return list(out) if isinstance(out, (tuple, list)) else [out]

        return trace_to_jaxpr(flat, [aval(t) for t in types])

    return make
