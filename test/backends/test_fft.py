"""Generated Fourier transforms: every way through the generator, its vectors, its tables."""

import dataclasses
from functools import partial

import numpy as np
import pytest
from support.kernel_runner import kernel, kernel_for

from lamina.backends.target import Target
from lamina.passes.kernels.cpu.fft.lanes import radices, roots_of_unity
from lamina.passes.stablehlo.analysis.fourier import (
    LARGEST_PRIME,
    LONGEST_LANE,
    is_generated,
    next_length,
    two_factors,
)

RNG = np.random.default_rng(0)


def fft(shape, axes, kind, element):
    of = f"tensor<{'x'.join(map(str, shape))}xcomplex<{element}>>"
    lengths = ", ".join(map(str, shape[len(shape) - axes :]))
    return f"""func.func private @k(%x: {of}) -> {of}
        attributes {{lamina.kind = "library", lamina.library = "lamina.fft"}} {{
      %0 = stablehlo.fft %x, type = {kind}, length = [{lengths}] : ({of}) -> {of}
      return %0 : {of}
    }}"""


CASES = [
    ((1,), 1),  # nothing to do
    ((7,), 1),  # one pass, one lane
    ((5, 2, 13), 1),  # rows, fewer than lanes
    ((37, 48), 1),  # rows in blocks, the last not full; tiles and a tail of them
    ((33, 50), 1),
    ((256,), 1),  # two steps
    ((3, 1000), 1),  # two steps of lengths that fill no vectors
    ((8, 9, 20), 3),  # columns too
    ((2, 21, 33), 2),
    ((3, 2, 1), 3),
    ((5, 17), 1),  # by the definition
    ((3, 17 * 251), 1),  # two such passes
    ((20, 383), 1),  # the largest
    ((19, 31 * 4), 2),
    ((23 * 1024,), 1),  # in two steps
]


@pytest.mark.parametrize(("shape", "axes"), CASES)
def test_values(shape, axes):
    """Forward in f32, inverse in f64; the runner watches the memory around."""
    x = RNG.normal(size=shape) + 1j * RNG.normal(size=shape)
    along = tuple(range(-axes, 0))
    for kind, element, dtype, bound in (
        ("FFT", "f32", np.complex64, 5e-7),
        ("IFFT", "f64", np.complex128, 1e-15),
    ):
        want = (np.fft.fftn if kind == "FFT" else np.fft.ifftn)(x.astype(dtype), axes=along)
        (got,) = kernel(fft(shape, axes, kind, element))(x.astype(dtype))
        assert np.linalg.norm(got - want) <= bound * np.linalg.norm(want)


REAL = [
    ((8, 1), 1),
    ((9, 2), 1),
    ((70, 3), 1),  # tails of blocks and of rows
    ((32, 16), 1),
    ((33, 50), 1),
    ((64, 17), 1),
    ((3, 40, 31 * 3), 1),
    ((12, 20), 2),  # complex transforms along the other axes
    ((4, 9, 10), 3),
    ((2, 1, 7, 34), 2),
    ((256, 1), 2),  # in two steps
]


@pytest.mark.parametrize(("shape", "axes"), REAL)
def test_real_rows(shape, axes):
    along = tuple(range(-axes, 0))
    for dtype, bound in ((np.float32, 5e-7), (np.float64, 1e-15)):
        element = f"f{8 * dtype().itemsize}"
        x = RNG.normal(size=shape).astype(dtype)
        z = np.fft.rfftn(x, axes=along)
        # What a transform of real numbers has no use for: imaginary parts of numbers without a mirror.
        disturbed = z + 1j * (np.arange(z.shape[-1]) == 0)
        one = partial(real_fft, shape, z.shape, axes, element)
        (got,) = kernel(one("RFFT"))(x)
        assert got.shape == z.shape and np.linalg.norm(got - z) <= bound * np.linalg.norm(z)
        (got,) = kernel(one("IRFFT"))((z if axes > 1 else disturbed).astype(np.result_type(dtype, 1j)))
        assert np.linalg.norm(got - x) <= 2 * bound * np.linalg.norm(x)


@pytest.mark.parametrize("length", [30, 31])
def test_rows_share_nothing(length):
    """A row that is NaN, or large, is not felt by others."""
    x = RNG.normal(size=(40, length)).astype(np.float32)
    z = np.fft.rfft(x)
    for kind, a, b in (("RFFT", x, z), ("IRFFT", z, x)):
        alone = kernel(real_fft(x.shape, z.shape, 1, "f32", kind))
        given = a.copy()
        given[3], given[17] = np.nan, 1e30
        (got,), (want,) = alone(given), alone(a)
        assert np.isnan(got[3]).all()
        others = [row for row in range(40) if row not in (3, 17)]
        assert np.array_equal(got[others], want[others])
        assert np.allclose(want, b, atol=1e-4)


def real_fft(shape, halved, axes, element, kind):
    real = f"tensor<{'x'.join(map(str, shape))}x{element}>"
    complex_ = f"tensor<{'x'.join(map(str, halved))}xcomplex<{element}>>"
    of, to = (real, complex_) if kind == "RFFT" else (complex_, real)
    lengths = ", ".join(map(str, shape[len(shape) - axes :]))
    return f"""func.func private @k(%x: {of}) -> {to}
        attributes {{lamina.kind = "library", lamina.library = "lamina.fft"}} {{
      %0 = stablehlo.fft %x, type = {kind}, length = [{lengths}] : ({of}) -> {to}
      return %0 : {to}
    }}"""


@pytest.mark.parametrize("bits", [128, 256, 512])
def test_vectors_are_as_wide_as_the_target_s(bits):
    target = dataclasses.replace(Target.host(), vector_bits=bits)
    made = kernel_for(target, fft((64, 64), 2, "FFT", "f32"))
    assert f"fadd contract <{bits // 32} x float>" in made.texts["llvm"]
    assert f"load <{bits // 32} x float>" in made.texts["llvm"]
    assert made.scratch_bytes == 0


def test_long_transforms_take_no_scratch():
    made = kernel_for(Target.host(), fft((1024,), 1, "FFT", "f64"))
    assert made.scratch_bytes == 0
    assert "lamina_parallel_for" in made.imports


@pytest.mark.parametrize("order", [1, 2, 3, 8, 12, 1000, 4096])
def test_roots_of_unity(order):
    exponents = np.arange(-order, 2 * order)
    angle = 2 * np.longdouble(np.pi) * (exponents % order) / order
    angle += 2 * np.longdouble(1.2246467991473532e-16) * (exponents % order) / order
    want = np.cos(angle) - 1j * np.sin(angle)
    roots = roots_of_unity(order, exponents)
    assert np.abs(roots - want).max() < 3e-16
    assert roots[order] == 1


def test_lengths():
    assert [n for n in range(1, 20) if not is_generated(n)] == [17, 19]
    for n in range(1, 420):
        assert np.prod(radices(n)) == n
        assert is_generated(n, LARGEST_PRIME) or n in (389, 397, 401, 409, 419)
        assert is_generated(next_length(n)) and next_length(n) >= n
    assert two_factors(1 << 20) == (1024, 1024)
    assert two_factors(2 * 4099) is None
    assert is_generated(1 << 24) and not is_generated(1 << 25)
    assert max(two_factors(1 << 24)) <= LONGEST_LANE
