"""experimental.hijax.HiPrim: operations that classes define."""

import numpy as np
import pytest

import lamina
import lamina.numpy as jnp
from lamina.experimental import hijax


class Cube(hijax.HiPrim):
    """x ** 3, whose derivative is `factor` times that of x ** 3 / 3."""

    def __init__(self, aval, factor=3):
        self.in_avals, self.out_aval, self.params = (aval,), aval, {"factor": factor}
        super().__init__()

    def expand(self, x):
        return x * x * x

    def vjp_fwd(self, nzs_in, x):
        return self(x), x

    def vjp_bwd_retval(self, x, outgrad):
        return (self.factor * x * x * outgrad,)

    def batch(self, axis_data, args, dims):
        assert axis_data.size == 4
        return Cube(lamina.typeof(args[0]), self.factor)(args[0]), dims[0]


class Forward(Cube):
    """The same by a rule of forward mode."""

    vjp_bwd_retval = hijax.HiPrim.vjp_bwd_retval

    def jvp(self, primals, tangents):
        return self.expand(*primals), self.factor * primals[0] ** 2 * tangents[0]


def applied(kind, factor=3):
    return lambda x: kind(lamina.typeof(x), factor)(x)


@pytest.mark.parametrize("kind", [Cube, Forward])
def test_rules_are_used(kind):
    assert float(lamina.jit(applied(kind))(2.0)) == 8.0
    assert float(lamina.grad(applied(kind))(2.0)) == 12.0
    assert float(lamina.grad(applied(kind, 5))(2.0)) == 20.0
    np.testing.assert_array_equal(lamina.vmap(applied(kind))(jnp.arange(4.0)), [0, 1, 8, 27])
    if kind is Forward:
        assert float(lamina.jvp(applied(kind), (2.0,), (1.0,))[1]) == 12.0


def test_what_is_refused():
    with pytest.raises(TypeError, match=r"takes f32\[2\], not f32\[3\]"):
        Cube(lamina.typeof(jnp.ones(2)))(jnp.ones(3))
    with pytest.raises(TypeError, match="takes"):
        Cube(lamina.typeof(jnp.ones(2)))()

    class Nothing(hijax.HiPrim):
        pass

    with pytest.raises(AttributeError, match="in_avals"):
        Nothing()

    class Own(hijax.HiType):
        pass

    with pytest.raises(NotImplementedError, match="type of its own"):
        Cube(Own())(1.0)
    assert hijax.VJPHiPrimitive is hijax.HiPrim
