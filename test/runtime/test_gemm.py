"""Matrix products divided among threads: every block once, for all types, layouts and sizes."""

import ctypes
import itertools

import numpy as np
import pytest

from lamina import runtime
from lamina.runtime import _runtime
from lamina.runtime.executable import _import

ROW_MAJOR, AS_IS, TRANSPOSED = 101, 111, 112
TYPES = {"s": np.float32, "d": np.float64, "c": np.complex64, "z": np.complex128}
SIZES = [(1, 1, 1), (64, 64, 64), (200, 300, 150), (1, 5000, 400), (5000, 1, 400), (47, 2000, 97)]


@pytest.fixture(params=[1, 2, 5])
def threads(request):
    runtime.set_num_threads(request.param)
    yield request.param
    runtime.set_num_threads(0)


def gemm(letter):
    """cblas_?gemm as compiled code gets it: row-major, factors 1.5 and 0.5."""
    _, address = _import(f"scipy_cblas_{letter}gemm")
    kind = {"s": ctypes.c_float, "d": ctypes.c_double}.get(letter, ctypes.c_void_p)
    types = [ctypes.c_int] * 6 + [kind, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
    types += [ctypes.c_int, kind, ctypes.c_void_p, ctypes.c_int]
    function = ctypes.CFUNCTYPE(None, *types)(address)

    def call(flags, m, n, k, a, b, c):
        factors = np.array([1.5, 0.5], TYPES[letter])
        alpha, beta = (factors[i : i + 1] for i in range(2))
        if letter in "cz":
            scalars = [alpha.ctypes.data, beta.ctypes.data]
        else:
            scalars = [float(alpha[0]), float(beta[0])]
        function(ROW_MAJOR, *flags, m, n, k, scalars[0], a.ctypes.data, a.shape[1], b.ctypes.data,
                 b.shape[1], scalars[1], c.ctypes.data, c.shape[1])  # fmt: skip

    return call


@pytest.mark.parametrize("letter", TYPES)
@pytest.mark.parametrize(("m", "n", "k"), SIZES)
def test_products(threads, letter, m, n, k):
    rng = np.random.default_rng(m + n + k)
    call = gemm(letter)
    a, b, c = (rng.normal(size=shape).astype(TYPES[letter]) for shape in ((m, k), (k, n), (m, n)))
    expected = 1.5 * (a @ b) + 0.5 * c
    for flags in itertools.product((AS_IS, TRANSPOSED), repeat=2):
        left = np.ascontiguousarray(a.T) if flags[0] == TRANSPOSED else a
        right = np.ascontiguousarray(b.T) if flags[1] == TRANSPOSED else b
        out = np.full((m, n + 3), 7, TYPES[letter])  # rows further apart than they are long
        out[:, :n] = c
        call(flags, m, n, k, left, right, out)
        tolerance = 1e-3 if letter in "sc" else 1e-10
        np.testing.assert_allclose(out[:, :n], expected, rtol=tolerance, atol=tolerance * 10)
        assert (out[:, n:] == 7).all()


def test_other_types_are_refused():
    with pytest.raises(ValueError, match="type s, d, c or z"):
        _runtime.split_gemm("q", 1)
