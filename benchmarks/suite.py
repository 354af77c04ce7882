"""What a workload is: one program written over either library's names, its inputs and its work."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np


class Library(SimpleNamespace):
    """The names that programs use: jit, grad, vmap, np, lax, nn, random, ... of one library."""

    name: str


_TRANSFORMS = ("jit", "grad", "value_and_grad", "vmap", "block_until_ready", "enable_x64")


def lamina_library() -> Library:
    return _library("lamina", "lamina.numpy")


def jax_library() -> Library | None:
    """JAX, on the CPU; None where it is not installed."""
    if importlib.util.find_spec("jax") is None:
        return None
    return _library("jax", "jax.numpy")


def _library(name: str, numpy: str) -> Library:
    module = importlib.import_module(name)
    return Library(
        name=name,
        np=importlib.import_module(numpy),
        **{key: importlib.import_module(f"{name}.{key}") for key in ("lax", "nn", "random")},
        tree=importlib.import_module(f"{name}.tree_util"),
        **{key: getattr(module, key) for key in _TRANSFORMS},
    )


@dataclass(frozen=True)
class Workload:
    """One row of the report.

    `make(library)` gives the function to compile; `inputs()` its arguments, NumPy arrays in any
    pytree. `flops` and `bytes` are the least that the result takes, for rates. `bar` is the ratio
    (JAX's time by ours) that the project holds itself to. `others` maps the name of another peer
    ("torch", "numba") to what makes a call of it from the inputs. `limit` names the machine's rate
    (limits.py) that one of flops is held against. In a `numerical` row 64-bit types are kept, values
    are held against JAX's, and compiling and the first call are timed, too.
    """

    name: str
    group: str
    make: Callable[[Library], Callable[..., Any]]
    inputs: Callable[[], tuple[Any, ...]]
    bar: float | None = None
    flops: float = 0.0
    bytes: float = 0.0
    others: dict[str, Callable[..., Callable[[], Any]]] = field(default_factory=dict)
    limit: str = "matmul"
    numerical: bool = False


@dataclass(frozen=True)
class Timing:
    """A row whose times are taken by the workload itself: compile times, times of a call."""

    name: str
    group: str
    measure: Callable[[Library | None, Library | None], tuple[list[float], list[float]]]
    """(lamina, jax) -> seconds of each, interleaved; an absent library gives an empty list."""
    bar: float | None = None
    most: float | None = None
    """Seconds that ours may take, whatever another library does."""


@contextlib.contextmanager
def types_of(row: Workload | Timing, *libraries: Library | None) -> Iterator[None]:
    """While a row is measured: 64-bit types are kept where it asks for them."""
    with contextlib.ExitStack() as stack:
        for library in libraries:
            if library is not None and isinstance(row, Workload) and row.numerical:
                stack.enter_context(library.enable_x64(True))
        yield


def arrays(*shapes: tuple[int, ...], seed: int = 0, dtype: Any = np.float32) -> tuple[Any, ...]:
    """Normally distributed arrays, the same in every run."""
    rng = np.random.default_rng(seed)
    return tuple(rng.standard_normal(shape).astype(dtype) for shape in shapes)
