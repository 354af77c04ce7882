"""Generated Fourier transforms: every way through the generator, its vectors, its tables."""

import dataclasses

import numpy as np
import pytest
from kernel_runner import kernel

from lamina.backends.cpu.fft_lanes import radices, roots_of_unity
from lamina.backends.cpu.kernel import compile_kernel
from lamina.backends.target import Target
from lamina.dialects.context import context, parse
from lamina.dialects.vendors import ir
from lamina.passes.stablehlo.fourier import LONGEST_LANE, is_generated, next_length, two_factors

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


@pytest.mark.parametrize("bits", [128, 256, 512])
def test_vectors_are_as_wide_as_the_target_s(bits):
    with context(), ir.Location.unknown():
        module = parse(fft((64, 64), 2, "FFT", "f32"))
        target = dataclasses.replace(Target.host(), vector_bits=bits)
        made = compile_kernel(module.body.operations[0].operation, target, keep_texts=True)
    assert f"fadd contract <{bits // 32} x float>" in made.texts["llvm"]
    assert f"load <{bits // 32} x float>" in made.texts["llvm"]
    assert made.scratch_bytes == 0


def test_long_transforms_take_no_scratch():
    with context(), ir.Location.unknown():
        module = parse(fft((1024,), 1, "FFT", "f64"))
        made = compile_kernel(module.body.operations[0].operation, Target.host())
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
    for n in range(1, 300):
        assert np.prod(radices(n)) == n or not is_generated(n)
        assert is_generated(next_length(n)) and next_length(n) >= n
    assert two_factors(1 << 20) == (1024, 1024)
    assert two_factors(2 * 4099) is None
    assert is_generated(1 << 24) and not is_generated(1 << 25)
    assert max(two_factors(1 << 24)) <= LONGEST_LANE
