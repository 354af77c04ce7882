"""hijax.HiPrim: the same classes over JAX's and lamina's hijax."""

import numpy as np
import pytest
from jax.experimental import hijax as jax_hijax
from support.oracle.judge import JAX, LAMINA, check_all

import lamina
from lamina.experimental import hijax


def kinds(m):
    """Classes of x * sin(y) by the rules that they define."""
    h = hijax if m is LAMINA else jax_hijax

    class Base(h.HiPrim):
        def __init__(self, x, y):
            self.in_avals, self.out_aval, self.params = ({"x": x}, y), x, {"name": "scaled"}
            super().__init__()

        def expand(self, a, y):
            return a["x"] * m.np.sin(y)

        def batch(self, axis, args, dims):
            x, y = (m.np.moveaxis(v, d, 0) if d is not None else m.np.stack([v] * axis.size)
                    for v, d in ((args[0]["x"], dims[0]["x"]), (args[1], dims[1])))  # fmt: skip
            types = m.module.typeof(x), m.module.typeof(y)
            return type(self)(*types)({"x": x}, y), 0

    class Reverse(Base):
        def vjp_fwd(self, nonzero, a, y):
            return self(a, y), (a["x"], y)

        def vjp_bwd_retval(self, res, g):
            return {"x": g * m.np.sin(res[1])}, 2 * g * res[0] * m.np.cos(res[1])

    class Places(Base):
        def vjp_fwd(self, nonzero, a, y):
            return self(a, y), (a["x"], y)

        def vjp_bwd(self, res, g, a, y):
            a["x"].accum(g)
            y.accum(3 * g * res[0])
            return {"g": g}

    class Forward(Base):
        def jvp(self, primals, tangents):
            (a, y), (da, dy) = primals, tangents
            dx, dy = (h.instantiate_zeros(t) for t in (da["x"], dy))
            return self(a, y), dx * m.np.sin(y) + 5 * dy * a["x"]

        vjp_fwd, vjp_bwd_retval = h.vjp_from_jvp

    class Linear(Base):
        def lin(self, nonzero, a, y):
            return self(a, y), (a["x"], y)

        def linearized(self, res, da, dy):
            dx, dy = (h.instantiate_zeros(t) for t in (da["x"], dy))
            return dx * m.np.sin(res[1]) + 7 * dy * res[0]

        vjp_fwd, vjp_bwd_retval = h.vjp_from_lin
        jvp = h.jvp_from_lin

    return {"reverse": Reverse, "places": Places, "forward": Forward, "linear": Linear}


X, Y = np.array([0.5, -1.0, 2.0], np.float32), np.array([1.0, 2.0, 3.0], np.float32)


@pytest.mark.parametrize("kind", ["reverse", "places", "forward", "linear"])
def test_rules(kind):
    def program(m):
        x, y = m.np.asarray(X), m.np.asarray(Y)

        def f(x, y):
            return kinds(m)[kind](m.module.typeof(x), m.module.typeof(y))({"x": x}, y)

        def total(x, y):
            return m.np.sum(f(x, y) ** 2)

        out = {
            "value": f(x, y), "jit": m.jit(f)(x, y), "grad": m.grad(total, (0, 1))(x, y),
            "grad of one": m.grad(total, 1)(x, y), "jit of grad": m.jit(m.grad(total))(x, y),
            "vmap": m.vmap(f)(x, y), "vmap of one": m.vmap(f, (0, None))(x, y[0]),
            "vmap of grad": m.vmap(m.grad(f, (0, 1)))(x, y),
            "grad of vmap": m.grad(lambda x: m.np.sum(m.vmap(f)(x, y)))(x),
        }  # fmt: skip
        if kind in ("forward", "linear"):
            out["jvp"] = m.jvp(f, (x, y), (y, x))
            out["jvp of one"] = m.jvp(lambda y: f(x, y), (y,), (x,))
            out["jit of jvp"] = m.jit(lambda x: m.jvp(lambda x: f(x, y), (x,), (x,)))(x)
        if kind == "places":
            out["logs"] = m.vjp(f, x, y)[1].with_logs(x)
        return out

    check_all(program, rtol=1e-5)


def test_what_is_missing_is_said():
    class Bare(hijax.HiPrim):
        def __init__(self, x):
            self.in_avals, self.out_aval, self.params = (x,), x, {}
            super().__init__()

    with pytest.raises(NotImplementedError, match="must implement `expand`"):
        Bare(lamina.typeof(X))(X)
    with pytest.raises(NotImplementedError, match="must implement `batch`"):
        lamina.vmap(lambda x: Bare(lamina.typeof(x))(x))(X)
    with pytest.raises(NotImplementedError, match="must implement `jvp`"):
        lamina.grad(lambda x: Bare(lamina.typeof(x))(x))(1.0)
    with pytest.raises(TypeError, match="takes f32"):
        Bare(lamina.typeof(X))(X[:2])
    with pytest.raises(AttributeError, match="should set `self.in_avals`"):
        hijax.HiPrim()
    prim = kinds(LAMINA)["reverse"](lamina.typeof(X), lamina.typeof(Y))
    with pytest.raises(TypeError, match="reverse mode alone"):
        lamina.jvp(lambda x: prim({"x": x}, Y), (X,), (X,))
    assert repr(prim) == "Reverse[name=scaled]" and JAX is not None
