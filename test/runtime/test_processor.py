"""What code for another processor needs, and conversions that processors may lack."""

import ctypes

import ml_dtypes
import numpy as np
import pytest

import lamina
from lamina.backends.target import Target
from lamina.runtime import _runtime
from lamina.runtime.artifact import Artifact
from lamina.runtime.executable import LoadError, load
from lamina.runtime.processor import LEVELS, ProcessorError, check_processor, processor_features

HALVES = np.arange(1 << 16, dtype=np.uint16)


def _function(name, takes):
    return ctypes.CFUNCTYPE(ctypes.c_float, takes)(_runtime.conversions()[name])


def _code(held):
    return int(np.float32(held).view(np.uint32) & 0xFFFF)


def _drawn(dtype):
    """Numbers of all sizes that halves have, at them, half way between them and just beside that."""
    rng = np.random.default_rng(0)
    halves = HALVES[::7].view(np.float16).astype(dtype)
    halves = halves[np.isfinite(halves)]
    middles = (halves[:-1] + halves[1:]) / 2
    beside = [np.nextafter(middles, dtype(to)) for to in (np.inf, -np.inf)]
    wide = rng.standard_normal(2000) * 10.0 ** rng.integers(-40, 38, 2000)
    special = [0.0, -0.0, np.inf, -np.inf, 65504.0, 65519.99, 65520.0, 3.4e38]
    return np.concatenate([halves, middles, *beside, wide.astype(dtype), np.array(special, dtype)])


@pytest.mark.parametrize(
    ("name", "takes", "dtype", "to"),
    [
        ("__truncsfhf2", ctypes.c_float, np.float32, np.float16),
        ("__truncdfhf2", ctypes.c_double, np.float64, np.float16),
        ("__truncsfbf2", ctypes.c_float, np.float32, ml_dtypes.bfloat16),
    ],
)
def test_numbers_are_rounded_once(name, takes, dtype, to):
    function, numbers = _function(name, takes), _drawn(dtype)
    with np.errstate(over="ignore"):
        want = numbers.astype(to).view(np.uint16)
    got = np.array([_code(function(float(x))) for x in numbers], np.uint16)
    np.testing.assert_array_equal(got, want)
    assert np.isnan(np.array([_code(function(float("nan")))], np.uint16).view(to)[0])


def test_doubles_to_bfloat16_are_rounded_once():
    function = _function("__truncdfbf2", ctypes.c_double)
    tie = 1 + 2.0**-8  # half way between 1 and the next number, which f32 has
    assert _code(function(tie)) == 0x3F80
    assert _code(function(tie + 2.0**-40)) == 0x3F81  # f32 has not: its nearest is the tie
    assert _code(function(-tie - 2.0**-40)) == 0xBF81
    assert _code(function(1e300)) == 0x7F80
    assert _code(function(-1e-300)) == 0x8000


def test_halves_are_widened_exactly():
    function = _function("__extendhfsf2", ctypes.c_float)
    held = HALVES.astype(np.uint32).view(np.float32)
    got = np.array([function(float(x)) for x in held[:: 13]], np.float32)
    np.testing.assert_array_equal(got, HALVES[::13].view(np.float16).astype(np.float32))


def test_each_level_has_what_the_one_before_has():
    order = ["x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"]
    assert list(LEVELS) == order
    for less, more in zip(order, order[1:]):
        assert set(LEVELS[less].features) < set(LEVELS[more].features)
        assert LEVELS[less].vector_bits <= LEVELS[more].vector_bits
    assert {f for level in LEVELS.values() for f in level.features} <= set(processor_features())


def test_this_machine_runs_what_it_compiles():
    check_processor(Target.host().describe())


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ({"cpu": "z", "features": "+zap,-avx2,+sse2"}, "compiled for z, and this processor lacks zap: "),
        ({"triple": "riscv64-unknown-linux-gnu", "cpu": ""}, "compiled for riscv64, and this machine is"),
    ],
)
def test_what_a_processor_lacks_is_named(target, message):
    with pytest.raises(ProcessorError, match=message):
        check_processor(target)


def test_an_artifact_for_another_processor_is_refused_when_it_is_loaded():
    x = np.ones(3, np.float32)
    artifact = lamina.jit(lambda x: x + 1).lower(x).compile().artifact
    target = {**artifact.manifest["target"], "features": "+zap", "cpu": "zapper"}
    other = Artifact({**artifact.manifest, "target": target}, artifact.objects, artifact.source)
    other = Artifact.from_bytes(other.to_bytes())
    with pytest.raises(LoadError, match=r"does not run here: compiled for zapper.* 'cpu:x86-64-v3'"):
        load(other)
