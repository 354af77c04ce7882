"""Drawn arguments of public functions: what test_surface_properties.py compares with JAX.

CALLS holds, for each function by its path (`numpy.linalg.qr`), a strategy for its arguments and for
keywords that are no arrays. The files drawn_numpy, drawn_lax, ... fill it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

FLOATS = ["float16", "bfloat16", "float32", "float32"]
INTS = ["bool", "int8", "uint8", "int16", "int32", "uint32"]
DTYPES = [*INTS, *FLOATS, "complex64"]
SPECIAL = [np.nan, np.inf, -np.inf, -0.0, 0.0, 1.0, 1e-30, 3e38, -1e6]

shapes = st.one_of(
    st.lists(st.integers(0, 4), max_size=3).map(tuple),
    st.sampled_from([(), (1,), (300,), (17, 33), (2, 3, 4, 5)]),
)
axis = st.integers(-4, 3)
axes = st.one_of(st.none(), axis, st.lists(st.integers(-3, 2), max_size=2).map(tuple))
flags = st.booleans()
Draw = Any


def filled(
    shape: tuple[int, ...], dtype: str, seed: int, scale: float = 3.0, special: bool = False
) -> Any:
    """Normal numbers times `scale`, whole where the dtype is; some of them special."""
    import ml_dtypes

    kind = np.dtype(getattr(ml_dtypes, dtype, dtype) if dtype == "bfloat16" else dtype)
    rng = np.random.default_rng(seed)
    x = np.asarray(rng.normal(size=shape) * scale)
    if kind.kind in "iub":
        x = np.trunc(np.abs(x) if kind.kind == "u" else x)
        if kind.kind == "b":
            x = x > 0
    elif special and x.size:
        where = rng.random(shape) < 0.3
        x = np.where(where, rng.choice(SPECIAL, size=shape), x)
    if kind.kind == "c":
        x = x + 1j * rng.normal(size=shape) * scale
    with np.errstate(all="ignore"):
        return np.asarray(x).astype(kind)


@st.composite
def arrays(draw: Draw, shape: Any = None, dtypes: list[str] = DTYPES, scale: float = 3.0,
           special: bool | None = None) -> Any:  # fmt: skip
    shape = (
        draw(shapes)
        if shape is None
        else draw(shape)
        if isinstance(shape, st.SearchStrategy)
        else shape
    )
    special = draw(st.integers(0, 3)) == 0 if special is None else special
    x = filled(shape, draw(st.sampled_from(dtypes)), draw(st.integers(0, 9)), scale, special)
    return laid_out(x, draw(st.sampled_from(LAYOUTS)))


LAYOUTS = [*["rows"] * 6, "columns", "reversed", "every other", "misaligned"]


def laid_out(x: Any, how: str) -> Any:
    """The same values with other strides, or at an odd address."""
    if how == "columns":
        return np.asfortranarray(x)
    if how == "misaligned" and x.size:
        bytes_ = np.empty(x.nbytes + 1, np.uint8)[1:]
        bytes_[...] = np.frombuffer(x.tobytes(), np.uint8)
        return bytes_.view(x.dtype).reshape(x.shape)
    if how == "reversed" and x.ndim:
        return np.ascontiguousarray(x[::-1])[::-1]
    return np.repeat(x, 2, axis=-1)[..., ::2] if how == "every other" and x.ndim else x


@st.composite
def broadcasting(draw: Draw, count: int = 2, dtypes: list[str] = DTYPES, same: bool = False,
                 scale: float = 3.0, special: bool | None = None, equal: bool = False) -> Any:  # fmt: skip
    """Arrays that mostly broadcast; of one dtype with `same`, of one shape with `equal`."""
    full = draw(shapes)
    one = [draw(st.sampled_from(dtypes))] if same else dtypes
    out = []
    for i in range(count):
        kept = [n if equal or draw(st.integers(0, 4)) else 1 for n in full]
        start = 0 if i == 0 or equal else draw(st.integers(0, len(full)))
        out.append(draw(arrays(tuple(kept[start:]), one, scale, special)))
    return tuple(out)


@st.composite
def square(
    draw: Draw, dtypes: Any = ("float32", "complex64"), largest: int = 5, extra: Any = None
) -> Any:
    """A batch of well conditioned square matrices; and, with extra, right hand sides."""
    n = draw(st.integers(0, largest))
    batch = draw(st.lists(st.integers(0, 2), max_size=1).map(tuple))
    a = filled((*batch, n, n), draw(st.sampled_from(dtypes)), draw(st.integers(0, 9)), 1.0)
    a = a + (3 * n * np.eye(n)).astype(a.dtype)
    if extra is None:
        return (a,)
    tail = draw(st.sampled_from([(n, 2), (n, 1), (n,)])) if extra == "rhs" else (n, 2)
    batch_b = batch if len(tail) == 2 else ()
    return a, filled((*batch_b, *tail), a.dtype.name, draw(st.integers(0, 9)), 1.0)


@st.composite
def matrices(draw: Draw, dtypes: Any = ("float32", "complex64")) -> Any:
    batch = draw(st.lists(st.integers(0, 2), max_size=1).map(tuple))
    m, n = draw(st.integers(0, 5)), draw(st.integers(0, 5))
    return filled((*batch, m, n), draw(st.sampled_from(dtypes)), draw(st.integers(0, 9)), 1.0)


def call(args: Any, **options: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Arguments and keywords; a keyword is left out where its strategy gives `...`."""
    kept = st.fixed_dictionaries(options).map(
        lambda o: {k: v for k, v in o.items() if v is not ...}
    )
    return st.tuples(args, kept)


def maybe(*values: Any) -> st.SearchStrategy[Any]:
    """One of the values, or no keyword."""
    return st.sampled_from([..., *values])


def one(x: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.tuples(x)


x = arrays()
xf = arrays(dtypes=FLOATS)
vec = arrays(shape=st.sampled_from([(0,), (1,), (4,), (7,)]))
CALLS: dict[str, st.SearchStrategy[Any]] = {}


def add(space: str, names: str, strategy: st.SearchStrategy[Any]) -> None:
    """Calls of functions of a namespace; of one that has some already, these too."""
    for path in (f"{space}.{name}" for name in names.split()):
        CALLS[path] = st.one_of(CALLS[path], strategy) if path in CALLS else strategy
