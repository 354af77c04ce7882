"""Who lamina is measured beside: JAX for every row, torch.compile and numba for some, where installed.

A row's `others` are made here: what gives a call of such a peer from the row's inputs.
"""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from benchmarks.suite import Library, jax_library

Make = Callable[..., Callable[[], Any]]
"""From inputs, NumPy arrays, to a call; what it gives has a value for `np.asarray`."""

NAMES = ("jax", "torch", "numba")


def by_torch(program: Callable[..., Any]) -> dict[str, Make]:
    """The peer torch.compile of `program(torch, *tensors)`."""

    def make(*inputs: Any) -> Callable[[], Any]:
        import torch

        torch.compiler.reset()  # it counts how many programs one function has been
        compiled = torch.compile(functools.partial(program, torch))
        tensors = [torch.from_numpy(x) for x in inputs]

        def call() -> Any:
            with torch.inference_mode():
                return compiled(*tensors)

        return call

    return {"torch": make}


def by_numba(program: Callable[[Any], Callable[..., Any]]) -> dict[str, Make]:
    """The peer `program(numba)`: a function of the inputs that numba has compiled."""

    def make(*inputs: Any) -> Callable[[], Any]:
        import numba

        compiled = program(numba)
        return lambda: compiled(*inputs)

    return {"numba": make}


def installed() -> dict[str, str | None]:
    """The version of each peer; None for one that is not there."""
    return {name: _version(name) for name in NAMES}


def _version(name: str) -> str | None:
    if importlib.util.find_spec(name) is None:
        return None
    try:
        return version(name)
    except PackageNotFoundError:
        return "of unknown version"


def heading(versions: dict[str, str | None], jax_error: str | None) -> str:
    """Which peers take part, and why others don't."""
    there = [f"{name} {found}" for name, found in versions.items() if found]
    if jax_error is not None:
        there = [text for text in there if not text.startswith("jax ")]
    absent = [name for name, found in versions.items() if not found]
    text = f"beside {', '.join(there)}" if there else "beside nobody"
    if absent:
        text += f"; not installed: {', '.join(absent)}"
    return text + (f"; jax can't be imported: {jax_error}" if jax_error else "")


def open_jax() -> tuple[Library | None, str | None]:
    """JAX where it is installed, and why it can't be imported."""
    try:
        return jax_library(), None
    except Exception as error:
        return None, shortly(error)


def calls_of(
    others: dict[str, Make], inputs: tuple[Any, ...], wanted: Any
) -> tuple[dict[str, Callable[[], Any]], dict[str, str]]:
    """The calls of a row's further peers that give what is wanted, and what is wrong with the others.
    Those that are not installed are neither."""
    found: dict[str, Callable[[], Any]] = {}
    failed: dict[str, str] = {}
    for name, make in others.items():
        if importlib.util.find_spec(name) is None:
            continue
        try:
            call = make(*inputs)
            check(call(), wanted)
        except Exception as error:
            failed[name] = shortly(error)
        else:
            found[name] = call
    return found, failed


def check(result: Any, wanted: Any) -> None:
    """ValueError where a peer's result is not near ours."""
    mine, theirs = (np.asarray(x).astype(np.float64) for x in (wanted, result))
    if mine.shape != theirs.shape or not np.allclose(mine, theirs, rtol=1e-2, atol=1e-2):
        raise ValueError(f"gives other values than lamina (of shape {theirs.shape}, {mine.shape})")


def shortly(error: BaseException) -> str:
    """An error on one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:200].rstrip(": ")
