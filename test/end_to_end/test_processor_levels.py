"""Code for every x86-64 processor of a level gives what code for this one gives."""

import dataclasses

import ml_dtypes
import numpy as np
import pytest

import lamina
import lamina.numpy as jnp
from lamina import lax
from lamina.backends.target import Target, TargetError
from lamina.runtime.executable import LoadError
from lamina.runtime.processor import LEVELS, ProcessorError, check_processor

RNG = np.random.default_rng(0)
SMALL = [np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn]
SPECIAL = [0.0, -0.0, 1.0, -1.5, 3e-5, 20.0, np.inf, -np.inf, np.nan, 0.1, 7.0, -1e-3, 2.5, 300.0, -2.0]


def _runs(level):
    try:
        check_processor(Target.parse(f"cpu:{level}").describe())
    except (ProcessorError, TargetError):
        return False
    return True


def _normal(*shape, dtype=np.float32):
    return RNG.standard_normal(shape).astype(dtype)


def _attention(q, k, v):
    return lamina.nn.dot_product_attention(q, k, v)


def _convolution(x, w):
    return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


# Name -> function, arguments, and how far results may be apart: sums are in another order.
PROGRAMS = {
    "elementary": (lambda x: (jnp.exp(x), jnp.log(abs(x)), jnp.sin(x), jnp.tanh(x), jnp.arctan2(x, 2)),
                   [_normal(37) * 4], 3e-6),
    "f64": (lambda x: (jnp.exp(x), jnp.cbrt(x), x.sum()), [_normal(5, 33, dtype=np.float64)], 1e-13),
    "integers": (lambda x, y: (x // y, x % y, x * y, lax.population_count(x), x >> 3),
                 [RNG.integers(-999, 999, 41), RNG.integers(1, 99, 41)], 0),
    "softmax": (lamina.nn.softmax, [_normal(9, 130)], 1e-6),
    "columns": (lambda x: (x.sum(0), x.max(0), x.argmax(1)), [_normal(70, 65)], 1e-5),
    "product": (lambda a, b: a @ b, [_normal(70, 45), _normal(45, 33)], 1e-5),
    "wide product": (lambda a, b: lax.dot(a, b, preferred_element_type=jnp.int32),
                     [RNG.integers(-128, 127, (33, 40)).astype(np.int8),
                      RNG.integers(-128, 127, (40, 31)).astype(np.int8)], 0),
    "bf16 product": (lambda a, b: lax.dot(a, b, preferred_element_type=jnp.float32),
                     [_normal(33, 40, dtype=ml_dtypes.bfloat16), _normal(40, 31, dtype=ml_dtypes.bfloat16)],
                     1e-5),
    "small matrices": (lambda a, b: (a @ b, jnp.linalg.solve(a, b)),
                       [_normal(40, 3, 3) + 3 * np.eye(3, dtype=np.float32), _normal(40, 3, 3)], 2e-5),
    "convolution": (_convolution, [_normal(2, 9, 9, 8), _normal(3, 3, 8, 16)], 1e-5),
    "attention": (_attention, [_normal(2, 70, 3, 16) for _ in range(3)], 1e-5),
    "fft": (jnp.fft.fft, [_normal(3, 60) + 0j], 1e-5),
    "scan": (lambda x: lax.scan(lambda c, v: (c * 0.5 + v, jnp.sin(c)), x[0], x), [_normal(50, 5)], 1e-5),
    "running sum": (lambda x: jnp.cumsum(x, -1), [_normal(3, 300)], 1e-5),
    "sort": (lambda x: (jnp.sort(x), jnp.argsort(x)), [_normal(999)], 0),
    "random": (lambda: lamina.random.normal(lamina.random.key(3), (100,)), [], 1e-6),
    "scatter": (lambda x, i: x.at[i].add(2.0), [_normal(50), RNG.integers(0, 50, 30)], 1e-6),
}  # fmt: skip


def _same(got, want, tolerance):
    for one, other in zip(lamina.tree.leaves(got), lamina.tree.leaves(want), strict=True):
        one, other = np.asarray(one), np.asarray(other)
        assert one.dtype == other.dtype
        kind = np.complex128 if one.dtype.kind == "c" else np.float64
        one, other = one.astype(kind), other.astype(kind)
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("level", LEVELS)
def test_programs(level):
    if not _runs(level):
        with pytest.raises((RuntimeError, TargetError), match="lacks|is a level of"):
            lamina.jit(jnp.sin, target=f"cpu:{level}")(1.0)
        return
    for name, (function, args, tolerance) in PROGRAMS.items():
        with lamina.config.enable_x64("f64" in name or "integers" in name):
            got = lamina.jit(function, target=f"cpu:{level}")(*args)
            try:
                _same(got, lamina.jit(function)(*args), tolerance)
            except AssertionError as error:
                raise AssertionError(f"{name}: {error}") from None


@pytest.mark.parametrize("dtype", SMALL)
@pytest.mark.parametrize("level", ["x86-64-v2", "x86-64-v3"])
def test_small_floats_where_the_processor_converts_none(level, dtype):
    """Among them what stays in LLVM's hands: choices between numbers of a loop that is no vector."""
    x = np.array(SPECIAL, np.float32).astype(dtype)

    def function(x):
        kept = jnp.nan_to_num(x)
        return {
            "sums": (x + kept, x * 2, jnp.cumsum(kept), kept.sum(), kept.max()),
            "choices": (kept, jnp.where(x > 1, kept, x), lamina.nn.softmax(kept), jnp.isnan(x)),
            "others": (x.astype(jnp.float32), x.astype(jnp.int32), jnp.round(kept, 1), jnp.sinc(kept)),
        }

    if _runs(level):
        _same(lamina.jit(function, target=f"cpu:{level}")(x), lamina.jit(function)(x), 0)


def test_the_level_is_the_artifact_s():
    compiled = lamina.jit(jnp.sin).lower(np.ones(100, np.float32)).compile(target="cpu:x86-64-v3")
    manifest = compiled.artifact.manifest
    assert (manifest["target"]["cpu"], manifest["target"]["vector_bits"]) == ("x86-64-v3", 256)
    assert "zmm" not in compiled.as_text("asm") and "ymm" in compiled.as_text("asm")


def test_a_call_runs_code_for_the_target_of_its_function():
    other = dataclasses.replace(Target.parse("cpu:x86-64"), features="+zap")
    with pytest.raises(LoadError, match="this processor lacks zap"):
        lamina.jit(lambda x: x + 1, target=other)(1.0)


def test_code_that_does_not_run_here_can_be_looked_at():
    """It is loaded by the call that asks for it."""
    other = dataclasses.replace(Target.parse("cpu:x86-64-v3"), features="+zap")
    compiled = lamina.jit(jnp.sin).lower(np.ones(100, np.float32)).compile(target=other)
    assert "ymm" in compiled.as_text("asm")
    assert compiled.artifact.manifest["target"]["features"] == "+zap"
    for _ in range(2):
        with pytest.raises(LoadError, match="this processor lacks zap"):
            compiled(np.ones(100, np.float32))
    run = lamina.compile_stablehlo(lamina.jit(jnp.sin).lower(1.0).as_text(), target=other)
    assert "sin" in run.as_text()
    with pytest.raises(LoadError, match="this processor lacks zap"):
        run(np.float32(1))
    with pytest.raises(LoadError, match="this processor lacks zap"):
        run.on_devices([[np.float32(1)]])
