"""Python functions called from compiled programs: values, order, batches, errors, threads."""

from __future__ import annotations

import gc
import threading
import weakref

import jax
import numpy as np
import pytest

import lamina
import lamina.numpy as jnp
from lamina import lax
from lamina.core.jaxpr import dce_jaxpr
from lamina.errors import JaxRuntimeError
from lamina.experimental import io_callback

F32 = lamina.ShapeDtypeStruct((), np.float32)


def _fail(*_):
    raise KeyError("boo")


def test_results_of_every_kind_arrive_and_arguments_are_read_only():
    def host(a, empty, b, flag):
        assert not a.flags.writeable
        return {"a": a + 1, "empty": np.zeros((0, 3), np.float32), "b": b, "not": not flag}

    shapes = {
        "a": lamina.ShapeDtypeStruct((2,), np.float32),
        "empty": lamina.ShapeDtypeStruct((0, 3), np.float32),
        "b": lamina.ShapeDtypeStruct((2,), jnp.bfloat16),
        "not": lamina.ShapeDtypeStruct((), np.bool_),
    }
    args = jnp.ones(2), jnp.ones((0,)), jnp.ones(2, jnp.bfloat16), True

    def f(*args):
        return lamina.pure_callback(host, shapes, *args)

    for got in (f(*args), lamina.jit(f)(*args)):
        np.testing.assert_array_equal(got["a"], [2, 2])
        assert got["empty"].shape == (0, 3) and got["b"].dtype == jnp.bfloat16
        assert not got["not"]
    one = lamina.jit(lambda *args: f(*args)["a"])  # the others are read by nobody
    np.testing.assert_array_equal(one(*args), [2, 2])


def test_a_loop_calls_each_time_around_in_order_and_a_branch_only_when_taken():
    seen = []

    def body(c, x):
        y = lamina.pure_callback(lambda a, b: np.float32(a * b), F32, c, x)
        lamina.debug.callback(lambda v: seen.append(float(v)), y, ordered=True)
        return c + y, y

    @lamina.jit
    def f(flag, xs):
        c, ys = lax.scan(body, jnp.float32(1), xs)
        c = lax.while_loop(
            lambda c: c < 30,
            lambda c: (io_callback(lambda v: seen.append(("w", float(v))), None, c), c + 4)[1],
            c,
        )
        lax.cond(
            flag,
            lambda v: (io_callback(lambda v: seen.append(("t", float(v))), None, v), v)[1],
            lambda v: v,
            c,
        )
        return ys

    np.testing.assert_array_equal(f(True, jnp.arange(4.0)), [0, 1, 4, 18])
    lamina.effects_barrier()
    assert seen == [0, 1, 4, 18, ("w", 24), ("w", 28), ("t", 32)]
    seen.clear()
    f(False, jnp.arange(1.0))
    lamina.effects_barrier()
    assert seen[0] == 0 and not [x for x in seen[1:] if x[0] == "t"]


def test_prints_are_jaxs(capsys):
    def program(lib):
        debug = lib.debug

        def f(x):
            debug.print("x={x:.2f} {} {}", 3, "s", x=x)
            debug.print("o={}", x * 2, ordered=True)
            return x * x

        lib.jit(f)(2.0)
        lib.grad(lib.jit(f))(3.0)
        lib.vmap(f)(lib.numpy.arange(2.0))
        lib.vmap(lambda n: lib.lax.while_loop(
            lambda c: c < 2, lambda c: (debug.print("c={}", c), c + 1)[1], n
        ))(lib.numpy.arange(2))  # fmt: skip
        lib.effects_barrier()

    program(jax)
    expected = capsys.readouterr().out
    program(lamina)
    assert sorted(capsys.readouterr().out.split("\n")) == sorted(expected.split("\n"))


@pytest.mark.parametrize("m", [lamina, jax])
def test_callbacks_of_debug_take_options_in_a_first_call(m, capsys):
    seen = []
    m.debug.callback(ordered=True)(lambda x, ordered: seen.append((int(x), ordered)), 3, ordered="user's")
    m.debug.print(ordered=True)("x: {x} {ordered}", x=4, ordered=5)
    m.effects_barrier()
    assert seen == [(3, "user's")] and capsys.readouterr().out == "x: 4 5\n"
    with pytest.raises(TypeError, match="debug_print received unexpected arguments in the two-call form"):
        m.debug.print(ordered=True, a=42)
    with pytest.raises(TypeError, match="debug_callback received unexpected arguments in the two-call form"):
        m.debug.callback(None, 42)


def test_prints_look_as_numpys_options_say_in_the_call(capsys):
    def f(x):
        with np.printoptions(precision=2, suppress=True):
            lamina.debug.print("{}", x)

    x = np.array([1.2345, 2.3456, 1e-7], "float32")
    for call in (f, lamina.jit(f)):
        call(x)
        lamina.effects_barrier()
        assert capsys.readouterr().out == "[1.23 2.35 0.  ]\n"


@pytest.mark.parametrize("wrap", [lambda f: f, lamina.jit])
def test_callbacks_get_random_keys(wrap, capsys):
    key = lamina.random.key(3)
    wrap(lambda k: lamina.debug.print("{k.dtype} {k.shape}", k=k))(key)
    lamina.effects_barrier()
    assert capsys.readouterr().out == "key<fry> ()\n"
    same = wrap(lambda k: lamina.pure_callback(lambda k: np.float32(k == key), F32, k))
    assert same(key) == 1


@pytest.mark.parametrize("m", [lamina, jax])
def test_results_go_by_their_order_whatever_holds_them(m):
    types = (m.ShapeDtypeStruct((), np.float32), {"a": m.ShapeDtypeStruct((), np.float32)})

    def f(x):
        return m.pure_callback(lambda x: [x, [x + 1]], types, x)

    assert m.jit(f)(1.0) == f(1.0) == (1, {"a": 2})


def test_a_breakpoint_shows_the_callers_variables(monkeypatch, capsys):
    lines = iter(["print('y is', y + 1)"])

    def read(prompt):
        try:
            return next(lines)
        except StopIteration:
            raise EOFError from None

    monkeypatch.setattr("builtins.input", read)

    @lamina.jit
    def f(x):
        y = x * 2
        lamina.debug.breakpoint()
        return y

    assert f(3.0) == 6
    lamina.effects_barrier()
    shown = capsys.readouterr()
    assert "y is 7.0" in shown.out
    assert f"stopped at {__file__}" in shown.err and "variables: x, y" in shown.err


@pytest.mark.parametrize(
    "method", ["sequential", "sequential_unrolled", "expand_dims", "broadcast_all",
               "legacy_vectorized"]
)  # fmt: skip
def test_vmap_methods_call_with_jaxs_shapes(method):
    shapes: dict[str, list] = {"jax": [], "lamina": []}

    def program(lib, name):
        def host(a, b):
            shapes[name].append((np.shape(a), np.shape(b)))
            return np.asarray(a + b)

        def f(a, b):
            aval = lib.ShapeDtypeStruct((), np.float32)
            return lib.pure_callback(host, aval, a, b, vmap_method=method)

        return np.asarray(lib.jit(lib.vmap(f, (0, None)))(lib.numpy.arange(3.0), 1.0))

    np.testing.assert_array_equal(program(lamina, "lamina"), program(jax, "jax"))
    assert shapes["lamina"] == shapes["jax"]


def test_refusals_are_jaxs():
    def identity(x, **how):
        return lamina.pure_callback(lambda a: a, F32, x, **how)

    with pytest.raises(ValueError, match="Pure callbacks do not support JVP"):
        lamina.grad(identity)(1.0)
    with pytest.raises(NotImplementedError, match="vmap is only supported for the pure_callback"):
        lamina.vmap(identity)(jnp.ones(3))
    with pytest.raises(ValueError, match="vmap_method must be on of"):
        identity(1.0, vmap_method="each")
    with pytest.raises(ValueError, match="IO callbacks do not support JVP"):
        lamina.grad(lambda x: io_callback(lambda a: a, F32, x))(1.0)
    with pytest.raises(ValueError, match="Cannot `vmap` ordered IO callback"):
        lamina.vmap(lambda x: io_callback(lambda a: a, F32, x, ordered=True))(jnp.ones(3))
    with pytest.raises(NotImplementedError, match="while_loop with batched predicate"):
        lamina.vmap(lambda n: lax.while_loop(
            lambda c: c < 2, lambda c: (io_callback(_fail, None, c), c + 1)[1], n
        ))(jnp.arange(2))  # fmt: skip
    with pytest.raises(ValueError, match="cannot specify 64-bit types"):
        lamina.pure_callback(_fail, jax.ShapeDtypeStruct((), np.float64), 1.0)
    with pytest.raises(ValueError, match="Unused keyword arguments .*f-string"):
        lamina.debug.print("{}", 1.0, y=2)
    with pytest.raises(IndexError):
        lamina.debug.print("{} {}", 1.0)
    with pytest.raises(TypeError, match="must be callable"):
        lamina.debug.callback(3)


def _result(shape, value):
    aval = lamina.ShapeDtypeStruct(shape, np.float32)
    return lambda x: lamina.pure_callback(lambda a: value, aval, x)


@pytest.mark.parametrize("wrap", [lambda f: f, lamina.jit])
def test_wrong_results_and_exceptions_reach_the_reader(wrap):
    for f, message in (
        (_result((3,), np.ones(4, np.float32)), r"has type f32\[4\], .* says f32\[3\]"),
        (_result((), np.int32(1)), r"has type i32\[\], .* says f32\[\]"),
        (_result((), (1.0, 2.0)), "gave a result of structure"),
        (lambda x: lamina.pure_callback(_fail, F32, x), "KeyError: 'boo'"),
    ):
        with pytest.raises(JaxRuntimeError, match=message) as caught:
            lamina.block_until_ready(wrap(f)(1.0))
        assert caught.value.__cause__.__traceback__ is not None


def test_a_failure_ends_the_program():
    calls = []

    def fail(x):
        calls.append(float(x))
        raise KeyError("boo")

    # Without an end to the program this loop would have none.
    loop = lamina.jit(
        lambda x: lax.while_loop(lambda c: c < 10, lambda c: lamina.pure_callback(fail, F32, c), x)
    )
    line = loop.__wrapped__.__code__.co_firstlineno
    where = rf"\[jit__lambda_\] .* KeyError: 'boo' \(called at {__file__}:{line}:\d+ in .*<lambda>\)"
    with pytest.raises(JaxRuntimeError, match=where):
        loop(1.0)
    assert calls == [1.0]
    with pytest.raises(JaxRuntimeError, match="boo"):
        lamina.jit(lambda x: lamina.debug.callback(fail, x))(2.0)


def test_prints_come_where_they_are_made(capsys):
    pending = lamina.jit(lambda m: m @ m)(jnp.ones((500, 500)))
    lamina.lax.cond(
        pending[0, 0] > 0, lambda x: lamina.debug.print("x is {}", x), lambda x: None, pending[1, 1]
    )
    assert capsys.readouterr().out == "x is 500.0\n"


def test_callbacks_may_run_programs_and_threads_may_wait():
    big = jnp.ones((200, 200))
    square = lamina.jit(lambda m: m @ m)
    f = lamina.jit(
        lambda x: lamina.pure_callback(lambda a: np.float32(square(big)[0, 0]) + a, F32, x)
    )
    wrong = []

    def call():
        for _ in range(10):
            if float(f(1.0)) != 201:
                wrong.append(1)

    threads = [threading.Thread(target=call) for _ in range(3)]
    for t in threads:
        t.start()
    for _ in range(10):
        f(1.0)
    for t in threads:
        t.join(60)
    assert not wrong and not any(t.is_alive() for t in threads)
    kept: list[np.ndarray] = []
    keep = lamina.jit(lambda x: lamina.debug.callback(kept.append, x * 2))
    for i in range(3):
        keep(float(i))
    lamina.effects_barrier()
    assert kept == [0, 2, 4]


def test_the_executable_keeps_the_function_alive():
    class Host:
        def __call__(self, a):
            return a

    def compiled_with(host):
        f = lamina.jit(lambda x: lamina.pure_callback(host, F32, x))
        return f.lower(1.0).compile(), weakref.ref(host)

    compiled, alive = compiled_with(Host())
    gc.collect()
    assert alive() is not None and float(compiled(2.0)) == 2
    del compiled
    gc.collect()
    assert alive() is None


def test_equal_programs_keep_their_own_functions():
    def make(n):
        return lamina.jit(lambda x: lamina.pure_callback(lambda a: a + n, F32, x))

    assert [float(make(np.float32(n))(1.0)) for n in range(3)] == [1, 2, 3]


def test_effects_are_kept_by_transformations_of_jaxprs():
    def f(x):
        lamina.debug.print("{}", x)
        io_callback(lambda a: None, None, x, ordered=True)
        lamina.pure_callback(lambda a: a, F32, x)
        return x

    def names(fun):
        return {e.name for e in lamina.make_jaxpr(fun)(1.0).effects}

    both = {"Debug", "OrderedIO"}
    assert names(f) == names(lamina.jit(f)) == both
    assert names(lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=2)) == both
    assert names(lambda x: lax.cond(x > 0, f, lambda y: y, x)) == both
    assert names(lambda x: lax.while_loop(lambda c: c < 0, f, x)) == both
    closed = lamina.make_jaxpr(f)(1.0)
    slim, _ = dce_jaxpr(closed.jaxpr, [False])
    assert [e.primitive.name for e in slim.eqns] == ["debug_callback", "io_callback"]
