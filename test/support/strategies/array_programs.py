"""Random array programs as text, of sizes at which kernels have vectors, tiles, tails and threads.

A program is lines of `np`, `lax` and `nn` over its arguments, such as

    v2 = np.sum(v0 * 0.5, axis=1)
    v3 = np.concatenate([v2, v1[::2]])

which run the same in lamina and in JAX. Values that rounding can't change (`exact`) are told from
others, so that comparisons, sorts and places of extremes are decided by exact ones alone: a program
in f32 gives what it gives in f64, up to rounding. Values stay small: what grows is scaled down.

`draw` is anything that chooses one item of a list: `random.Random(seed).choice`, or Hypothesis's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

SIZES = [1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 127, 130, 257]
LARGEST = 150_000
"""Elements of a value."""
Draw = Callable[[Sequence[Any]], Any]


@dataclass(frozen=True)
class Value:
    """What is known of a value while its program is written."""

    name: str
    shape: tuple[int, ...]
    kind: str
    """f, i or b."""
    exact: bool
    large: float = 4.0
    """About how large its elements are at most."""

    @property
    def size(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True)
class Program:
    """Lines of text, over arguments of these shapes and kinds."""

    arguments: tuple[Value, ...]
    lines: tuple[str, ...]
    results: tuple[Value, ...]

    def __str__(self) -> str:
        given = ", ".join(f"{v.name}: {v.kind}{list(v.shape)}" for v in self.arguments)
        body = "".join(f"    {line}\n" for line in self.lines)
        return f"def f({given}):\n{body}    return {', '.join(v.name for v in self.results)}"

    def function(self, library: Any) -> Callable[..., tuple[Any, ...]]:
        """The program over `library.numpy`, `library.lax` and `library.nn`."""
        names = ", ".join(v.name for v in self.arguments)
        body = "".join(f"    {line}\n" for line in self.lines)
        text = f"def f({names}):\n{body}    return ({', '.join(v.name for v in self.results)},)\n"
        scope = {"np": library.numpy, "lax": library.lax, "nn": library.nn}
        exec(compile(text, "<array program>", "exec"), scope)
        return scope["f"]  # type: ignore[return-value]

    def drawn(self, seed: int) -> list[np.ndarray[Any, Any]]:
        """Arguments: multiples of 1/8 in f32, small int32, bools."""
        rng = np.random.default_rng(seed)
        found = []
        for v in self.arguments:
            if v.kind == "f":
                found.append((rng.integers(-24, 25, v.shape) / 8).astype(np.float32))
            elif v.kind == "i":
                found.append(rng.integers(-9, 10, v.shape).astype(np.int32))
            else:
                found.append(rng.random(v.shape) > 0.5)
        return found


class Draft:
    """A program while it is written: its lines so far, and what is known of its values."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.lines: list[str] = []
        self.values: list[Value] = []
        self._sizes = [draw(SIZES) for _ in range(3)]

    def argument(self, kind: str) -> Value:
        """A new argument, of a shape that fits those of others."""
        a, b, c = self._sizes
        shape = self.draw([(a,), (a, b), (b, a), (a, b), (b, c), (a, b, c), (c, 1), (1, b), (a, b)])
        if math.prod(shape) > LARGEST:
            shape = shape[:2]
        found = Value(f"v{len(self.values)}", shape, kind, True)
        self.values.append(found)
        return found

    def any(self, kinds: str = "f", least: int = 0, exact: bool = False) -> Value | None:
        """One of the values of these kinds and at least so many dimensions, the newest more often."""
        fit = [
            v
            for v in self.values
            if v.kind in kinds and len(v.shape) >= least and (v.exact or not exact)
        ]
        return self.draw([*fit, *fit[-3:]]) if fit else None

    def axis(self, v: Value) -> int:
        """One of its dimensions."""
        return int(self.draw(range(len(v.shape))))

    def put(self, text: str, like: Value, **changes: Any) -> None:
        """A new value that a text computes, like another but for what is said."""
        found = replace(like, name=f"v{len(self.values)}", **changes)
        if found.kind == "f" and found.large > 30:
            text = f"np.tanh(({text})*{3 / found.large:.3g})"
            found = replace(found, exact=False, large=1.0)
        if found.size > LARGEST:
            return
        self.lines.append(f"{found.name} = {text}")
        self.values.append(found)

    def finished(self, arguments: tuple[Value, ...]) -> Program:
        """The program, which gives up to four of the values that it reads no more."""
        made = self.values[len(arguments) :] or self.values
        used = " ".join(self.lines)
        ends = [v for v in made if f"{v.name})" not in used and f"{v.name}," not in used]
        return Program(arguments, tuple(self.lines), tuple((ends or made)[-4:]))


def broadcasts(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    pairs = zip(a[::-1], b[::-1])
    return all(m == n or 1 in (m, n) for m, n in pairs)
