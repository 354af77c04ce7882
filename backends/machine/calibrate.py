"""Measuring what `Machine` has as rates: products of matrices by each of the ways to do them.

Processor time of this process, so that others on the machine are felt as little as can be; the best of several runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np

from lamina.backends.compile import compile_module
from lamina.dialects.context import context, parse
from lamina.dialects.vendors import ir
from lamina.passes.framework.machine import SIZES
from lamina.runtime import array_from_numpy
from lamina.runtime.executable import load

WAYS = {"code": "kernel", "shared": "shared", "library": "library"}
"""The rates of a `Machine`, with what does the products that each is of."""
_SECONDS = 0.02  # of each of the runs of which the best counts
_RUNS = 3


def product_rates(report: Callable[[str], None] = lambda line: None) -> dict[str, tuple[int, ...]]:
    """The rates of products of f32 and f64, as fields of `Machine`, to two digits. `report` is given a line for
    each as it is known."""
    found: dict[str, list[int]] = {f"{element}_{way}": [] for element in ("f32", "f64") for way in WAYS}
    for element, way, size in _all():
        rate = _two_digits(2 * size**3 / _nanoseconds(element, WAYS[way], size, size, size))
        found[f"{element}_{way}"].append(rate)
        report(f"{element} {size} by {way}: {rate} GFLOP/s")
    return {name: tuple(rates) for name, rates in found.items()}


def _all() -> Iterator[tuple[str, str, int]]:
    for element in ("f32", "f64"):
        for way in WAYS:
            for size in SIZES:
                yield element, way, size


def _nanoseconds(element: str, way: str, rows: int, columns: int, terms: int) -> float:
    """Of one product on this machine, in processor time."""
    type_of = {"f32": np.float32, "f64": np.float64}[element]
    a, b, c = (f"tensor<{m}x{n}x{element}>" for m, n in ((rows, terms), (terms, columns), (rows, columns)))
    text = f"""module @calibrate attributes {{lamina.matrix_products = "{way}"}} {{
      func.func public @main(%a: {a}, %b: {b}) -> {c} {{
        %c = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : ({a}, {b}) -> {c}
        return %c : {c}
      }}
    }}"""
    with context(), ir.Location.unknown():
        run = load(compile_module(parse(text)).artifact)
    generator = np.random.default_rng(0)
    factors = (generator.standard_normal(shape).astype(type_of) for shape in ((rows, terms), (terms, columns)))
    given = [array_from_numpy(factor) for factor in factors]

    def once() -> None:
        run(given)[0].block_until_ready()

    once()
    return min(_time(once) for _ in range(_RUNS))


def _time(once: Callable[[], None]) -> float:
    begin, times = time.process_time_ns(), 0
    while (passed := time.process_time_ns() - begin) < _SECONDS * 1e9 or times < 2:
        once()
        times += 1
    return passed / times


def _two_digits(rate: float) -> int:
    step = 10 ** max(0, len(str(round(rate))) - 2)
    return max(1, round(rate / step) * step)
