"""Arrays that loops carry and that change places: right in every order, and without copies."""

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

import lamina
import lamina.numpy as jnp
from lamina import lax
from lamina.backends.control_program import as_program
from lamina.backends.lowering import run_pipeline
from lamina.backends.pipelines import CPU_CONTROL
from lamina.backends.planned import kernels_of
from lamina.dialects.attributes import KIND, string_of
from lamina.dialects.context import context, parse
from lamina.dialects.vendors import ir

N = 300  # so many floats that their buffers change places
ARRAYS = np.random.default_rng(0).random((4, N)).astype(np.float32)


def _copies_in_steps(f, *arguments) -> int:
    """How many copies of arrays the steps of a program's loops make, in @main and in kernels that are
    loops."""
    with context():
        return _copies_in_plans(parse(lamina.jit(f).lower(*arguments).compile().as_text("planned")))


def _copies_in_plans(planned: ir.Module) -> int:
    plans = [planned]
    for kernel in kernels_of(planned).values():
        if string_of(kernel, KIND) == "control":
            plan = ir.Module.create(ir.Location.unknown())
            with ir.InsertionPoint(plan.body):
                as_program(kernel.clone())
            run_pipeline(CPU_CONTROL, plan)
            plans.append(plan)
    return sum(_copies(plan) for plan in plans)


def _copies(plan: ir.Module) -> int:
    found = 0

    def visit(op: ir.Operation) -> ir.WalkResult:
        nonlocal found
        if op.name == "memref.copy" and op.operands[0].type.rank:
            above = op.parent
            while above is not None and above.name != "scf.while":
                above = above.parent
            found += above is not None
        return ir.WalkResult.ADVANCE

    plan.operation.walk(visit)
    return found


def _leapfrog(np_, now, before):
    return 2 * now - before + 0.1 * np_.roll(now, 1), now


STEPS = {
    "leapfrog": (2, _leapfrog),
    "swap": (2, lambda np_, a, b: (b, a)),
    "three in turn": (3, lambda np_, a, b, c: (b, c, a)),
    "four levels": (4, lambda np_, a, b, c, d: (a + 0.1 * d - 0.2 * np_.flip(b), a, b, c)),
    "two pairs": (4, lambda np_, a, b, c, d: (b, a + 1, d, c * 2)),
    "all from neighbours": (1, lambda np_, a: (0.5 * (a + np_.roll(a, 1)),)),
    "one kept": (3, lambda np_, a, b, c: (b, a, c + a)),
}


def _in_numpy(step, arrays, times):
    for _ in range(times):
        arrays = step(np, *arrays)
    return arrays


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("kind", ["fori", "while", "scan"])
def test_exchanges(name, kind):
    count, step = STEPS[name]

    def run(times, *arrays):
        if kind == "scan":
            return lax.scan(lambda c, _: (step(jnp, *c), c[0][3]), arrays, length=5)[0]
        if kind == "while":
            return lax.while_loop(
                lambda c: c[0] < times, lambda c: (c[0] + 1, *step(jnp, *c[1:])), (0, *arrays)
            )[1:]
        return lax.fori_loop(0, times, lambda _, c: step(jnp, *c), arrays)

    given = [a.copy() for a in ARRAYS[:count]]
    compiled = lamina.jit(run)
    for times in [5] if kind == "scan" else range(8):
        got = compiled(times, *given)
        for one, expected in zip(got, _in_numpy(step, given, times), strict=True):
            np.testing.assert_allclose(one, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(given, ARRAYS[:count])
    assert _copies_in_steps(run, 5, *given) == 0


def test_a_loop_in_a_loop():
    """The inner loop's arrays are back in their places when the outer loop exchanges them."""

    def run(inner, a, b):
        def outer(_, c):
            a, b = lax.fori_loop(0, inner, lambda _, c: _leapfrog(jnp, *c), c)
            return b, a * 0.5

        return lax.fori_loop(0, 3, outer, (a, b))

    for inner in range(5):
        a, b = ARRAYS[:2]
        for _ in range(3):
            a, b = _in_numpy(_leapfrog, (a, b), inner)
            a, b = b, a * np.float32(0.5)
        got = lamina.jit(run)(inner, *ARRAYS[:2])
        np.testing.assert_allclose(got, (a, b), rtol=1e-3, atol=1e-4)


def test_one_array_carried_twice_and_arguments_that_change():
    def run(a):
        return lax.fori_loop(0, 3, lambda _, c: _leapfrog(jnp, *c), (a, a)), a

    (now, before), same = lamina.jit(run)(ARRAYS[0])
    expected = _in_numpy(_leapfrog, (ARRAYS[0], ARRAYS[0]), 3)
    np.testing.assert_allclose((now, before), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(same, ARRAYS[0])
    given = [jnp.array(a) for a in ARRAYS[:2]]
    swap = lamina.jit(
        lambda a, b: lax.fori_loop(0, 3, lambda _, c: (c[1], c[0]), (a, b)), donate_argnums=(0, 1)
    )
    np.testing.assert_array_equal(swap(*given), ARRAYS[1::-1])


PARTS = {
    "neighbours": lambda put, a, b: (put(a, np.s_[1:-1], a[2:] - a[:-2]), b + 1),
    "the same place": lambda put, a, b: (put(a, np.s_[1:], 0.5 * a[1:] + b[:-1]), b),
    "of the other": lambda put, a, b: (put(a, np.s_[:-1], b[1:] * 0.5), put(b, np.s_[1:], a[:-1])),
    "by turns": lambda put, a, b: (put(b, np.s_[1:-1], a[2:] - b[1:-1]), a),
    "rows": lambda put, a, b: (
        put(a.reshape(64, 64), np.s_[1:-1, 1:], b.reshape(64, 64)[2:, 1:] * 0.3).reshape(-1), a
    ),
    "columns": lambda put, a, b: (
        put(b.reshape(32, 128), np.s_[1:-1, 1:-1], a.reshape(32, 128)[2:, 2:]).reshape(-1), a
    ),
    "twice": lambda put, a, b: (put(put(a, np.s_[:-1], a[1:] * 0.5), np.s_[1:], b[:-1] * 0.3), a),
    "needed elsewhere": lambda put, a, b: (put(a, np.s_[1:], a[1:] * 0.5), b + a[::-1]),
}  # fmt: skip


@pytest.mark.parametrize("name", PARTS)
def test_most_of_an_array_is_replaced(name):
    def put(a, at, new):
        if isinstance(a, np.ndarray):
            a = a.copy()
            a[at] = new
            return a
        return a.at[at].set(new)

    def run(times, a, b):
        return lax.fori_loop(0, times, lambda _, c: PARTS[name](put, *c), (a, b))

    a, b = arrays = np.random.default_rng(3).random((2, 4096)).astype(np.float32)
    for times in range(4):
        got = lamina.jit(run)(times, *arrays)
        np.testing.assert_allclose(got, (a, b), rtol=1e-4, atol=1e-4)
        a, b = PARTS[name](put, a, b)
    assert _copies_in_steps(run, 5, *arrays) == 0


def test_loops_over_lanes():
    def run(a, b):
        return lax.fori_loop(0, 5, lambda _, c: _leapfrog(jnp, *c), (a, b))

    lanes = np.random.default_rng(1).random((2, 70, N)).astype(np.float32)
    expected = np.stack([_in_numpy(_leapfrog, (a, b), 5) for a, b in zip(*lanes, strict=True)], 1)
    for many in (lamina.vmap(run), lambda a, b: lax.map(lambda ab: run(*ab), (a, b))):
        np.testing.assert_allclose(lamina.jit(many)(*lanes), expected, rtol=1e-3, atol=1e-4)


@st.composite
def _programs(draw):
    """For each array that a loop carries: what it becomes, as functions of all."""
    count = draw(st.integers(1, 5))
    one = st.integers(0, count - 1)
    steps = st.one_of(
        st.tuples(st.just("is"), one), st.tuples(st.just("add"), one, one), st.tuples(st.just("flip"), one),
        st.tuples(st.just("put"), one, one), st.tuples(st.just("shift"), one, one), st.tuples(st.just("zero")),
    )  # fmt: skip
    return draw(st.lists(steps, min_size=count, max_size=count))


def _stepped(np_, program, arrays):
    def put(a, b):
        if np_ is np:
            a = a.copy()
            a[2:9] = b[3:10]
            return a
        return a.at[2:9].set(b[3:10])

    made = {
        "is": lambda a: a,
        "add": lambda a, b: a + b * np.float32(0.5),
        "flip": lambda a: np_.flip(a),
        "put": put,
        "shift": lambda a, b: np_.concatenate([a[1:] - b[:-1], b[:1]]),
        "zero": lambda: np_.zeros(N, np.float32),
    }
    return tuple(made[name](*(arrays[i] for i in of)) for name, *of in program)


@hypothesis.settings(max_examples=60, deadline=None)
@hypothesis.given(_programs(), _programs(), st.integers(0, 5), st.booleans())
def test_drawn_exchanges(program, inner, times, nested):
    count = len(program)
    nested = nested and len(inner) == count
    arrays = np.random.default_rng(2).random((count, N)).astype(np.float32)

    def run(times, *arrays):
        def step(i, c):
            if nested:
                c = lax.fori_loop(0, i, lambda _, c: _stepped(jnp, inner, c), c)
            return _stepped(jnp, program, c)

        return lax.fori_loop(0, times, step, arrays)

    expected = tuple(arrays)
    for i in range(times):
        for _ in range(i if nested else 0):
            expected = _stepped(np, inner, expected)
        expected = _stepped(np, program, expected)
    got = lamina.jit(run)(times, *arrays)
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3 * (1 + np.abs(other).max()))


def test_an_entry_in_several_functions_is_not_cut_behind_a_loop(monkeypatch):
    monkeypatch.setattr("lamina.backends.cpu.entry._LONGEST", 1)  # lines of a function
    arrays = np.random.default_rng(0).random((3, 100_000)).astype(np.float32)

    def step(np_, now, before, older):
        return np_.sort(2 * now - before), now, before

    @lamina.jit
    def f(*carry, steps):
        for _ in range(2):
            carry = lax.fori_loop(0, steps, lambda i, c: step(jnp, *c), carry)
        return carry

    planned = f.lower(*arrays, steps=3).compile().as_text("planned")
    assert "memref.extract_aligned_pointer_as_index" in planned  # whether the loop ended at home
    for steps in range(5):
        want = tuple(arrays)
        for _ in range(2 * steps):
            want = step(np, *want)
        for a, b in zip(f(*arrays, steps=steps), want, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
