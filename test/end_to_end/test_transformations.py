"""grad, jvp, vjp, linearize, vmap and Jacobians: values are JAX's, alone and through control flow."""

import collections
import warnings
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from support.oracle.judge import JAX, LAMINA, assert_same
from support.oracle.judge import check_whole as check

import lamina
import lamina.numpy as jnp
from lamina import lax

X = np.array([0.3, -1.2, 2.5], np.float32)
M = np.linspace(-1, 1, 9, dtype=np.float32).reshape(3, 3)
Point = collections.namedtuple("Point", "x y")


def loss(m, params, x):
    h = m.np.tanh(x @ params["w"] + params["b"])
    return m.np.sum(h * h) + 0.1 * m.np.sum(params["w"] ** 2)


PARAMS = {"w": M, "b": X}


# ---- grad and value_and_grad ----------------------------------------------------------------------
def test_grad_of_pytrees():
    check(lambda m: m.grad(lambda p: loss(m, p, X))(PARAMS))
    check(lambda m: m.value_and_grad(lambda p: loss(m, p, X))(PARAMS))


@pytest.mark.parametrize("argnums", [0, 1, 2, (0,), (0, 2), (2, 0), -1, (0, -1)])
def test_argnums(argnums):
    def f(x, y, z):
        return x * y**2 + z * x

    check(lambda m: m.grad(f, argnums)(2.0, 3.0, 5.0))
    check(lambda m: m.value_and_grad(f, argnums)(2.0, 3.0, 5.0))


def test_argnums_of_pytrees_and_keywords():
    def program(m):
        def f(p, x, *, scale=1.0):
            return scale * m.np.sum(p.x * x["a"] + p.y)

        return m.grad(f, (0, 1))(Point(X, X + 1), {"a": X * 2}, scale=3.0)

    check(program)


def test_has_aux_passes_anything_through():
    def program(m):
        def f(x):
            y = m.np.sin(x)
            return m.np.sum(y), {"y": y, "n": 3, "pair": (x, None)}

        return m.grad(f, has_aux=True)(X), m.value_and_grad(f, has_aux=True)(X)

    check(program)


def test_results_and_gradients_keep_dtypes_and_weak_types():
    check(lambda m: m.value_and_grad(lambda x: x * x)(3.0))
    check(lambda m: m.value_and_grad(lambda x: x * x)(np.float16(3.0)))
    check(lambda m: m.value_and_grad(lambda x: (x * x).sum())(m.np.ones(3, m.np.bfloat16)))
    check(lambda m: m.grad(lambda x, y: x * y, (0, 1))(np.float32(3.0), 2.0))


def test_mixed_dtypes_promote_and_gradients_come_back():
    check(lambda m: m.grad(lambda x, y: (x * y).sum(), (0, 1))(X.astype(np.float16), X))


def test_x64():
    with lamina.enable_x64(True), jax.enable_x64(True):
        check(lambda m: m.grad(lambda x: m.np.sum(m.np.sin(x) * x))(X.astype(np.float64)), rtol=1e-14)
        check(lambda m: m.hessian(lambda x: m.np.sum(x**3))(X.astype(np.float64)), rtol=1e-14)


def test_unused_and_constant_arguments_have_zero_gradients():
    check(lambda m: m.grad(lambda x, y: m.np.sum(x), (0, 1))(X, M))
    check(lambda m: m.grad(lambda x: 3.0)(2.0))
    check(lambda m: m.grad(lambda x: m.np.sum(m.lax.stop_gradient(x) * x))(X))


def test_integer_arguments_have_float0_gradients():
    check(lambda m: m.grad(lambda x, n: m.np.sum(x * n), (0, 1), allow_int=True)(X, 3))
    check(lambda m: m.grad(lambda p: p["x"] * p["n"], allow_int=True)({"x": 2.0, "n": np.arange(3)[1]}))


def test_complex_gradients():
    z = np.array([1 + 2j, -0.5 + 0.1j], np.complex64)
    check(lambda m: m.grad(lambda z: m.np.sum(m.np.real(z * m.np.conj(z))))(z))
    check(lambda m: m.grad(lambda z: m.np.sum(z**2), holomorphic=True)(z))
    check(lambda m: m.grad(lambda z: m.np.abs(m.np.sum(z * z)))(z))
    check(lambda m: m.grad(lambda x: m.np.real(m.np.sum(m.np.exp(1j * x))))(X))
    check(lambda m: m.jvp(lambda z: m.np.sin(z) * z, (z,), (z * 2,)))
    check(lambda m: m.vjp(lambda z: m.np.sin(z) * z, z)[1](z * 2))


def test_grads_of_grads():
    check(lambda m: m.grad(m.grad(m.grad(lambda x: m.np.sin(x) * x**3)))(1.3))
    check(lambda m: m.grad(lambda x: m.np.sum(m.grad(lambda y: m.np.sum(m.np.exp(y * x)))(x)))(X))


def test_perturbation_confusion():
    # d/dx [x * d/dy (x + y)] = 1, not 2.
    check(lambda m: m.grad(lambda x: x * m.grad(lambda y: x + y)(1.0))(1.0))
    check(lambda m: m.jvp(lambda x: x * m.jvp(lambda y: x * y, (1.0,), (1.0,))[1], (3.0,), (1.0,)))


def test_gradients_at_ties_and_edges():
    check(lambda m: m.grad(lambda x: m.np.max(x))(np.array([1.0, 1.0, 0.0], np.float32)))
    check(lambda m: m.grad(lambda x: m.np.maximum(x, 1.0))(np.float32(1.0)))
    check(lambda m: m.grad(m.np.abs)(0.0))
    check(lambda m: m.grad(m.np.sqrt)(0.0))
    check(lambda m: m.grad(lambda x: m.np.where(x > 0, m.np.log(x), 0.0))(0.0))
    check(lambda m: m.grad(lambda x: x**2.0)(np.float32(0.0)))
    check(lambda m: m.grad(lambda y: m.np.power(0.0, y))(2.0))


def test_decorated_functions_keep_their_names():
    def f(x):
        """Doc."""
        return x

    for transform in (lamina.grad, lamina.value_and_grad, lamina.vmap, lamina.jacfwd, lamina.jit):
        assert transform(f).__name__ == "f" and transform(f).__doc__ == "Doc."


# ---- jvp, vjp, linearize ---------------------------------------------------------------------------
def test_jvp_of_pytrees():
    def program(m):
        f = lambda p, x: {"out": m.np.sin(p["w"]) @ x, "same": x}  # noqa: E731
        return m.jvp(f, ({"w": M}, X), ({"w": M * 2}, X * 3))

    check(program)


def test_jvp_gives_arrays_for_numbers():
    for m in (LAMINA, JAX):
        assert all(isinstance(x, m.Array) for x in m.jvp(m.np.asarray, (1.0,), (2.0,)))


def test_jvp_with_aux_and_integers():
    zero = np.zeros((), jax.dtypes.float0)
    check(lambda m: m.jvp(lambda x: (x * x, {"n": x + 1}), (X,), (X,), has_aux=True))
    check(lambda m: m.jvp(lambda x, n: (x * n, n), (2.0, 3), (1.0, zero)))


def test_vjp_of_pytrees():
    def program(m):
        out, back = m.vjp(lambda p, x: Point(p["w"] @ x, m.np.sum(x)), {"w": M}, X)
        return out, back(Point(X, np.float32(2.0)))

    check(program)


def test_vjp_with_aux_twice_and_partial_results():
    def program(m):
        out, back, aux = m.vjp(lambda x: ((m.np.sin(x), x * 2), m.np.cos(x)), X, has_aux=True)
        return out, back((X, X * 0)), back((X * 0, X)), aux

    check(program)


def test_vjp_of_integer_results():
    def program(m):
        out, back = m.vjp(lambda x: (x * 2, m.np.argmax(x)), X)
        return out, back((X, np.zeros((), jax.dtypes.float0)))

    check(program)


def test_linearize():
    def program(m):
        out, lin = m.linearize(lambda x, p: m.np.sin(x) * p["a"], X, {"a": X + 1})
        return out, lin(X, {"a": X}), lin(X * 0, {"a": X * 2})

    check(program)


def test_linearize_with_aux_under_jit():
    def program(m):
        def f(x):
            out, lin, aux = m.linearize(lambda v: (m.np.exp(v), v.sum()), x, has_aux=True)
            return out, lin(x), aux

        return m.jit(f)(X)

    check(program)


def test_linearized_functions_do_not_run_the_function_again():
    runs = []

    def f(x):
        runs.append(1)
        return jnp.sin(x)

    _, lin = lamina.linearize(f, X)
    lin(X), lin(X)
    _, back = lamina.vjp(f, X)
    back(X), back(X)
    assert len(runs) == 2


def test_linear_transpose():
    check(lambda m: m.linear_transpose(lambda x: M @ x, X)(X))
    check(lambda m: m.linear_transpose(lambda x, y: (2 * x + y, x), X, X)((X, X + 1)))
    shape = lambda m: m.ShapeDtypeStruct((3,), np.float32)  # noqa: E731
    check(lambda m: m.linear_transpose(lambda x: m.np.sum(3 * x), shape(m))(2.0))
    alike = SimpleNamespace(shape=(3,), dtype=np.dtype("float32"))
    check(lambda m: m.linear_transpose(lambda x: 2 * x, alike)(X))
    check(lambda m: m.linear_transpose(lambda x: 3 * x, 1)(2))
    check(lambda m: m.jit(lambda f, x: f(x))(m.linear_transpose(lambda x: M @ x, X), X))


def test_types_alone_may_be_whatever_has_a_shape_and_a_dtype():
    alike = SimpleNamespace(shape=(3,), dtype=np.dtype("float32"))
    for m in (LAMINA, JAX):
        assert m.make_jaxpr(lambda x: x + 2)(alike).in_avals[0].shape == (3,)
        assert m.make_jaxpr(lambda n, x: x + n.real, static_argnums=0)(3, 1.0).out_avals[0].shape == ()


def test_a_type_keeps_the_dtype_that_it_was_given():
    for m in (LAMINA, JAX):
        assert m.ShapeDtypeStruct((2,), np.bytes_).dtype == np.bytes_
        wide = m.ShapeDtypeStruct((2,), np.float64)
        assert wide.dtype == np.float64
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # JAX says that it narrows
            assert m.eval_shape(lambda x: x, wide).dtype == np.float32


# ---- vmap ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("in_axes", "out_axes"), [
    (0, 0), (1, 0), (0, 1), (-1, -1), ((0, None), 0), ((None, 1), 1), ((0, 1), -1),
])  # fmt: skip
def test_vmap_axes(in_axes, out_axes):
    check(lambda m: m.vmap(lambda x, y: m.np.sin(x) * y + x[0], in_axes, out_axes)(M, M.T))


def test_vmap_axes_as_prefixes_of_pytrees():
    def program(m):
        f = lambda p, x: {"a": p["w"] @ x, "b": (p["b"] + x, x.sum())}  # noqa: E731
        in_axes = ({"w": None, "b": 0}, 1)
        return m.vmap(f, in_axes, {"a": 1, "b": 0})({"w": M, "b": M}, M)

    check(program)


def test_vmap_of_unmapped_results():
    check(lambda m: m.vmap(lambda x: (x, m.np.ones(2)))(X))
    check(lambda m: m.vmap(lambda x: (x, 3.0), out_axes=(0, None))(X))
    check(lambda m: m.vmap(lambda: m.np.arange(3), axis_size=2)())
    check(lambda m: m.vmap(lambda x, n: x * n, (0, None))(X, 3))


def test_vmap_keyword_arguments_are_mapped():
    check(lambda m: m.vmap(lambda x, y: x + y)(X, y=X))


def test_vmap_of_vmap():
    check(lambda m: m.vmap(m.vmap(m.np.dot, (None, 0)), (0, None))(M, M))
    check(lambda m: m.vmap(m.vmap(lambda x, y: x * y, (0, None)), (None, 0))(X, X))


def test_vmap_of_dots_indexing_and_updates():
    check(lambda m: m.vmap(lambda a, i: a[i] + a[0])(M, np.array([2, 0, 1])))
    check(lambda m: m.vmap(lambda a, i: a.at[i].add(10.0))(M, np.array([2, 0, 1])))
    check(lambda m: m.vmap(lambda a, i: m.lax.dynamic_slice(a, (i,), (2,)))(M, np.array([2, 0, 1])))
    check(lambda m: m.vmap(lambda a, b: m.np.einsum("ij,j->i", a, b), (None, 0))(M, M))
    check(lambda m: m.vmap(lambda a: m.np.sort(a)[m.np.argsort(-a)])(M))
    check(lambda m: m.vmap(lambda a: m.np.cumsum(a), 1)(M))


def test_per_example_gradients():
    xs = np.stack([X, X + 1, X - 1, X * 2])
    check(lambda m: m.vmap(m.grad(lambda p, x: loss(m, p, x)), (None, 0))(PARAMS, xs))
    check(lambda m: m.jit(m.vmap(m.value_and_grad(lambda p, x: loss(m, p, x)), (None, 0)))(PARAMS, xs))


def test_grad_of_vmap():
    check(lambda m: m.grad(lambda x: m.np.sum(m.vmap(lambda r: m.np.tanh(r).prod())(x)))(M))


# ---- Jacobians -------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["jacfwd", "jacrev", "jacobian"])
def test_jacobians(name):
    jac = lambda m: getattr(m, name)  # noqa: E731
    check(lambda m: jac(m)(lambda x: m.np.sin(x) * x.sum())(X))
    check(lambda m: jac(m)(lambda x: {"a": M @ x, "b": x[0] * x[1]})(X))
    check(lambda m: jac(m)(lambda p: p["w"] @ p["b"])(PARAMS))
    check(lambda m: jac(m)(lambda x, y: x[:, None] * y, argnums=1)(X, X))
    check(lambda m: jac(m)(lambda x, y: x * y, argnums=(0, 1))(X, X))
    check(lambda m: jac(m)(lambda x: (x * x, x + 1), has_aux=True)(X))
    check(lambda m: jac(m)(lambda x: x**2)(3.0))
    check(lambda m: m.jit(jac(m)(lambda x: m.np.exp(x) * 2))(X))


def test_hessian():
    check(lambda m: m.hessian(lambda x: m.np.sum(x**3) * x[0])(X))
    check(lambda m: m.hessian(lambda p: loss(m, p, X))(PARAMS), rtol=1e-4)
    check(lambda m: m.hessian(lambda x, y: m.np.sum(x * y * x), argnums=(0, 1))(X, X))
    check(lambda m: m.jit(m.hessian(lambda x: m.np.prod(m.np.sin(x))))(X))


# ---- through control flow --------------------------------------------------------------------------
def _scan_program(m, x):
    def step(c, row):
        new = m.np.tanh(c @ M + row)
        return new, m.np.sum(new * c)

    carry, ys = m.lax.scan(step, x, M)
    return m.np.sum(carry) + m.np.sum(ys**2)


def _cond_program(m, x):
    return m.lax.cond(m.np.sum(x) > 1, lambda v: m.np.sum(m.np.sin(v)), lambda v: m.np.sum(v**2), x)


def _switch_program(m, x):
    i = m.np.asarray(m.np.sum(x), np.int32)
    return m.lax.switch(i, [lambda v: v.sum(), lambda v: m.np.prod(v), lambda v: v[0] * 2.0], x)


def _fori_program(m, x):
    return m.lax.fori_loop(0, 4, lambda i, v: m.np.sin(v) * (i + 1) + x, x).sum()


def _nested_program(m, x):
    def step(c, i):
        inner = m.lax.fori_loop(0, 2, lambda _, v: v * m.np.cos(x), c)
        return m.lax.cond(i > 1, lambda v: v + 1, lambda v: v * x, inner), c.sum()

    carry, ys = m.lax.scan(step, x, np.arange(4))
    return m.np.sum(carry) + m.np.sum(ys)


def _jit_program(m, x):
    inner = m.jit(lambda a, b: (m.np.sin(a) * b, a.sum()))
    a, b = inner(x, x + 1)
    c, _ = inner(a, x * b)
    return m.np.sum(c)


REVERSIBLE = [_scan_program, _cond_program, _switch_program, _fori_program, _nested_program,
              _jit_program]  # fmt: skip


def _while_program(m, x):
    return m.lax.while_loop(lambda v: m.np.sum(v) < 20, lambda v: v * 1.5 + m.np.sin(x) ** 2, x).sum()


def _dynamic_fori_program(m, x):
    n = m.np.asarray(m.np.sum(m.np.abs(x)), np.int32)
    return m.lax.fori_loop(0, n, lambda i, v: m.np.sin(v) * x, x).sum()


@pytest.mark.parametrize("program", [*REVERSIBLE, _while_program, _dynamic_fori_program])
def test_forward_mode_through_control_flow(program):
    check(lambda m: m.jvp(lambda x: program(m, x), (X,), (X * 0.5,)))
    check(lambda m: m.jit(m.jacfwd(lambda x: program(m, x)))(X))
    check(lambda m: m.linearize(lambda x: program(m, x), X)[1](X) if m.name else None)


@pytest.mark.parametrize("program", REVERSIBLE)
def test_reverse_mode_through_control_flow(program):
    check(lambda m: m.value_and_grad(lambda x: program(m, x))(X))
    check(lambda m: m.jit(m.grad(lambda x: program(m, x)))(X))
    check(lambda m: m.jit(m.grad(m.jit(lambda x: program(m, x))))(X))
    check(lambda m: m.vmap(m.grad(lambda x: program(m, x)))(M))
    check(lambda m: m.grad(lambda x: m.np.sum(m.vmap(lambda v: program(m, v))(x)))(M), rtol=1e-4)


@pytest.mark.parametrize("program", REVERSIBLE)
def test_second_derivatives_through_control_flow(program):
    check(lambda m: m.jit(m.hessian(lambda x: program(m, x)))(X), rtol=1e-4, atol=1e-5)
    check(lambda m: m.jit(m.grad(lambda x: m.np.sum(m.grad(lambda v: program(m, v))(x) ** 2)))(X),
          rtol=1e-4, atol=1e-5)  # fmt: skip


def test_scan_over_params_and_unused_parts():
    def program(m):
        def f(p):
            def step(c, x):
                return {"h": m.np.tanh(c["h"] @ p["w"] + x + p["b"]), "n": c["n"] + 1}, c["n"]

            out, ns = m.lax.scan(step, {"h": X, "n": 0}, M, reverse=True)
            return m.np.sum(out["h"]), ns

        return m.value_and_grad(f, has_aux=True)(PARAMS)

    check(program)


def test_scan_with_unroll_and_odd_lengths():
    for unroll in (2, 3, 5, True):
        check(lambda m, u=unroll: m.grad(lambda x: m.lax.scan(
            lambda c, r: (c * r.sum() + x, c), x, np.tile(M, (2, 1))[:5], unroll=u)[0].sum())(X))
    check(lambda m: m.grad(lambda x: m.lax.scan(lambda c, _: (c * x, c), x, None, length=0)[0].sum())(X))


def test_grad_of_checkpoint_free_long_scan_is_linear_in_memory_and_right():
    xs = np.linspace(0, 1, 200, dtype=np.float32)
    check(lambda m: m.jit(m.grad(lambda s: m.lax.scan(
        lambda c, x: (m.np.sin(c) * 1.01 + x * s, None), s, xs)[0]))(0.3), rtol=1e-4)


def test_associative_scan_and_map():
    check(lambda m: m.grad(lambda x: m.np.sum(m.lax.associative_scan(m.np.multiply, x) ** 2))(X))
    check(lambda m: m.grad(lambda x: m.np.sum(m.lax.map(lambda v: m.np.sin(v) * v, x)))(X))


def test_closed_over_values_are_differentiated():
    def program(m):
        def f(x):
            y = m.np.sin(x)
            return m.lax.cond(True, lambda: y.sum(), lambda: 0.0) + m.lax.fori_loop(
                0, 3, lambda i, v: v + y.sum(), 0.0
            )

        return m.grad(f)(X)

    check(program)


SHAPES_DIFFER = [lambda v: (v[:, None] * v @ v).sum(), lambda v: v.sum(), lambda v: v.prod() ** 2]
HARD = {
    "transpose a scan": lambda m: m.linear_transpose(lambda x: m.lax.scan(
        lambda c, v: (c + v, c * 2), m.np.zeros(()), x), X)((1.0, X)),
    "transpose a scan's constant": lambda m: m.linear_transpose(lambda w: m.lax.scan(
        lambda c, v: (c + v * w, w), m.np.zeros(3), M)[0], X)(X),
    "transpose a loop with a counter": lambda m: m.linear_transpose(
        lambda x: m.lax.fori_loop(0, 3, lambda i, v: v * (i + 1) + x, x), X)(X),
    "transpose a branch": lambda m: m.linear_transpose(
        lambda x: m.lax.cond(True, lambda v: v * 2, lambda v: v, x), X)(X),
    "integer and float carries": lambda m: m.jvp(lambda x: m.lax.scan(
        lambda c, v: ((c[0] + 1, c[1] * v * c[0]), c[0]), (0, x.sum()), x), (X,), (X,)),
    "boolean carry": lambda m: m.grad(lambda x: m.lax.scan(
        lambda c, v: ((~c[0], m.np.where(c[0], c[1] * v, c[1] + v)), None), (True, x.sum()), x)[0][1])(X),
    "jit in while in vmap": lambda m: m.vmap(lambda x: m.lax.while_loop(
        lambda c: c < 10, m.jit(lambda c: c * 2 + x * x), x))(X),
    "jacfwd of vmap of while": lambda m: m.jacfwd(lambda x: m.vmap(lambda v: m.lax.while_loop(
        lambda c: c < 10, lambda c: c * c + 1 + v, v))(x))(X),
    "gradients in branches": lambda m: m.grad(lambda x: m.lax.cond(
        x > 0, m.grad(lambda v: v**3), m.grad(lambda v: v**2), x))(2.0),
    "gradient of descent": lambda m: m.grad(lambda rate: m.lax.scan(
        lambda c, v: (c - rate * m.grad(lambda w: (w * v - 1) ** 2)(c), None), 0.5, X)[0])(0.1),
    "a loop that carries no tangent": lambda m: m.grad(
        lambda x: x * m.lax.while_loop(lambda c: c < 10, lambda c: c * 2, 1.0))(3.0),
    "a loop over stopped values": lambda m: m.grad(lambda x: x * m.lax.while_loop(
        lambda c: c < 10, lambda c: c * 2 + m.lax.stop_gradient(x), 1.0))(3.0),
    "residuals of different shapes": lambda m: m.grad(
        lambda x: m.lax.switch(m.np.argmax(x), SHAPES_DIFFER, x))(X),
    "the same in lanes": lambda m: m.vmap(m.grad(lambda x, i: m.lax.switch(i, SHAPES_DIFFER, x)))(
        M, np.array([0, 1, 2])),
    "lanes of linearize": lambda m: m.vmap(
        lambda x: m.linearize(lambda v: m.np.sin(v) * x[0], x)[1](x))(M),
    "lanes of vjp": lambda m: m.vmap(lambda x: m.vjp(lambda v: m.np.sin(v) * v, x)[1](x)[0])(M),
    "complex carry": lambda m: m.grad(lambda x: m.np.abs(m.lax.scan(
        lambda c, v: (c * m.np.exp(1j * v), None), 1 + 0j, x)[0] - 2).sum())(X),
    "associative scan of pairs": lambda m: m.grad(lambda x: m.lax.associative_scan(
        lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]), (x, x))[1].sum())(X),
    "jacrev of jacfwd": lambda m: m.jacrev(m.jacfwd(lambda x: m.np.cumsum(x * x[::-1])))(X),
    "relu in a scan in lanes": lambda m: m.vmap(lambda x: m.lax.scan(
        lambda c, v: (m.module.nn.relu(c - v), c), x.sum(), x))(M),
    "zero, integer and boolean results": lambda m: m.jvp(
        lambda x: (m.np.zeros(3), 1, x > 0), (X,), (X,)),
}  # fmt: skip


@pytest.mark.parametrize("name", HARD)
def test_hard_cases(name):
    # One computation on each side: compiled whole, for the speed of the tests.
    check(lambda m: m.jit(lambda: [y for y in m.tree_util.tree_leaves(HARD[name](m))
                                   if getattr(y, "dtype", None) != jax.dtypes.float0])(),
          weak=False)  # fmt: skip


# ---- custom_jvp ------------------------------------------------------------------------------------
def _stable(m):
    @m.custom_jvp
    def f(x, y):
        return m.np.sin(x) * y

    @f.defjvp
    def _(primals, tangents):
        x, y = primals
        tx, ty = tangents
        return f(x, y), 10.0 * m.np.cos(x) * tx * y + m.np.sin(x) * ty

    return f


@pytest.mark.parametrize("transform", [
    lambda m, f: f(X, X), lambda m, f: m.jvp(f, (X, X), (X, X)),
    lambda m, f: m.grad(lambda x: f(x, x).sum())(X), lambda m, f: m.jit(f)(X, X),
    lambda m, f: m.jit(m.grad(lambda x: m.jit(f)(x, 2.0).sum()))(X),
    lambda m, f: m.vmap(m.grad(f, (0, 1)))(X, X), lambda m, f: m.grad(m.grad(f))(0.5, 0.7),
    lambda m, f: m.grad(lambda x: m.vmap(f, (0, None))(x, x[0]).sum())(X),
    lambda m, f: m.grad(lambda x: m.lax.scan(lambda c, r: (f(c, r), None), x, M)[0].sum())(X),
    lambda m, f: m.jacfwd(f)(X, X), lambda m, f: m.hessian(lambda x: f(x, x).sum())(X),
    lambda m, f: m.vmap(m.jvp, (None, 0, 0))(f, (X, X), (X, X)) if False else f(X, 1.0),
])  # fmt: skip
def test_custom_jvp_under_transformations(transform):
    check(lambda m: transform(m, _stable(m)))


def test_custom_jvp_nondiff_argnums_defjvps_and_pytrees():
    def program(m):
        @m.custom_jvp
        def g(p):
            return {"out": p["a"] * p["b"]}

        g.defjvp(lambda primals, tangents: (g(*primals), {"out": tangents[0]["a"] * 7.0}))

        h = m.custom_jvp(lambda x, y: x * y)
        h.defjvps(lambda t, out, x, y: t * 100.0, None)
        return (m.grad(lambda p: g(p)["out"])({"a": 2.0, "b": 3.0}), m.grad(h, (0, 1))(2.0, 3.0))

    check(program)


def test_custom_jvp_with_static_arguments():
    def program(m):
        import functools

        @functools.partial(m.custom_jvp, nondiff_argnums=(0,))
        def apply(fun, x):
            return fun(x)

        apply.defjvp(lambda fun, primals, tangents: (fun(primals[0]), 3.0 * tangents[0]))
        return m.grad(lambda x: apply(m.np.sin, x))(1.0), m.jit(lambda x: apply(m.np.cos, x))(1.0)

    check(program)


def test_custom_jvp_mistakes():
    @lamina.custom_jvp
    def f(x):
        return x

    with pytest.raises(AttributeError, match="No JVP defined for custom_jvp function f using defjvp"):
        f(1.0)
    f.defjvp(lambda primals, tangents: primals[0])
    with pytest.raises(TypeError, match="must produce a pair"):
        lamina.grad(f)(1.0)
    f.defjvp(lambda primals, tangents: (primals[0], (tangents[0], tangents[0])))
    with pytest.raises(TypeError, match="must produce primal and tangent outputs with equal container"):
        lamina.grad(f)(1.0)


# ---- mistakes --------------------------------------------------------------------------------------
MISTAKES = [
    (TypeError, r"Gradient only defined for scalar-output functions. Output had shape: \(3,\)",
     lambda m: m.grad(lambda x: x)(X)),
    (TypeError, "Gradient only defined for scalar-output functions. Output was",
     lambda m: m.grad(lambda x: (x, x))(1.0)),
    (TypeError, "grad requires real- or complex-valued inputs .* but got int32",
     lambda m: m.grad(lambda x: x)(1)),
    (TypeError, "grad requires real-valued outputs .* but got int32",
     lambda m: m.grad(lambda x: 3)(1.0)),
    (TypeError, "grad requires real-valued outputs .* but got complex64.*holomorphic=True",
     lambda m: m.grad(lambda x: x * 1j)(1.0)),
    (TypeError, "requires inputs with complex dtype, but got float32",
     lambda m: m.grad(lambda x: x, holomorphic=True)(1.0)),
    (TypeError, "differentiating with respect to argnums=1 requires at least 2 positional arg",
     lambda m: m.grad(lambda x, y=1.0: x, 1)(1.0)),
    (TypeError, "(pair|two-element tuple)", lambda m: m.grad(lambda x: x, has_aux=True)(1.0)),
    (TypeError, "primal and tangent arguments to .*jvp must be tuples or lists",
     lambda m: m.jvp(m.np.sin, 1.0, 1.0)),
    (TypeError, "must have the same tree structure",
     lambda m: m.jvp(m.np.sin, (1.0,), (1.0, 2.0))),
    (TypeError, "primal dtype int32 and so expected tangent dtype .*float0.*got tangent dtype int32",
     lambda m: m.jvp(lambda x: x, (1,), (1,))),
    (TypeError, "primal dtype float32 and so expected tangent dtype float32, but got .* int32",
     lambda m: m.jvp(lambda x: x, (1.0,), (1,))),
    (ValueError, r"different primal and tangent shapes;? got primal shape \(3,\) and tangent shape as \(\)",
     lambda m: m.jvp(lambda x: x, (X,), (1.0,))),
    (ValueError, "unexpected tree structure",
     lambda m: m.vjp(lambda x: (x, x), 1.0)[1](1.0)),
    (ValueError, "argument to VJP function.*", lambda m: m.vjp(lambda x: x, X)[1](1.0)),
    (ValueError, "vmap got inconsistent sizes for array axes to be mapped:\n(.|\n)*x(.|\n)*y",
     lambda m: m.vmap(lambda x, y: x)(X, M[:2])),
    (ValueError, r"\* most axes \(2 of them\) had size 3, e.g. axis 0 of argument a\['x'\] of type float32\[3\];\n"
     r".*\* one axis had size 2: axis 0 of kwargs\['b'\] of type float32\[2,3\]",
     lambda m: m.vmap(lambda a, c, b: c)({"x": X}, X, b=M[:2])),
    (ValueError, r"\* the `axis_size` argument was 5;\n.*\* one axis had size 3: axis 0 of argument x",
     lambda m: m.vmap(lambda x: x, axis_size=5)(X)),
    (ValueError, "vmap wrapped function must be passed at least one argument containing an array",
     lambda m: m.vmap(lambda x: x)({})),
    (TypeError, "vmap in_axes must be an int, None, or .nested. container",
     lambda m: m.vmap(lambda x: x, (m.np.zeros(1),))(X)),
    (TypeError, "vmap out_axes must be an int, None, or .nested. container",
     lambda m: m.vmap(lambda x: x, out_axes=m.np.int32(0))(X)),
    (ValueError, "vmap has mapped output .axis_name=foo. but out_axes is None",
     lambda m: m.vmap(lambda x: x, out_axes=None, axis_name="foo")(X)),
    (TypeError, "linear_transpose only supports", lambda m: m.linear_transpose(lambda x: 2.0 * x, 1)),
    (TypeError, "linear_transpose only supports", lambda m: m.linear_transpose(lambda x: x, True)),
    (TypeError, "cotangent type does not match", lambda m: m.linear_transpose(lambda x: 1j * x, 1.0)(1.0)),
    (ValueError, "`shape`.* cannot have None", lambda m: m.ShapeDtypeStruct((None, 2), np.int32)),
    (ValueError, "vmap was requested to map its argument along axis 0, which implies that its rank",
     lambda m: m.vmap(lambda x: x)(1.0)),
    (ValueError, "vmap was requested to map its argument along axis 2, which implies that its rank",
     lambda m: m.vmap(lambda x: x, 2)(M)),
    (ValueError, "vmap in_axes must be an int, None, or a tuple of entries corresponding to the pos",
     lambda m: m.vmap(lambda x, y: x, (0,))(X, X)),
    (TypeError, "vmap in_axes must be an int, None,", lambda m: m.vmap(lambda x: x, "a")(X)),
    (ValueError, "vmap in_axes specification must be a tree prefix of the corresponding value",
     lambda m: m.vmap(lambda x: x, ((0, 0),))({"a": X})),
    (ValueError, "vmap out_axes specification must be a tree prefix of the corresponding value",
     lambda m: m.vmap(lambda x: x, out_axes=(0, 0))(X)),
    (ValueError, "vmap has mapped output .*but out_axes is None",
     lambda m: m.vmap(lambda x: x, out_axes=None)(X)),
    (ValueError, "vmap must have at least one non-None value in in_axes",
     lambda m: m.vmap(lambda x: x, None)(X)),
    (ValueError, "Reverse-mode differentiation does not work for lax.while_loop or lax.fori_loop",
     lambda m: m.grad(lambda x: m.lax.while_loop(lambda v: v < 3, lambda v: v * 2, x))(1.0)),
    (ValueError, "Reverse-mode differentiation does not work for lax.while_loop or lax.fori_loop",
     lambda m: m.jit(m.grad(lambda x, n: m.lax.fori_loop(0, n, lambda i, v: v * x, x)))(1.0, 3)),
    (TypeError, "returned a value of type <class 'str'>|Output from .* is a .* of type <class 'str'>|"
     "is not a valid JAX type", lambda m: m.vjp(lambda x: "no", 1.0)),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(MISTAKES)))
def test_mistakes_raise_jax_s_errors(number):
    kind, text, program = MISTAKES[number]
    with pytest.raises(kind, match=text):
        program(LAMINA)
    with pytest.raises(kind):
        program(JAX)


def test_oracle_itself():
    with pytest.raises(AssertionError, match="weak_type"):
        assert_same(jnp.ones(()), jax.numpy.asarray(1.0))
    with pytest.raises(AssertionError):
        assert_same(jnp.ones(2), jax.numpy.zeros(2))
    assert lax.sin is not jax.lax.sin
