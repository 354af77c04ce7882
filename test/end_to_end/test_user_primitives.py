"""Primitives that users define: the walk of JAX's tutorial "JAX primitives", and the other rules."""

import jax
import numpy as np
import pytest

import lamina
import lamina.numpy as jnp
from lamina import lax
from lamina.extend import core
from lamina.interpreters import ad, batching, mlir
from lamina.interpreters.mlir import hlo

multiply_add_p = core.Primitive("multiply_add")


def multiply_add_prim(x, y, z):
    return multiply_add_p.bind(x, y, z)


def square_add_prim(a, b):
    return multiply_add_prim(a, a, b)


def multiply_add_impl(x, y, z):
    return np.add(np.multiply(x, y), z)


def multiply_add_abstract_eval(xs, ys, zs):
    assert xs.shape == ys.shape
    assert xs.shape == zs.shape
    return core.ShapedArray(xs.shape, xs.dtype)


def multiply_add_lowering(ctx, xc, yc, zc):
    return [hlo.AddOp(hlo.MulOp(xc, yc), zc).result]


def multiply_add_value_and_jvp(arg_values, arg_tangents):
    x, y, z = arg_values
    xt, yt, zt = arg_tangents
    primal_out = multiply_add_prim(x, y, z)

    def make_zero(tan):
        return lax.full_like(x, 0) if type(tan) is ad.Zero else tan

    output_tangent = multiply_add_prim(
        make_zero(xt), y, multiply_add_prim(x, make_zero(yt), make_zero(zt))
    )
    return (primal_out, output_tangent)


def multiply_add_transpose(ct, x, y, z):
    if not ad.is_undefined_primal(x):
        assert ad.is_undefined_primal(y)
        ct_y = ad.Zero(y.aval) if type(ct) is ad.Zero else multiply_add_prim(x, ct, lax.full_like(x, 0))
        return None, ct_y, ct
    assert ad.is_undefined_primal(x)
    ct_x = ad.Zero(x.aval) if type(ct) is ad.Zero else multiply_add_prim(ct, y, lax.full_like(y, 0))
    return ct_x, None, ct


def multiply_add_batch(vector_arg_values, batch_axes):
    assert batch_axes[0] == batch_axes[1]
    assert batch_axes[0] == batch_axes[2]
    return multiply_add_prim(*vector_arg_values), batch_axes[0]


def test_the_tutorial():
    """In the tutorial's order: each step works once its rule is there."""
    with pytest.raises(NotImplementedError, match="Abstract evaluation for 'multiply_add'"):
        square_add_prim(2.0, 10.0)
    multiply_add_p.def_impl(multiply_add_impl)
    assert square_add_prim(2.0, 10.0) == 14.0

    with pytest.raises(NotImplementedError, match="Abstract evaluation for 'multiply_add'"):
        lamina.jit(square_add_prim)(2.0, 10.0)
    multiply_add_p.def_abstract_eval(multiply_add_abstract_eval)
    with pytest.raises(NotImplementedError, match="lowering for 'multiply_add' not implemented"):
        lamina.jit(square_add_prim)(2.0, 10.0)
    mlir.register_lowering(multiply_add_p, multiply_add_lowering, platform="cpu")
    assert lamina.jit(lambda x, y: square_add_prim(x, y))(2.0, 10.0) == 14.0
    assert lamina.jit(lambda x, y: square_add_prim(x, y), static_argnums=1)(2.0, 10.0) == 14.0

    with pytest.raises(NotImplementedError, match="Differentiation rule for 'multiply_add'"):
        lamina.jvp(square_add_prim, (2.0, 10.0), (1.0, 1.0))
    ad.primitive_jvps[multiply_add_p] = multiply_add_value_and_jvp
    assert lamina.jvp(square_add_prim, (2.0, 10.0), (1.0, 1.0)) == (14.0, 5.0)
    f = lambda a, b: lamina.jvp(square_add_prim, a, b)  # noqa: E731
    assert lamina.jit(f)((2.0, 10.0), (1.0, 1.0)) == (14.0, 5.0)

    with pytest.raises(NotImplementedError, match="Transpose rule .* for 'multiply_add'"):
        lamina.grad(square_add_prim)(2.0, 10.0)
    ad.primitive_transposes[multiply_add_p] = multiply_add_transpose
    assert lamina.grad(square_add_prim)(2.0, 10.0) == 4.0
    assert lamina.jit(lamina.grad(square_add_prim))(2.0, 10.0) == 4.0

    rows = np.array([2.0, 3.0]), np.array([10.0, 20.0])
    with pytest.raises(NotImplementedError, match="Batching rule for 'multiply_add'"):
        lamina.vmap(square_add_prim)(*rows)
    batching.primitive_batchers[multiply_add_p] = multiply_add_batch
    np.testing.assert_array_equal(lamina.vmap(square_add_prim)(*rows), [14.0, 29.0])
    np.testing.assert_array_equal(lamina.jit(lamina.vmap(square_add_prim))(*rows), [14.0, 29.0])


def test_linear_and_bilinear_primitives_without_an_implementation():
    """Evaluated by compiling; lowered from a function; batched by broadcasting."""
    double_p, times_p, both_p = (core.Primitive(n) for n in ("double", "times", "sum_and_product"))
    for p, n in ((double_p, 1), (times_p, 2)):
        p.def_abstract_eval(lambda x, *_: core.ShapedArray(x.shape, x.dtype))
        assert n
    mlir.register_lowering(double_p, mlir.lower_fun(lambda x: x + x, multiple_results=False))
    mlir.register_lowering(times_p, lambda ctx, x, y: [hlo.multiply(x, y)])
    ad.deflinear2(double_p, lambda ct, x: [double_p.bind(ct)])
    ad.defbilinear(times_p, lambda ct, x, y: times_p.bind(ct, y), lambda ct, x, y: times_p.bind(x, ct))
    batching.defvectorized(double_p)
    batching.defbroadcasting(times_p)
    both_p.multiple_results = True
    both_p.def_effectful_abstract_eval(lambda x, y: ([x, x], set()))
    mlir.register_lowering(both_p, mlir.lower_fun(lambda x, y: [x + y, x * y]))
    batching.defbroadcasting(both_p)

    x, y = np.linspace(0, 1, 4).astype(np.float32), np.arange(1, 5, dtype=np.float32)
    mine = lambda x, y: jnp.sum(times_p.bind(double_p.bind(x), jnp.sin(y)))  # noqa: E731
    theirs = lambda x, y: jax.numpy.sum(2 * x * jax.numpy.sin(y))  # noqa: E731
    np.testing.assert_array_equal(double_p.bind(x), 2 * x)
    for wrap, other in ((lambda f: f, lambda f: f), (lamina.jit, jax.jit)):
        got = wrap(lamina.grad(mine, (0, 1)))(x, y)
        want = other(jax.grad(theirs, (0, 1)))(x, y)
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)
    hess = lamina.jit(lamina.hessian(lambda x: mine(x, x)))(x)
    np.testing.assert_allclose(hess, jax.hessian(lambda x: theirs(x, x))(x), rtol=1e-5, atol=1e-6)
    rows = np.stack([x, y])
    got = lamina.jit(lamina.vmap(lamina.grad(mine, 1), (0, None)))(rows, y)
    np.testing.assert_allclose(got, jax.vmap(jax.grad(theirs, 1), (0, None))(rows, y), rtol=1e-5)
    s, p = lamina.jit(lambda x, y: both_p.bind(x, y))(x, y)
    np.testing.assert_allclose((s, p), (x + y, x * y), rtol=1e-6)


def test_rules_of_operands_and_the_registries():
    f_p = core.Primitive("f")
    f_p.def_abstract_eval(lambda x, y: x)
    mlir.register_lowering(f_p, mlir.lower_fun(lambda x, y: jnp.sin(x) * y, False))
    ad.defjvp(f_p, lambda g, x, y: g * jnp.cos(x) * y, None)
    x = np.float32(0.5)
    assert lamina.grad(lambda x, y: f_p.bind(x, y), (0, 1))(x, x) == (np.cos(x) * x, 0.0)
    ad.defjvp2(f_p, None, lambda g, ans, x, y: g * ans / y)
    assert lamina.jit(lamina.grad(lambda x, y: f_p.bind(x, y), 1))(x, x) == np.sin(x)
    assert f_p in ad.primitive_jvps
    assert lax.sin_p in ad.primitive_jvps
    assert f_p not in batching.primitive_batchers
    assert core.primitives.sin_p is lax.sin_p
    with pytest.raises(NotImplementedError, match="Transpose rule"):
        ad.get_primitive_transpose(f_p)


def test_a_primitive_over_a_named_axis():
    total_p = core.Primitive("total")
    total_p.def_abstract_eval(lambda x, *, axis_name: x)

    def rule(axis, args, dims, *, axis_name):
        assert (axis.name, axis.size) == (axis_name, 4)
        return jnp.sum(args[0], dims[0]), batching.not_mapped

    batching.axis_primitive_batchers[total_p] = rule
    f = lambda x: x / total_p.bind(x, axis_name="i")  # noqa: E731
    x = np.arange(1, 5, dtype=np.float32)
    np.testing.assert_allclose(lamina.jit(lamina.vmap(f, axis_name="i"))(x), x / 10, rtol=1e-6)


def test_jaxprs_read_and_made():
    from lamina.interpreters import partial_eval as pe

    closed = lamina.make_jaxpr(lambda x, y: (lamina.jit(jnp.sin)(x), y * 2.0, x * 3.0))(1.0, 2.0)
    assert isinstance(closed, core.ClosedJaxpr)
    assert [str(e.primitive) for e in closed.eqns] == ["jit", "mul", "mul"]
    assert len(list(core.subjaxprs(closed.jaxpr))) == 1
    slim, used = pe.dce_jaxpr(closed.jaxpr, [True, False, False])
    assert used == [True, False]
    assert len(slim.eqns) == 1
    np.testing.assert_allclose(core.jaxpr_as_fun(closed)(1.0, 2.0), [np.sin(1.0), 4.0, 3.0], rtol=1e-6)
    jaxpr, out_avals, consts = pe.trace_to_jaxpr_dynamic(
        lambda x: [jnp.sin(x)], [core.ShapedArray((3,), np.dtype("float32"))]
    )
    assert (len(jaxpr.eqns), out_avals[0].shape, consts) == (1, (3,), [])
    core.check_jaxpr(jaxpr)


class Rows:
    """No pytree: vmap knows of it by registration."""

    def __init__(self, a, b):
        self.a, self.b = a, b


class Along(tuple):
    """A spec: where the batch is in each of the two parts."""


def test_a_mapped_type():
    batching.register_vmappable(
        Rows, Along, int,
        lambda cont, index, x, spec: Rows(cont(x.a, spec[0]), cont(x.b, spec[1]) + index()),
        lambda cont, size, x, spec: Rows(cont(size, x.a, spec[0]), cont(size, x.b, spec[1])),
        None,
    )  # fmt: skip
    a, b = np.arange(6.0, dtype=np.float32).reshape(2, 3), np.ones((4, 2), np.float32)

    def f(rows, y):
        return Rows(rows.a * y, rows.b), rows.a.sum()

    def whole(a, b):
        rows, sums = lamina.vmap(f, (Along((0, -1)), 0), (Along((1, 0)), 0))(Rows(a, b), a[:, 0])
        inner = lamina.vmap(lambda r: r.b, (Along((1, 1)),), axis_size=2)(Rows(b, b))
        return rows.a, rows.b, sums, inner

    for got in (whole(a, b), lamina.jit(whole)(a, b)):
        np.testing.assert_array_equal(got[0], (a * a[:, :1]).T)
        np.testing.assert_array_equal(got[1], b.T + np.arange(2)[:, None])
        np.testing.assert_array_equal(got[2], a.sum(1))
        np.testing.assert_array_equal(got[3], b.T + np.arange(2)[:, None])
    with pytest.raises(ValueError, match="at least one non-None value in in_axes, or axis_size"):
        lamina.vmap(lambda r: r.b, (Along((0, 0)),))(Rows(a, a))
    batching.unregister_vmappable(Rows)
    with pytest.raises(TypeError, match="not a valid lamina array type"):
        lamina.vmap(lambda r: r.b)(Rows(a, a))
