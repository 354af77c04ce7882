"""Loops and branches that are one kernel of a GPU: a thread's, a block's, a thread's for each lane.
Emulated against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.cuda_program import Program

import lamina
import lamina.numpy as jnp
from lamina import lax

_RANDOM = np.random.default_rng(7)


def _x(*shape: int, dtype: Any = np.float32, scale: float = 1.0) -> np.ndarray:
    return (_RANDOM.normal(size=shape) * scale).astype(dtype)


# ---- a thread ------------------------------------------------------------------------------------
def _newton(a):
    return lax.while_loop(
        lambda c: abs(c[0] * c[0] - a) > 1e-3, lambda c: ((c[0] + a / c[0]) / 2, c[1] + 1), (a, 0)
    )


def _newton_numpy(a):
    x, count = a, 0
    while abs(x * x - a) > np.float32(1e-3):
        x, count = (x + a / x) / 2, count + 1
    return x, count


def _map(x, n):
    return lax.fori_loop(0, n, lambda i, x: x * 0.999 + jnp.sin(x) * i, x)


def _map_numpy(x, n):
    for i in range(n):
        x = np.float32(x * np.float32(0.999) + np.sin(x) * np.float32(i))
    return x


_F, _H = np.array([[1, 0.1], [0, 1]], np.float32), np.array([[1, 0]], np.float32)


def _kalman(np_, x, p, z):
    x, p = _F @ x, _F @ p @ _F.T + np_.float32(0.01) * np_.eye(2, dtype=np_.float32)
    gain = (p @ _H.T) / ((_H @ p @ _H.T)[0, 0] + np_.float32(0.1))
    x = x + gain[:, 0] * (z - x[0])
    return x, (np_.eye(2, dtype=np_.float32) - gain @ _H) @ p


def _filter(x, p, zs):
    def step(carry, z):
        x, p = _kalman(jnp, *carry, z)
        return (x, p), x[0]

    return lax.scan(step, (x, p), zs)


def _filter_numpy(x, p, zs):
    rows = []
    for z in zs:
        x, p = _kalman(np, x, p, z)
        rows.append(x[0])
    return x, p, np.array(rows)


def _branches(x, k):
    def body(i, x):
        arms = [
            lambda x: x + 1, lambda x: x * 2, lambda x: x - i,
            lambda x: lax.cond(x.sum() > 3, lambda x: -x, lambda x: x, x),
        ]  # fmt: skip
        return lax.switch((i + k) % 5, arms, x)

    return lax.fori_loop(0, 11, body, x)


def _branches_numpy(x, k):
    for i in range(11):
        match (i + k) % 5:
            case 0:
                x = x + 1
            case 1:
                x = x * 2
            case 2:
                x = x - i
            case _ if x.sum() > 3:
                x = -x
    return x


def _sorted_window(x):
    """Ops that blocks do by kernels of their own: a thread does them as a CPU does."""

    def step(window, v):
        window = jnp.sort(window.at[0].set(v))
        return window, window[2]

    return lax.scan(step, jnp.zeros(5), x)


def _sorted_window_numpy(x):
    window, rows = np.zeros(5, np.float32), []
    for v in x:
        window[0] = v
        window = np.sort(window)
        rows.append(window[2])
    return window, np.array(rows)


def _integers(n):
    def body(c):
        n, bits, wide = c
        return n >> 1, bits ^ (n & 1).astype(jnp.uint8), wide * 31 + n.astype(jnp.int16)

    start = n, n.astype(jnp.uint8) * 0, n.astype(jnp.int16)
    return lax.while_loop(lambda c: c[0] != 0, body, start)


def _integers_numpy(n):
    bits, wide = np.uint8(0), np.array(n).astype(np.int16)
    with np.errstate(over="ignore"):
        while n:
            bits ^= np.uint8(n & 1)
            wide = (wide * np.int16(31) + np.array(n).astype(np.int16)).astype(np.int16)
            n = n >> 1
    return np.uint32(0), bits, wide


def _complex(x):
    return lax.scan(lambda c, v: (c * v + 1, c), np.complex64(1j), x)


def _complex_numpy(x):
    c, rows = np.complex64(1j), []
    for v in x:
        rows.append(c)
        c = c * v + 1
    return c, np.array(rows)


# ---- lanes ---------------------------------------------------------------------------------------
def _collatz(n):
    def one(n):
        def step(c):
            return jnp.where(c[0] % 2 == 0, c[0] // 2, 3 * c[0] + 1), c[1] + 1

        return lax.while_loop(lambda c: c[0] != 1, step, (n, 0))[1]

    return lamina.vmap(one)(n)


def _collatz_numpy(n):
    def one(n):
        count = 0
        while n != 1:
            n, count = n // 2 if n % 2 == 0 else 3 * n + 1, count + 1
        return count

    return np.array([one(int(v)) for v in n], np.int32)


def _mandelbrot(c):
    def one(c):
        def inside(s):
            return (s[1] < 50) & (s[0].real ** 2 + s[0].imag ** 2 < 4)

        return lax.while_loop(inside, lambda s: (s[0] * s[0] + c, s[1] + 1), (c * 0, 0))[1]

    return lamina.vmap(one)(c)


def _mandelbrot_numpy(c):
    z, count = c * 0, np.zeros(c.shape, np.int32)
    for _ in range(50):
        inside = z.real**2 + z.imag**2 < 4
        count += inside
        z = np.where(inside, z * z + c, z)
    return count


def _walks(x, low):
    """Lanes of small arrays with branches and loops of their own."""

    def one(x, steps):
        def body(c):
            i, x = c
            x = lax.cond(x.sum() > low[0], lambda x: x - low, lambda x: x * 2 + 1, x)
            return i + 1, lax.fori_loop(0, i % 3, lambda k, x: x + k, x)

        return lax.while_loop(lambda c: c[0] < steps, body, (0, x))[1]

    return lamina.vmap(one)(x, jnp.arange(x.shape[0]) % 7)


def _walks_numpy(x, low):
    x = x.copy()
    for number, row in enumerate(x):
        for i in range(number % 7):
            row[:] = row - low if row.sum() > low[0] else row * 2 + 1
            row += sum(range(i % 3))
    return x


# ---- a block -------------------------------------------------------------------------------------
def _recurrent(w, u, b, h, xs):
    def step(h, x):
        h = jnp.tanh(w @ h + u @ x + b)
        return h, h.sum()

    return lax.scan(step, h, xs)


def _recurrent_numpy(w, u, b, h, xs):
    sums = []
    for x in xs:
        h = np.tanh(w @ h + u @ x + b)
        sums.append(h.sum())
    return h, np.array(sums)


def _power(a, x):
    """Until it changes no more; products by columns, softmax, a scalar that decides."""

    def step(c):
        x, _, n = c
        new = lamina.nn.softmax(x @ a)
        return new, abs(new - x).max(), n + 1

    return lax.while_loop(lambda c: (c[1] > 1e-4) & (c[2] < 20), step, (x, jnp.float32(1), 0))


def _power_numpy(a, x):
    change, count = np.float32(1), 0
    while change > 1e-4 and count < 20:
        e = x @ a
        e = np.exp(e - e.max())
        new = e / e.sum()
        change, x, count = abs(new - x).max(), new, count + 1
    return x, change, count


def _nested(x, n):
    def outer(i, x):
        x = lax.fori_loop(0, i, lambda k, x: x * 0.5 + x[::-1] + k, x)
        return lax.cond(x.sum() > 1, lambda x: x.T.reshape(x.shape), lambda x: x - x.mean(0), x)

    return lax.fori_loop(0, n, outer, x)


def _nested_numpy(x, n):
    for i in range(n):
        for k in range(i):
            x = x * np.float32(0.5) + x[::-1] + k
        x = x.T.reshape(x.shape) if x.sum() > 1 else x - x.mean(0)
    return x


def _history(x, n):
    """Places of an array that is too large to be shared, written and read in turn."""

    def body(i, c):
        x, seen = c
        seen = lax.dynamic_update_slice(seen, x[None], (i, 0))
        return jnp.cos(x) + lax.dynamic_index_in_dim(seen, i // 2, keepdims=False), seen

    return lax.fori_loop(0, n, body, (x, jnp.zeros((40, x.shape[0]))))


def _history_numpy(x, n):
    seen = np.zeros((40, x.size), np.float32)
    for i in range(n):
        seen[i] = x
        x = np.cos(x) + seen[i // 2]
    return x, seen


def _unsigned(x):
    """A generator of 200 numbers in turn, with a constant of them."""
    odd = jnp.arange(200, dtype=jnp.uint32) * 2 + 1

    def body(i, x):
        x = x ^ (x << 13)
        x = (x ^ (x >> 17)) * odd
        return x + x.max() // (i.astype(jnp.uint32) + 1)

    return lax.fori_loop(0, 3, body, x)


def _unsigned_numpy(x):
    odd = np.arange(200, dtype=np.uint32) * 2 + 1
    for i in range(3):
        x = x ^ (x << np.uint32(13))
        x = (x ^ (x >> np.uint32(17))) * odd
        x = x + x.max() // np.uint32(i + 1)
    return x


def _recurrence(size: int, transposed: bool = False) -> tuple[Any, ...]:
    w, u, *rest = _x(size, size, scale=0.1), _x(size, 24, scale=0.1), _x(size), _x(size), _x(4, 24)
    return (w.T.copy() if transposed else w), u, *rest


def _by_columns(w, *rest):
    return _recurrent(w.T, *rest)


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], Callable[..., Any]]] = {
    "newton": (_newton, (np.float32(7),), _newton_numpy),
    "map": (_map, (np.float32(0.3), 5), _map_numpy),  # of more steps the last bit of a sine decides
    "no_steps": (_map, (np.float32(0.3), 0), _map_numpy),
    "kalman": (_filter, (_x(2), np.eye(2, dtype=np.float32), _x(9)), _filter_numpy),
    "branches": (_branches, (_x(3), 2), _branches_numpy),
    "sorted_window": (_sorted_window, (_x(8),), _sorted_window_numpy),
    "integers": (_integers, (np.uint32(0xDEADBEEF),), _integers_numpy),
    "complex": (_complex, (_x(4) + np.complex64(1j),), _complex_numpy),
    "collatz": (_collatz, (np.arange(1, 300, dtype=np.int32),), _collatz_numpy),
    "mandelbrot": (_mandelbrot, (_x(131, dtype=np.complex64) + 1j * _x(131),), _mandelbrot_numpy),
    "walks": (_walks, (_x(70, 3), _x(3)), _walks_numpy),
    "recurrent": (_recurrent, _recurrence(64), _recurrent_numpy),
    "recurrent_wide": (_recurrent, _recurrence(200), _recurrent_numpy),
    "recurrent_odd": (_recurrent, _recurrence(131), _recurrent_numpy),
    "recurrent_columns": (
        _by_columns, _recurrence(72, True), lambda w, *rest: _recurrent_numpy(w.T, *rest)),
    "power": (_power, (_x(80, 80), np.full(80, 1 / 80, np.float32)), _power_numpy),
    "branches_of_a_block": (_branches, (_x(300), 2), _branches_numpy),
    "nested": (_nested, (_x(10, 12), 4), _nested_numpy),
    "unsigned": (_unsigned, (np.arange(200, dtype=np.uint32),), _unsigned_numpy),
    "history": (_history, (_x(400), 7), _history_numpy),
}  # fmt: skip
_BLOCKS = {
    name: row for name, row in PROGRAMS.items() if list(PROGRAMS).index(name) >= list(PROGRAMS).index("recurrent")
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_one_kernel_does_all_steps(name: str) -> None:
    function, arguments, oracle = PROGRAMS[name]
    program = Program(function, *arguments)
    forms = [kernel.texts["gpu"].count("scf.while") for kernel in program.kernels.values()]
    assert sum(map(bool, forms)) == 1 and len(program.kernels) <= 4
    for kernel in program.kernels.values():
        if "scf.while" not in kernel.texts["gpu"]:
            continue
        (launch,) = kernel.launches
        lanes = name in ("collatz", "mandelbrot", "walks")
        threads = 128 if lanes else 256 if name in _BLOCKS else 1
        assert launch.block == (threads, 1, 1) and (lanes or launch.grid == (1, 1, 1))
    wanted = lamina.tree.leaves(oracle(*arguments))
    for found, value in zip(program.run(), wanted, strict=True):
        np.testing.assert_allclose(found, value, rtol=2e-4, atol=1e-5)
