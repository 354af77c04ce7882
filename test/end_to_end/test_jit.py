"""jit's contract: what is traced when, static arguments, what may be jitted."""

import collections
import functools
import gc
import os
import re
import subprocess
import sys
import textwrap
import threading
import warnings
import weakref

import jax
import numpy as np
import pytest
from support.oracle.judge import check

import lamina
import lamina.numpy as jnp

X = np.arange(3, dtype=np.float32)


def counted(fun=lambda x: x * 2, **options):
    """A jitted function and the list of types it was traced with."""
    traces = []

    def body(*args, **kwargs):
        traces.append(repr((args, kwargs)))
        return fun(*args, **kwargs)

    return lamina.jit(body, **options), traces


# ---- what makes a new trace ------------------------------------------------------------------------
def test_types_decide_values_do_not():
    f, traces = counted()
    for x in (1.0, 2.0, -3.5):
        f(x)
    assert len(traces) == 1
    f(1), f(True), f(np.int8(1)), f(np.float32(1.0)), f(jnp.float32(1.0)), f(jnp.asarray(1.0))
    assert len(traces) == 5  # int, bool, i8, strong f32; the last is weak like 1.0
    f(X), f(jnp.asarray(X)), f(X + 1), f(np.asfortranarray(X)), f(X[::1])
    assert len(traces) == 6
    f(X[:2]), f(X.astype(np.float64)), f(X.astype(np.float16))
    assert len(traces) == 8  # float64 is float32 without x64


def test_structure_decides_keyword_order_does_not():
    f, traces = counted(lambda *a, **k: 1.0)
    f(a=1.0, b=2.0), f(b=1.0, a=2.0)
    assert len(traces) == 1
    f(1.0, b=2.0), f({"a": 1.0}), f({"b": 1.0}), f([1.0]), f((1.0,)), f(None), f(1.0, None)
    assert len(traces) == 8
    f({"b": 5.0}), f([7.0])
    assert len(traces) == 8


def test_settings_decide():
    f, traces = counted()
    f(1.0)
    with lamina.enable_x64(True):
        assert f(1.0).dtype == np.float64
        assert f(1.0).dtype == np.float64
    assert f(1.0).dtype == np.float32
    assert len(traces) == 2


def test_wrappers_of_one_function_share_its_traces():
    traces = []

    def f(x):
        traces.append(1)
        return x

    lamina.jit(f)(1.0), lamina.jit(f)(2.0)
    assert len(traces) == 1
    lamina.jit(f, keep_unused=True)(1.0)
    assert len(traces) == 2
    # Equal closures and fresh partials are other functions.
    for _ in range(2):
        lamina.jit(functools.partial(f))(1.0)
    assert len(traces) == 4


def test_globals_are_read_once():
    scale = [2.0]
    f = lamina.jit(lambda x: x * scale[0])
    assert f(1.0) == 2.0
    scale[0] = 3.0
    assert f(1.0) == 2.0 and f(np.float32(1.0)) == 3.0
    f.clear_cache()
    assert f(1.0) == 3.0


def test_collected_functions_free_what_was_kept_of_them():
    def make():
        big = np.ones(10_000, np.float32)

        def f(x):
            return x + big

        return lamina.jit(f), weakref.ref(f)

    f, ref = make()
    f(1.0)
    f.lower(1.0)
    del f
    gc.collect()
    assert ref() is None


def test_nested_jits_are_traced_once_for_all_callers():
    inner, traces = counted(lambda x: jnp.sin(x))
    outer = lamina.jit(lambda x: inner(x) + inner(x * 2))
    outer(X), outer(X), lamina.grad(lambda x: outer(x).sum())(X), lamina.vmap(inner)(X[:, None])
    assert len(traces) == 2  # f32[3] and f32[1]


def test_calls_from_many_threads_agree():
    f = lamina.jit(lambda x: jnp.sin(x) * 2)
    results = [None] * 8

    def work(i):
        results[i] = [float(f(np.float32(i + k)).sum()) for k in range(20)]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    [t.start() for t in threads], [t.join() for t in threads]
    for i, got in enumerate(results):
        np.testing.assert_allclose(got, np.sin(np.arange(i, i + 20)) * 2, rtol=1e-5)


def test_transformations_in_many_threads():
    shared = lamina.jit(lambda x: jnp.tanh(x) * 2)
    problems = []

    def work(i):
        try:
            f = lamina.jit(lambda x: (jnp.sin(x) * (i + 1) + shared(x)).sum())
            want = np.cos(X) * (i + 1) + 2 * (1 - np.tanh(X) ** 2)
            for _ in range(3):
                np.testing.assert_allclose(lamina.grad(f)(X), want, atol=1e-4)
                with lamina.enable_x64(i % 2 == 0):
                    assert shared(1.0).dtype == (np.float64 if i % 2 == 0 else np.float32)
        except BaseException as e:
            problems.append(e)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    [t.start() for t in threads], [t.join() for t in threads]
    assert not problems


def test_a_function_of_ever_new_types_keeps_a_bounded_number_of_traces(monkeypatch):
    module = sys.modules["lamina.jit.traces"]
    monkeypatch.setattr(module, "_MAX_TRACES", 3)
    f = lamina.jit(lambda x: x * 2)
    for n in range(6):
        f.trace(np.ones(n, np.float32))
    assert len(module._memory_of(f._jit_options)) == 3
    np.testing.assert_array_equal(f(X), X * 2)


# ---- results and containers --------------------------------------------------------------------------
Point = collections.namedtuple("Point", "x y")


@pytest.mark.parametrize("make", [
    lambda x: None, lambda x: (), lambda x: (x,), lambda x: [x, [x, None]], lambda x: {"b": x, "a": (x, 1)},
    lambda x: Point(x, 2.0), lambda x: collections.OrderedDict([("b", x), ("a", x)]),
    lambda x: collections.defaultdict(list, {"a": x}), lambda x: (1, 1.0, True, 1j, np.int8(3)),
    lambda x: {1: x, 2: {}}, lambda x: collections.deque([x, x]),
])  # fmt: skip
def test_containers_in_and_out(make):
    if not isinstance(make(0), collections.deque):  # no container of JAX's
        check(lambda m: m.jit(make)(X))
        check(lambda m: m.jit(lambda t: t)(make(X)))
        check(lambda m: m.jit(lambda t: m.tree_util.tree_map(lambda v: v + 1, t))(make(X)))


@pytest.mark.parametrize("tree", [
    {"b": 1, 2: X}, {2: X, None: 1, "b": X + 1, (1,): 3}, {1j: X, 2j: 1, "a": 2},
])  # fmt: skip
def test_dictionaries_whose_keys_have_no_order(tree):
    """As other functions take them: JAX refuses them all."""
    again = dict(reversed(tree.items()))
    f = lamina.jit(lambda t: lamina.tree_util.tree_map(lambda v: v + 1, t))
    for given in (tree, again, tree):
        got = f(given)
        assert got.keys() == tree.keys()
        for key, value in tree.items():
            np.testing.assert_array_equal(got[key], np.add(value, 1))


def test_arguments_that_are_results_come_back_as_arrays():
    check(lambda m: m.jit(lambda x, y: (y, x, x, y))(X, 2))
    check(lambda m: m.jit(lambda x: x)(np.float64(3.0)))
    check(lambda m: m.jit(lambda x: x)(3))
    assert isinstance(lamina.jit(lambda x: x)(X), lamina.Array)


def test_results_do_not_change_with_their_numpy_arguments():
    x = np.ones(3, np.float32)
    y = lamina.jit(lambda v: v)(x)
    x[:] = 7
    np.testing.assert_array_equal(y, [1, 1, 1])


def test_weak_types_of_results():
    check(lambda m: m.jit(lambda x: x * 2)(3))
    check(lambda m: m.jit(lambda x: x + 1.5)(3))
    check(lambda m: m.jit(lambda x: x + 1.5)(np.int8(3)))
    check(lambda m: m.jit(lambda x: x + 1)(np.float16(3)))


def test_constants_large_and_small_closed_over():
    big = np.arange(100_000, dtype=np.float32)
    device = jnp.asarray(big)
    f = lamina.jit(lambda x: x + big[5] + device[7] + (big * device)[3])
    np.testing.assert_allclose(f(1.0), 1 + 5 + 7 + 9)
    g = lamina.jit(lambda x: jnp.asarray(big) + device + x)
    np.testing.assert_allclose(g(1.0), big * 2 + 1)


def test_empty_arrays_and_no_arguments():
    check(lambda m: m.jit(lambda: m.np.arange(4))())
    check(lambda m: m.jit(lambda x: (x + 1, m.np.sum(x)))(np.zeros((0, 3), np.float32)))


# ---- static arguments ----------------------------------------------------------------------------------
def test_static_values_decide_with_their_types():
    f, traces = counted(lambda x, n: x * (1 if n is None else 2), static_argnums=1)
    f(1.0, 1), f(2.0, 1)
    assert len(traces) == 1
    f(1.0, 1.0), f(1.0, True), f(1.0, np.int64(1)), f(1.0, None), f(1.0, "a"), f(1.0, (1, 2))
    assert len(traces) == 7
    f(1.0, "a"), f(1.0, (1, 2)), f(1.0, np.int64(1))
    assert len(traces) == 7


def test_static_values_are_compared_by_hash_and_equality():
    class Setting:
        def __init__(self, n):
            self.n = n

        def __hash__(self):
            return hash(self.n)

        def __eq__(self, other):
            return isinstance(other, Setting) and self.n == other.n

    f, traces = counted(lambda x, s: x * s.n, static_argnums=1)
    assert f(2.0, Setting(3)) == 6.0 and f(2.0, Setting(3)) == 6.0 and f(2.0, Setting(4)) == 8.0
    assert len(traces) == 2


def test_static_arguments_come_by_position_or_by_name():
    def f(x, n, *, mode="a", m=1):
        assert type(n) is int and type(mode) is str
        return x * n * m

    for options in ({"static_argnums": 1, "static_argnames": "mode"},
                    {"static_argnums": (1,), "static_argnames": ("mode",)},
                    {"static_argnames": ["n", "mode"]}, {"static_argnums": -1, "static_argnames": "mode"},
                    ):  # fmt: skip
        g = lamina.jit(f, **options)
        assert g(2.0, 3) == 6 and g(2.0, n=4) == 8 and g(n=5, x=2.0) == 10
        assert g(2.0, 3, mode="b") == 6 and g(2.0, 3, mode="b", m=2) == 12


def test_keyword_and_positional_calls_give_the_same():
    check(lambda m: (m.jit(lambda x, y=2.0: x - y)(X, 1.0), m.jit(lambda x, y=2.0: x - y)(y=1.0, x=X),
                     m.jit(lambda x, y=2.0: x - y)(X)))  # fmt: skip


@pytest.mark.parametrize("bad", [[1, 2], {"a": 1}, np.ones(2), {1}])
def test_unhashable_static_values(bad):
    for call in (lambda: lamina.jit(lambda x, n: x, static_argnums=1)(1.0, bad),
                 lambda: lamina.jit(lambda x, n: x, static_argnames="n")(1.0, n=bad)):  # fmt: skip
        with pytest.raises(ValueError, match="Non-hashable static arguments are not supported"):
            call()
    with pytest.raises(ValueError, match="Non-hashable static"):
        lamina.jit(lambda x, n: x, static_argnums=1)(1.0, jnp.ones(2))


def test_positions_and_names_that_do_not_exist():
    f = lambda x, y: x  # noqa: E731
    with pytest.raises(ValueError, match=r"static_argnums=\(2,\) but only accepts 2 positional"):
        lamina.jit(f, static_argnums=2)
    with pytest.raises(ValueError, match=r"static_argnums=\(-3,\)"):
        lamina.jit(f, static_argnums=-3)
    with pytest.raises(ValueError, match="invalid argnames {'z'} in static_argnames"):
        lamina.jit(f, static_argnames="z")
    with pytest.raises(ValueError, match="donate_argnums"):
        lamina.jit(f, donate_argnums=5)
    with pytest.raises(ValueError, match="donate_argnames"):
        lamina.jit(f, donate_argnames="z")
    with pytest.raises(TypeError, match="static_argnums must be"):
        lamina.jit(f, static_argnums="x")
    lamina.jit(lambda *a: a[0], static_argnums=3)(1.0)
    lamina.jit(lambda **k: 1.0, static_argnames="any")(any="thing")


def test_overlapping_static_and_donated_arguments_are_refused():
    with pytest.raises(ValueError, match="static.*donate"):
        lamina.jit(lambda x, y: x, static_argnums=0, donate_argnums=0)


# ---- what can be jitted ----------------------------------------------------------------------------------
def test_methods_partials_callables_and_builtins():
    class Model:
        def __init__(self, w):
            self.w = w

        @functools.partial(lamina.jit, static_argnums=0)
        def __call__(self, x):
            return x * self.w

        @lamina.jit
        def no_self_state(self_w, x):  # noqa: N805
            return self_w * x

        def plain(self, x):
            return x + self.w

    model = Model(3.0)
    assert model(2.0) == 6.0
    assert Model.no_self_state(2.0, 4.0) == 8.0
    assert lamina.jit(model.plain)(1.0) == 4.0
    assert lamina.jit(functools.partial(lambda a, b: a - b, 5.0))(2.0) == 3.0
    assert lamina.jit(functools.partial(lambda a, b: a - b, b=5.0))(7.0) == 2.0
    assert lamina.jit(jnp.sin)(0.0) == 0.0
    assert lamina.jit(lamina.jit(jnp.cos))(0.0) == 1.0

    class Callable:
        def __call__(self, x):
            return x + 1

    assert lamina.jit(Callable())(1.0) == 2.0


def test_jit_as_decorator_with_options():
    @lamina.jit(static_argnames="n")
    def f(x, n=2):
        return x * n

    @functools.partial(lamina.jit, static_argnums=(1,))
    def g(x, n):
        return x**n

    assert f(3.0) == 6.0 and f(3.0, n=3) == 9.0 and g(2.0, 3) == 8.0
    assert f.__name__ == "f" and f.__wrapped__(1.0) == 2.0


def test_what_cannot_be_jitted():
    for bad in (3, "f", None):
        if bad is not None:
            with pytest.raises(TypeError, match="Expected a callable value"):
                lamina.jit(bad)

    def generator(x):
        yield x

    with pytest.raises(TypeError, match="generator function"):
        lamina.jit(generator)

    async def coroutine(x):
        return x

    with pytest.raises(TypeError):
        lamina.jit(coroutine)(1.0)


def test_wrong_calls_raise_python_s_errors():
    f = lamina.jit(lambda x, y: x + y)
    for call in (lambda: f(1.0), lambda: f(1.0, 2.0, 3.0), lambda: f(1.0, z=2.0)):
        with pytest.raises(TypeError, match="argument"):
            call()
    assert f(1.0, 2.0) == 3.0


def test_unused_arguments_may_be_anything_an_array_can_be():
    f = lamina.jit(lambda x, y: x * 2)
    assert f(1.0, X) == 2.0 and f(1.0, X[:0]) == 2.0
    text = f.lower(1.0, X).as_text()
    assert "tensor<3xf32>" not in text
    kept = lamina.jit(lambda x, y: x * 2, keep_unused=True)
    assert kept(1.0, X) == 2.0
    assert "tensor<3xf32>" in kept.lower(1.0, X).as_text()


def test_inline_writes_out_the_body():
    inner = lamina.jit(lambda x: jnp.sin(x), inline=True)
    assert "private" not in lamina.jit(lambda x: inner(x) + 1).lower(X).as_text()
    assert float(lamina.jit(lambda x: inner(x).sum())(X)) == pytest.approx(np.sin(X).sum())
    assert "jit[" not in str(lamina.make_jaxpr(lambda x: inner(x) + 1)(X))


def test_disable_jit_runs_python():
    seen = []

    def f(x):
        seen.append(float(x))
        return x * 2 if x > 0 else x

    with lamina.disable_jit():
        assert lamina.jit(f)(3.0) == 6.0
        assert lamina.jit(f)(jnp.float32(-3.0)) == -3.0
    assert seen == [3.0, -3.0]


# ---- what is logged ----------------------------------------------------------------------------------------
def run(program: str, **env: str) -> subprocess.CompletedProcess:
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], timeout=600, text=True,
                          capture_output=True, env={**os.environ, **env})  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done


def test_log_says_why_something_is_traced_again():
    done = run(
        """
        import numpy as np, lamina
        @lamina.jit
        def f(x, n=1):
            return x
        f(1.0)
        f(np.float32(1))
        f(np.ones(2, np.float32))
        f((1.0, 2.0))
        with lamina.enable_x64(True):
            f(1.0)
        g = lamina.jit(lambda x, n: x * n, static_argnums=1)
        g(1.0, 2)
        g(1.0, 3)
        """,
        LAMINA_LOG="retrace",
    )
    lines = [line for line in done.stderr.splitlines() if line.startswith("lamina: ")]
    again = "f is traced again: new shapes, dtypes or weak types"
    assert re.fullmatch(rf"lamina: retrace \d+\.\d ms: {again}", lines[0])
    text = done.stderr
    assert "leaf 0: ShapedArray(float32[], weak_type=True) before, ShapedArray(float32[]) now" in text
    assert "ShapedArray(float32[2]) now" in text
    assert "new structure of the arguments" in text
    assert "settings (x64, ...)" in text
    assert "_lambda_ is traced again: new static values" in text and "now ((1, <class 'int'>, 3),)" in text


def test_log_names_compilations_and_the_cache(tmp_path):
    program = """
        import numpy as np, lamina
        lamina.jit(lambda x: x * 2 + 1)(np.ones(3, np.float32))
    """
    first = run(program, LAMINA_LOG="compile,cache", LAMINA_CACHE_DIR=str(tmp_path))
    duration = r"\d+\.\d ms"
    assert re.search(rf"^lamina: compile {duration}: _lambda_: 2 equations$", first.stderr, re.M)
    second = run(program, LAMINA_LOG="compile,cache", LAMINA_CACHE_DIR=str(tmp_path))
    found = rf"^lamina: cache {duration}: _lambda_: found in {re.escape(str(tmp_path))}"
    assert re.search(found, second.stderr, re.M)
    silent = run(program, LAMINA_CACHE_DIR=str(tmp_path))
    assert silent.stderr == ""


def test_a_second_process_does_not_load_mlir(tmp_path):
    program = """
        import sys, numpy as np, lamina
        assert not any(m.startswith(("torch_mlir", "llvmlite")) for m in sys.modules)
        print(lamina.jit(lambda x: x * 2 + 1)(np.ones(3, np.float32)))
        print(any(m.startswith("torch_mlir") for m in sys.modules))
    """
    first = run(program, LAMINA_CACHE_DIR=str(tmp_path)).stdout
    second = run(program, LAMINA_CACHE_DIR=str(tmp_path)).stdout
    assert first.splitlines() == ["[3. 3. 3.]", "True"]
    assert second.splitlines() == ["[3. 3. 3.]", "False"]


# ---- the count of traces is JAX's ------------------------------------------------------------------------
def test_number_of_traces_is_jax_s():
    def program(m):
        traces = []
        asarray = m.np.asarray

        @m.jit
        def f(x):
            traces.append(1)
            return x

        calls = [1, 2, 1.0, 2.0, True, 1j, np.int8(1), np.float32(1), np.float64(1), np.int64(1),
                 asarray(1.0), asarray(1), X, asarray(X), X[:2], [X], (X,), {"a": X}, None]  # fmt: skip
        counts = []
        for c in calls:
            f(c)
            counts.append(len(traces))
        return np.array(counts)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(program)
    assert jax.__version__


def test_bits_do_not_depend_on_how_well_a_kernel_is_worth_compiling() -> None:
    x, y, z = np.random.default_rng(0).standard_normal((3, 4096)).astype(np.float32)
    f = lamina.jit(lambda x, y, z: jnp.tanh(x * y + z) * x - y)
    assert np.array_equal(f(x[:8], y[:8], z[:8]), f(x, y, z)[:8])


@pytest.mark.parametrize("m", [lamina, jax], ids=["lamina", "jax"])
def test_arguments_that_are_results_live_on_their_own(m):
    for function, end in (
        (lambda x: x, lambda x: x.delete()),
        (lambda x: (x + 1, x)[1], lambda x: m.jit(lambda x: x + 1, donate_argnums=0)(x)),
    ):
        x = m.numpy.arange(3.0)
        y = m.jit(function)(x)
        assert y is not x
        end(x)
        assert x.is_deleted() and y.tolist() == [0, 1, 2]


def test_arguments_named_by_what_cannot_be_static_or_donated():
    class NoSignature:
        @property
        def __signature__(self):
            raise TypeError("there is none")

        def __call__(self, *args):
            return None

    def h(a, /, b, *args, c=1):
        return b

    for m in (lamina, jax):
        m.jit(h, donate_argnums=(0, -999))  # there may be as many arguments
        for names in (("a", "c"), ("args", "c")):
            with pytest.raises(ValueError):
                m.jit(h, static_argnames=names)
        with pytest.raises(ValueError, match="Pass donate_argnums instead of donate_argnames"):
            m.jit(NoSignature(), donate_argnames="a")(1.0)


def test_jaxprs_have_names_and_pretty_texts():
    def foo(x):
        return x + 1

    for m in (lamina, jax):
        made = m.make_jaxpr(foo)
        assert made.__name__ == "make_jaxpr(foo)"
        for jaxpr in (made(1.0), made(1.0).jaxpr):
            assert "add" in jaxpr.pretty_print(use_color=False)
            assert "test_jit.py" in jaxpr.pretty_print(source_info=True, use_color=False)
