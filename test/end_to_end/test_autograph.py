"""Python control flow on traced values: the rewritten function under jit gives what Python gives."""

from __future__ import annotations

import functools
import itertools
import linecache
import traceback

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

import lamina
import lamina.numpy as jnp

# ---- programs of all kinds -----------------------------------------------------------------------


def branches(x):
    if x > 0:
        y = x * 2
    elif x < -5:
        y = -x
    else:
        y = 0.0
    return y


def early_returns(x):
    if x > 0:
        return x
    if x < -3:
        x = x + 1
        if x < -10:
            return x * 100
    return -x


def endless(n):
    i = 0
    s = 0
    while True:
        i += 1
        if i % 3 == 0:
            continue
        if i > n:
            break
        s += i
    return s


def return_from_a_loop(x, n):
    for i in range(n):
        x = x + i * 0.5
        if x > 10:
            return x, i
    return x, -1


def nested_loops(n):
    total = 0
    for i in range(n):
        for j in range(i):
            if (i + j) % 2 == 0:
                continue
            total += i * j
            if total > 50:
                break
        else:
            total += 1
    return total


def return_from_nested_loops(n):
    for i in range(1, n):
        j = i
        while j > 0:
            if i * j > 20:
                return i * 100 + j
            j -= 1
    return -1


def expressions(x, y):
    small = 1.0 if 0 < x < y <= 10 else 2.0
    return small + (3 if x > 5 or not y >= 0 else 4) + max(x, y)


def over_an_array(xs):
    best = xs[0]
    for i, v in enumerate(xs):
        if v > best and not v > 100:
            best = v + i
    for a, b in zip(xs, xs[::-1]):
        best += a * b
    return best


def steps_backwards(n):
    s = 0
    for i in range(n, 0, -2):
        s = 2 * s + i
    return s


_LIMIT = 3.0


def _halved(z):
    while z > _LIMIT:
        z = z / 2
    return z


def calls(x):
    def inner(v, *, twice=False):
        if v > 3:
            return _halved(v)
        return v

    f = lambda v: v if v > 0 else -v  # noqa: E731
    return inner(x) + inner(x * 2, twice=True) + f(x)


def static_range(x):
    s = 0.0
    for i in range(40):
        s = s + jnp.sin(x) * i
    names = []
    for k in range(12):  # changes an object: it stays Python's
        names.append(x * k)
    return s + names[11]


def tuples(x, n):
    pair = (x, 0)
    while pair[1] < n:
        pair = (pair[0] * 1.5, pair[1] + 1)
    return pair


def prime_numbers(n):
    count = 0
    for i in range(2, n):
        j = 2
        while (square := j * j) <= i:
            if i % j == 0:
                break
            j += 1
        else:
            count += square > 0
    return count


def matched(n):
    match n:
        case 3 | 5:
            r = 1
        case 9:
            r = 2
        case k if k > 20:
            r = k
        case _:
            r = -1
    return r


def only_returns_end_it(n):
    while True:
        n = n * 2 + 1
        if n > 100:
            return n
        if n % 7 == 0:
            return -n


def in_blocks(x, n):
    total = 0
    try:
        with lamina.named_scope("a"):
            if x > 0:
                return x * 2, n
            for i in reversed(range(n)):
                if i == 2:
                    continue
                total = total * 2 + i
    except ValueError:
        total = 1
    finally:
        x = x + 1
    return x, total


def bubble_sort(x):
    x = jnp.asarray(x)
    n = x.shape[0]
    for i in range(n):
        for j in range(n - 1 - i):
            if x[j] > x[j + 1]:
                (a, *_), b = x[j : j + 2], x[j + 1]
                x = x.at[j].set(b).at[j + 1].set(a)
    return x


CASES = [
    (prime_numbers, [(12,), (30,)]),
    (matched, [(3,), (5,), (9,), (25,), (4,)]),
    (only_returns_end_it, [(3,), (20,)]),
    (in_blocks, [(1.0, 3), (-1.0, 7)]),
    (bubble_sort, [(np.float32([3, 1, 2]),)]),
    (branches, [(1.0,), (-1.0,), (-7.0,)]),
    (early_returns, [(1.0,), (-1.0,), (-7.0,), (-20.0,)]),
    (endless, [(10,), (0,), (1,)]),
    (return_from_a_loop, [(1.0, 100), (1.0, 3), (20.0, 1), (20.0, 0)]),
    (nested_loops, [(3,), (6,), (9,)]),
    (return_from_nested_loops, [(3,), (9,)]),
    (expressions, [(1.0, 2.0), (6.0, 20.0), (-1.0, -2.0)]),
    (over_an_array, [(np.float32([1, 5, 300, 2]),)]),
    (steps_backwards, [(7,), (0,)]),
    (calls, [(1.0,), (5.0,), (-100.0,)]),
    (static_range, [(0.25,)]),
    (tuples, [(1.0, 5), (1.0, 0)]),
]


@pytest.mark.parametrize(("fun", "calls"), CASES, ids=lambda x: getattr(x, "__name__", ""))
def test_gives_what_python_gives(fun, calls):
    rewritten = lamina.autograph(fun)
    jitted = lamina.jit(fun, control_flow="python")
    for args in calls:
        want = fun(*args)
        np.testing.assert_allclose(rewritten(*args), want, rtol=1e-6)
        np.testing.assert_allclose(jitted(*args), want, rtol=1e-5)


def test_loops_become_what_their_length_allows():
    def primitives(fun, *args):
        return {e.primitive.name for e in lamina.make_jaxpr(lamina.autograph(fun))(*args).eqns}

    assert "scan" in primitives(static_range, 0.5)
    assert "scan" in primitives(over_an_array, jnp.ones(4))
    assert "while" in primitives(endless, 3)
    assert "cond" in primitives(branches, 3.0)


def test_derivatives_and_batches_go_through():
    scan_like = lamina.jit(static_range, control_flow="python")
    x = 0.25
    expected = np.cos(x) * sum(range(40)) + 11
    np.testing.assert_allclose(lamina.grad(scan_like)(x), expected, rtol=1e-5)
    np.testing.assert_allclose(lamina.grad(lamina.autograph(branches))(-7.0), -1)
    got = lamina.vmap(lamina.jit(endless, control_flow="python"))(jnp.arange(6))
    assert got.tolist() == [endless(i) for i in range(6)]


class Machine:
    def __init__(self):
        self.__gain = 3.0

    @lamina.autograph
    def run(self, x, *rest, scale=2.0):
        if x > 0:
            return x * self.__gain * scale
        return x

    def assign(self, x):
        if x > 0:
            self.y = x
        return x


def test_methods_partials_defaults_closures_and_lambdas():
    machine = Machine()
    assert lamina.jit(machine.run)(2.0) == 12
    assert lamina.jit(functools.partial(machine.run, scale=1.0))(2.0) == 6
    limit = 1.0

    def closed(x):
        nonlocal limit
        return x if x > limit else limit

    f = lamina.jit(closed, control_flow="python")
    assert f(3.0) == 3 and f(0.5) == 1
    g, h = lamina.autograph(lambda x: x if x > 0 else -x), (lambda y: y)
    assert lamina.jit(g)(-3.0) == 3 and h(1) == 1
    globals()["_LIMIT"] = 10.0
    try:
        assert lamina.jit(_halved, control_flow="python")(16.0) == 8
    finally:
        globals()["_LIMIT"] = 3.0


@lamina.autograph.do_not_convert
def _as_it_is(x):
    return x if x > 0 else -x


def test_opting_out_and_passing_asserts():
    def f(x):
        assert x > 0, "is not known"
        return _as_it_is(x)

    with pytest.raises(lamina.errors.TracerBoolConversionError):
        lamina.jit(f, control_flow="python")(1.0)
    assert lamina.autograph(f)(1.0) == 1
    with pytest.raises(AssertionError, match="is not known"):
        lamina.autograph(f)(-1.0)


# ---- what is refused -----------------------------------------------------------------------------


def other_shape(x):
    if x > 0:
        y = jnp.ones(3)
    else:
        y = 1
    return y


def one_branch_only(x):
    if x > 0:
        z = x
    return z + 1


def growing(x):
    while x.sum() < 10:
        x = jnp.concatenate([x, x])
    return x


def no_result(x):
    if x > 0:
        return 1.0


def changed_text(x):
    name = "a"
    while x < 3:
        x, name = x + 1, name + "b"
    return x


def counted(n):
    for i in range(n):  # noqa: B007
        n = n - 1
    return n, i


def collected(x):
    out = []
    if x > 0:
        out.append(x)
    return out


def factorial(n):
    if n <= 1:
        return 1
    return n * factorial(n - 1)


REFUSED = [
    (counted, 3, UnboundLocalError, "`i` is assigned in the loop"),
    (collected, 1.0, TypeError, r"`out.append\(x\)` in a branch at .* changes a list"),
    (factorial, 4, RecursionError, "a function that calls itself, without end"),
    (other_shape, 1.0, TypeError, r"`y` is f32\[3\] where .* true and i32\[\] where"),
    (one_branch_only, 1.0, UnboundLocalError, "`z` is not assigned when the condition is false"),
    (growing, np.ones(2, np.float32), TypeError, r"`x` is f32\[2\] before .* and f32\[4\] after"),
    (no_result, 1.0, TypeError, "the function's result is .* and None where"),
    (changed_text, 1.0, TypeError, "`name` is a str before the loop"),
    (Machine().assign, 1.0, TypeError, "self.y is assigned in a branch"),
]


@pytest.mark.parametrize(("fun", "x", "kind", "message"), REFUSED)
def test_messages_name_the_variable_and_the_line(fun, x, kind, message):
    with pytest.raises(kind, match=message) as caught:
        lamina.jit(fun, control_flow="python")(x)
    assert type(caught.value) is kind
    first = fun.__code__.co_firstlineno
    line = int(str(caught.value).split(f"{__file__}:")[1].split(" ")[0])
    assert first < line <= first + 3


def test_functions_without_source_and_generators_are_refused():
    scope: dict = {}
    exec("def f(x):\n    return x", scope)
    with pytest.raises(TypeError, match="the source of f .* is not there"):
        lamina.autograph(scope["f"])

    def generator(x):
        yield x

    with pytest.raises(TypeError, match="is a generator"):
        lamina.autograph(generator)
    with pytest.raises(TypeError, match="apply it before jit"):
        lamina.autograph(lamina.jit(branches))


def test_places_are_the_users():
    def f(x):
        if x > 0:
            x = jnp.sin(x)
        return x

    text = lamina.jit(f, control_flow="python").lower(1.0).as_text(debug_info=True)
    line = f.__code__.co_firstlineno + 2
    assert f'test_autograph.py":{line}:17' in text

    def fails(x):
        if x > 0:
            raise ValueError("here")
        return x

    with pytest.raises(ValueError) as caught:
        lamina.jit(fails, control_flow="python")(1.0)
    frame = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert (frame.filename, frame.lineno) == (__file__, fails.__code__.co_firstlineno + 2)


# ---- random programs -----------------------------------------------------------------------------
_NAMES = ("a", "b", "c")
_numbers = itertools.count()


@st.composite
def _expression(draw, depth=2):
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from([*_NAMES, "1", "2", "7"]))
    left, right = draw(_expression(depth - 1)), draw(_expression(depth - 1))
    if draw(st.integers(0, 5)) == 0:
        return f"({left} if {draw(_condition(0))} else {right})"
    return f"({left} {draw(st.sampled_from(['+', '-', '*']))} {right}) % 97"


@st.composite
def _condition(draw, depth=1):
    simple = [draw(st.sampled_from([*_NAMES, "40"])) for _ in range(3)]
    kind = draw(st.integers(0, 4)) if depth else 0
    if kind <= 1:
        return f"{simple[0]} {draw(st.sampled_from(['<', '>=', '!=']))} {simple[1]}"
    if kind == 2:
        return f"{simple[0]} < {simple[1]} <= {simple[2]}"
    if kind == 3:
        return f"not {draw(_condition(0))}"
    word = draw(st.sampled_from(["and", "or"]))
    return f"({draw(_condition(0))} {word} {draw(_condition(0))})"


@st.composite
def _block(draw, depth, in_loop, indent, counter):
    lines = []
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.integers(0, 9 if depth else 3))
        name = draw(st.sampled_from(_NAMES))
        pad = " " * indent
        if kind <= 2:
            lines.append(f"{pad}{name} = {draw(_expression())}")
        elif kind == 3:
            lines.append(f"{pad}{name} = ({name} + {draw(_expression(1))}) % 97")
        elif kind <= 6:
            lines.append(f"{pad}if {draw(_condition())}:")
            lines += draw(_block(depth - 1, in_loop, indent + 1, counter))
            if draw(st.booleans()):
                jump = draw(st.integers(0, 4))
                if jump == 0:
                    lines.append(f"{pad} return {draw(_expression(1))}")
                elif jump <= 2 and in_loop:
                    lines.append(f"{pad} {'break' if jump == 1 else 'continue'}")
            if draw(st.booleans()):
                lines.append(f"{pad}else:")
                lines += draw(_block(depth - 1, in_loop, indent + 1, counter))
        elif kind <= 8:
            lines.append(
                f"{pad}for i{next(counter)} in range({draw(st.sampled_from(_NAMES))} % 4):"
            )
            lines += draw(_block(depth - 1, True, indent + 1, counter))
        else:
            k = f"k{next(counter)}"
            lines += [f"{pad}{k} = 0", f"{pad}while {k} < 3 and {draw(_condition())}:"]
            lines += [f"{pad} {k} = {k} + 1", *draw(_block(depth - 1, True, indent + 1, counter))]
    return lines


@st.composite
def _programs(draw):
    body = draw(_block(2, False, 1, itertools.count()))
    return "\n".join(["def f(a, b, c):", *body, " return (a + 3 * b + 5 * c) % 97", ""])


# Each is a program of many loops and branches to compile.
@hypothesis.settings(max_examples=max(hypothesis.settings().max_examples // 4, 1))
@hypothesis.given(_programs())
def test_random_programs_give_what_python_gives(text):
    file = f"<random program {next(_numbers)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    scope: dict = {}
    exec(compile(text, file, "exec"), scope)
    jitted = lamina.jit(scope["f"], control_flow="python")
    for args in ((1, 2, 3), (50, 7, 0), (3, 41, 90)):
        assert int(jitted(*args)) == scope["f"](*args), text
