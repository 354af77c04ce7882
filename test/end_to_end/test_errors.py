"""Mistakes inside traced functions: the error classes are JAX's, the texts name the function, the
argument and the line."""

import os
import re
import subprocess
import sys
import textwrap

import jax
import numpy as np
import pytest

import lamina
import lamina.numpy as jnp
from lamina import errors, lax

X = np.arange(3, dtype=np.float32)


def here(fun) -> str:
    """How messages name the place of a function."""
    return f"{__file__}:{fun.__code__.co_firstlineno}"


def message(kind, call) -> str:
    with pytest.raises(kind) as e:
        call()
    return str(e.value)


# ---- conversions of traced values ------------------------------------------------------------------
def test_boolean_conversion_names_function_place_and_argument():
    def branchy(x, y):
        if x > 0:
            return x
        return y

    text = message(errors.TracerBoolConversionError, lambda: lamina.jit(branchy)(1.0, 2.0))
    assert text.startswith("Attempted boolean conversion of traced array with shape bool[].")
    assert f"while tracing the function branchy at {here(branchy)} for jit." in text
    assert "not available in Python because it depends on the value of the argument x." in text
    assert "lax.cond" in text and "static_argnums" in text


def test_boolean_conversion_names_several_arguments_and_leaves_of_pytrees():
    def f(params, x, *rest):
        return x if (params["w"].sum() + x + rest[1] > 0).all() else -x

    text = message(errors.TracerBoolConversionError,
                   lambda: lamina.jit(f)({"w": X, "b": X}, 1.0, 2.0, 3.0))  # fmt: skip
    assert "the values of the arguments params['w'], x, rest[1]." in text


@pytest.mark.parametrize("call", [
    lambda x: not x, lambda x: x and 1, lambda x: [0 for _ in "a" if x], lambda x: bool(x),
    lambda x: x in [1.0], lambda x: 0 < x < 1,
])  # fmt: skip
def test_all_ways_to_a_boolean(call):
    with pytest.raises(errors.TracerBoolConversionError):
        lamina.jit(call)(0.5)


def test_numpy_conversion():
    def f(x):
        return np.sin(np.asarray(x))

    text = message(errors.TracerArrayConversionError, lambda: lamina.jit(f)(X))
    assert text.startswith(
        "The numpy.ndarray conversion method __array__() was called on traced array with shape "
        "float32[3]"
    )
    assert f"the function f at {here(f)} for jit" in text and "the argument x" in text
    assert "lamina.numpy" in text


def test_integer_conversion():
    def f(i):
        return [1, 2, 3][i]

    text = message(errors.TracerIntegerConversionError, lambda: lamina.jit(f)(1))
    assert text.startswith("The __index__() method was called on traced array with shape ~int32[]")
    assert "the argument i" in text
    with pytest.raises(errors.TracerIntegerConversionError):
        lamina.jit(lambda n: range(n))(3)


@pytest.mark.parametrize("kind", [int, float, complex])
def test_number_conversion(kind):
    text = message(errors.ConcretizationTypeError, lambda: lamina.jit(lambda x: kind(x))(np.float32(1)))
    assert text.startswith("Abstract tracer value encountered where concrete value is expected: "
                           "traced array with shape float32[]")  # fmt: skip
    assert f"The problem arose with the `{kind.__name__}` function." in text
    assert f"x.astype({kind.__name__})" in text


def test_items_and_lists_of_traced_values():
    with pytest.raises(errors.ConcretizationTypeError, match="item"):
        lamina.jit(lambda x: x.item())(1.0)
    with pytest.raises(errors.ConcretizationTypeError, match="tolist"):
        lamina.jit(lambda x: x.tolist())(1.0)


def test_shapes_must_be_concrete():
    text = message(TypeError, lambda: lamina.jit(lambda n: jnp.zeros((n,)))(3))
    assert "Shapes must be 1D sequences of concrete values of integer type, got (JitTracer(~int32[])," in text
    with pytest.raises(TypeError, match="Shapes must be 1D sequences"):
        lamina.jit(lambda x, n: x.reshape(n, 1))(X, 3)
    with pytest.raises(TypeError):
        lamina.jit(lambda n: jnp.arange(n))(3)


def test_boolean_masks_must_be_concrete():
    for call in (lambda x: x[x > 0], lambda x: x.at[x > 0].get()):
        with pytest.raises(errors.NonConcreteBooleanIndexError, match="must be concrete.*bool.3"):
            lamina.jit(call)(X)
    out = lamina.jit(lambda x: jnp.where(x > 0, x, 7.0))(X)
    np.testing.assert_array_equal(out, [7, 1, 2])


def test_slices_with_traced_bounds_point_to_dynamic_slices():
    with pytest.raises(IndexError, match="static.*(dynamic_slice|jax.ds|ds)") as e:
        lamina.jit(lambda x, i: x[i : i + 2])(X, 1)
    assert "dynamic_slice" in str(e.value)


def test_assignment_shows_the_at_recipe():
    def f(x):
        x[0] = 1.0

    for call in (lambda: f(jnp.ones(3)), lambda: lamina.jit(f)(X)):
        with pytest.raises(TypeError, match=r"immutable.*x\.at\[idx\]\.set\(y\)"):
            call()


def test_tracers_are_unhashable_and_print_their_type():
    with pytest.raises(TypeError, match="unhashable"):
        lamina.jit(lambda x: {x: 1})(1.0)
    seen = []
    note = lambda x: (seen.append(repr(x)), x)[1]  # noqa: E731
    lamina.jit(note)(1.0)
    lamina.vmap(note)(X)
    lamina.grad(note)(1.0)
    assert seen[0] == "JitTracer(~float32[])"
    assert seen[1] == "VmapTracer(aval=float32[], batched=float32[3])"
    assert re.fullmatch(r"GradTracer\(primal=.*1\.0?.*, typeof\(tangent\)=f32\[\]\)", seen[2])


def test_values_are_concrete_under_eager_grad_and_jvp():
    assert lamina.grad(lambda x: x if x > 0 else -x)(-2.0) == -1.0
    assert lamina.jvp(lambda x: x * float(x), (3.0,), (1.0,))[1] == 3.0
    with pytest.raises(errors.TracerBoolConversionError):
        lamina.vmap(lambda x: x if x > 0 else -x)(X)
    text = message(errors.TracerBoolConversionError,
                   lambda: lamina.jit(lamina.grad(lambda x: x if x > 0 else -x))(1.0))  # fmt: skip
    assert "for jit" in text and "the argument x" in text


def test_messages_within_loops_and_branches_name_their_function():
    def body(carry, x):
        return (carry, x) if x > 0 else (x, carry)

    text = message(errors.TracerBoolConversionError, lambda: lax.scan(body, 0.0, X))
    assert f"the function body at {here(body)} for scan" in text and "the argument x" in text

    def branch(operand):
        return float(operand)

    text = message(errors.ConcretizationTypeError,
                   lambda: lax.cond(True, branch, branch, 1.0))  # fmt: skip
    assert f"the function branch at {here(branch)} for cond" in text


def test_classes_are_those_of_jax_by_name_and_base():
    for name in ("ConcretizationTypeError", "TracerArrayConversionError", "TracerBoolConversionError",
                 "TracerIntegerConversionError", "UnexpectedTracerError",
                 "NonConcreteBooleanIndexError"):  # fmt: skip
        ours, theirs = getattr(errors, name), getattr(jax.errors, name)
        builtin = [c for c in theirs.__mro__ if c.__module__ == "builtins"]
        assert [c for c in ours.__mro__ if c.__module__ == "builtins"] == builtin
    assert issubclass(errors.TracerBoolConversionError, errors.ConcretizationTypeError)


# ---- leaks -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("transform", [
    lamina.jit, lamina.vmap, lambda f: lamina.grad(lambda x: f(x).sum()),
    lambda f: lamina.jit(lamina.grad(lambda x: f(x).sum())),
    lambda f: lamina.jit(lamina.vmap(f)),
    lambda f: lambda x: lax.scan(lambda c, v: (c, f(v)), 0.0, x),
    lambda f: lambda x: lamina.linearize(f, x),
], ids=["jit", "vmap", "grad", "jit-grad", "jit-vmap", "scan", "linearize"])  # fmt: skip
def test_leaked_values_are_reported_where_they_are_used(transform):
    leaked = []

    def leaky(x):
        y = jnp.sin(x)
        leaked.append(y)
        return y * 2

    transform(leaky)(X)
    uses = [lambda: leaked[0] + 1, lambda: lamina.jit(lambda a: a + leaked[0])(1.0),
            lambda: jnp.exp(leaked[0]), lambda: lamina.grad(lambda a: a * jnp.exp(leaked[0]))(1.0),
            lambda: lamina.vmap(lambda a: a * leaked[0])(X)]  # fmt: skip
    for use in uses:
        with pytest.raises(errors.UnexpectedTracerError, match="side effect"):
            use()


def test_the_text_names_the_function_the_line_and_the_flag():
    leaked = []

    def leaky(x):
        leaked.append(jnp.cos(x))
        return x

    lamina.jit(leaky)(X)
    text = message(errors.UnexpectedTracerError, lambda: leaked[0] * 2)
    assert "intermediate value with type float32[3] wrapped in a JitTracer" in text
    assert f"The function being traced when the value leaked was leaky at {here(leaky)} for jit" in text
    line = leaky.__code__.co_firstlineno + 1
    assert f"was created on line {__file__}:{line} (" in text
    assert "the final 5 user frames" in text and "leaked.append(jnp.cos(x))" in text
    assert "LAMINA_CHECK_TRACER_LEAKS" in text and "checking_leaks" in text


def test_leak_checking_finds_leaks_when_the_trace_ends():
    kept = []

    def leaky(x):
        kept.append(x)
        return x

    with lamina.checking_leaks():
        with pytest.raises(errors.UnexpectedTracerError, match="Leaked trace: leaky at"):
            lamina.jit(leaky)(X)
        kept.clear()
        lamina.jit(lambda x: jnp.sin(x) * 2)(X)
        lamina.jit(lamina.grad(lambda x: lax.scan(lambda c, v: (c * v, v), 1.0, x)[0]))(X)


def test_outer_values_are_no_leaks():
    def outer(x):
        inner = lamina.jit(lambda a: a * x)
        return lamina.vmap(lambda v: inner(v) + x)(jnp.arange(3.0)).sum()

    np.testing.assert_allclose(lamina.jit(outer)(2.0), 12.0)
    np.testing.assert_allclose(lamina.grad(outer)(2.0), 6.0)


# ---- results and arguments ---------------------------------------------------------------------------
def test_results_must_be_arrays():
    for bad in ("text", object(), {"a": "text"}, np.array(["a"]), {1, 2}):
        def returns_bad(x, bad=bad):
            return x, bad

        with pytest.raises(TypeError, match="returns_bad.*(returned|Output).*"):
            lamina.jit(returns_bad)(1.0)
    assert lamina.jit(lambda x: None)(1.0) is None


def test_arguments_must_be_arrays():
    def f(x, options):
        return x

    text = message(TypeError, lambda: lamina.jit(f)(1.0, {"mode": "fast"}))
    assert text.startswith("Error interpreting argument to f as an abstract array. The problematic value is "
                           "of type <class 'str'> and was passed to the function at path options['mode']")  # fmt: skip
    assert "static_argnums" in text
    with pytest.raises(TypeError, match="at path x"):
        lamina.jit(f)("text", 1)
    with pytest.raises(OverflowError, match="argument path is options.*too large"):
        lamina.jit(f)(1.0, 2**40)


def test_operations_refuse_what_is_no_array():
    with pytest.raises(TypeError, match="(?s)str"):
        jnp.sin("text")
    with pytest.raises(TypeError, match="None"):
        jnp.add(1.0, None)
    with pytest.raises(TypeError, match="same dtypes, got float32, int32.*jnp.add"):
        lax.add(jnp.ones(2), jnp.arange(2))
    with pytest.raises(TypeError, match="matmul requires .* is 8, axis 0 of the second, f32.7,2., is 7"):
        jnp.ones((4, 8)) @ jnp.ones((7, 2))


def test_an_error_in_the_function_comes_through_unchanged_and_leaves_no_trace():
    class Mine(Exception):
        pass

    def f(x):
        raise Mine("mine")

    for transform in (lamina.jit, lamina.vmap, lamina.grad):
        with pytest.raises(Mine, match="^mine$"):
            transform(f)(X)
    with pytest.raises(Mine):
        lamina.jit(lambda x: lax.scan(lambda c, v: f(v), x, x))(X)
    # The thread evaluates again.
    assert float(jnp.sum(jnp.ones(3))) == 3.0
    assert lamina.core.trace.is_evaluating()


def test_interrupted_compilation_can_be_repeated(tmp_path):
    program = """
        import os, signal, threading
        import lamina, lamina.numpy as jnp
        def f(x):
            for _ in range(400):
                x = jnp.sin(x) * 1.5 + x @ x
            return x
        g = lamina.jit(f)
        x = jnp.ones((8, 8)) * 0.01
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        try:
            timer.start()
            g(x)
            timer.join()
            print("finished")
        except KeyboardInterrupt:
            print("interrupted")
        print(g(x).shape, float(lamina.jit(lambda a: a + 1)(1.0)))
    """
    env = {**os.environ, "LAMINA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], env=env, timeout=600,
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "(8, 8) 2.0", done.stdout + done.stderr
