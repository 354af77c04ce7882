"""Programs of points, drawn at random: what is made of a few coordinates each, for many points at once, with
derivatives. Shapes of two to four are where parts, pads and masks meet in one kernel."""

from __future__ import annotations

import random
from collections.abc import Callable

import jax
import numpy as np
import pytest

import lamina

POINTS = (1, 8, 257, 1024, 1024)


def _numbers(rng: random.Random, count: int) -> str:
    return ", ".join(f"{rng.uniform(-2, 2):.2f}" for _ in range(count))


def _scalars(rng: random.Random, size: int) -> tuple[str, ...]:
    """Ways to make a number, of numbers {s} and vectors {v}."""
    return (
        f"np.linalg.norm({{v}} - np.array([{_numbers(rng, size)}]))",
        "np.dot({v}, {v})", "{s} * {s}", "np.sin({s}) + {s}", "np.minimum({s}, {s})",
        f"np.maximum({{s}}, {_numbers(rng, 1)})", f"np.where({{s}} > {_numbers(rng, 1)}, {{s}}, {{s}} * {{s}})",
        "np.sum({v}[1:])", "np.max({v})", "np.exp(-{s} ** 2)", "np.sqrt(1 + {s} ** 2)", "{v}.mean()",
        f"np.abs({{s}} - {_numbers(rng, 1)})",
    )  # fmt: skip


def _vectors(rng: random.Random, size: int) -> tuple[str, ...]:
    """Ways to make a vector."""
    place = rng.randrange(size)
    rows = ", ".join(f"[{_numbers(rng, size)}]" for _ in range(size))
    return (
        "{v} * {s}", "{v} / (1 + np.linalg.norm({v}))", f"np.stack([{', '.join(['{s}'] * size)}])",
        "np.concatenate([{v}[:1], {v}[1:] * {s}])", "{v}[::-1]", "np.roll({v}, 1)", "np.where({v} > {s}, {v}, {v})",
        f"{{v}}.at[{place}].set({{s}})", f"{{v}}.at[{place}].add({{s}})", f"{{v}} + np.array([{_numbers(rng, size)}])",
        "np.tanh({v})", "np.cumsum({v})", "np.cross({v}, {v})" if size == 3 else "np.minimum({v}, {s})",
        f"np.array([{rows}]) @ {{v}}", f"np.pad({{v}}[:{size - 1}], (1, 0))",
        f"np.outer({{v}}, {{v}}).sum({rng.randrange(2)})",
    )  # fmt: skip


def _draw(rng: random.Random) -> tuple[int, str]:
    """(coordinates of a point, text of a function f(p, q) of two of them)."""
    size = rng.choice((2, 3, 3, 3, 4))
    known = {"{s}": [f"{v}[{i}]" for v in "pq" for i in range(size)], "{v}": ["p", "q"]}
    lines = []
    for number in range(rng.randint(3, 9)):
        kind, ways = rng.choice((("{s}", _scalars), ("{v}", _vectors)))
        text = rng.choice(ways(rng, size))
        for hole, names in known.items():
            while hole in text:
                text = text.replace(hole, rng.choice(names), 1)
        lines.append(f"    x{number} = {text}")
        known[kind].append(f"x{number}")
    scalars = [f"{name} * {rng.uniform(0.3, 1):.2f}" for name in known["{s}"][-3:]]
    vectors = [f"np.sum({name}) * {rng.uniform(0.3, 1):.2f}" for name in known["{v}"][-2:]]
    return size, "\n".join(["def f(p, q):", *lines, f"    return {' + '.join(scalars + vectors)}"])


_FORMS = {
    "value": lambda m, f: f,
    "gradients": lambda m, f: m.grad(f, (0, 1)),
    "value and gradient": lambda m, f: m.value_and_grad(f),
    "mixed derivatives": lambda m, f: m.jacfwd(m.grad(f, 1)),
}


# Those apart once found numbers that a loop over vectors had read too early.
@pytest.mark.parametrize("seed", [*range(40), 81, 170, 310, 369, 390, 519])
def test_points_with_derivatives(seed):
    rng = random.Random(seed)
    size, text = _draw(rng)
    form, count = rng.choice((*_FORMS, "gradients", "gradients")), rng.choice(POINTS)
    p, q = (np.random.default_rng(seed + n).standard_normal((count, size)).astype(np.float32) for n in (0, 1000))

    def by(m, numpy) -> Callable:
        scope = {"np": numpy}
        exec(text, scope)
        return m.jit(m.vmap(_FORMS[form](m, scope["f"])))

    with jax.enable_x64(True):
        wanted = jax.tree.leaves(by(jax, jax.numpy)(p.astype(np.float64), q.astype(np.float64)))
    got = lamina.tree.leaves(by(lamina, lamina.numpy)(p, q))
    for one, other in zip(got, wanted, strict=True):
        other = np.asarray(other)
        scale = np.abs(other[np.isfinite(other)]).max(initial=1.0)
        close = np.isclose(np.asarray(one), other, rtol=2e-3, atol=2e-4 * scale, equal_nan=True)
        # Of a mask or a maximum, the last bit of a number may decide.
        assert (close | ~np.isfinite(other)).mean() > 0.98, f"{form} of {count} points:\n{text}"
