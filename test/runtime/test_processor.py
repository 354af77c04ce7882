"""What code for another processor needs, and conversions that processors may lack."""

import ctypes
import os
import subprocess
import sys

import llvmlite.binding as llvm
import ml_dtypes
import numpy as np
import pytest
from run_as import MACHINES

import lamina
from lamina import lax, runtime
from lamina.backends.target import Target, TargetError
from lamina.runtime import _runtime
from lamina.runtime.artifact import Artifact
from lamina.runtime.executable import LoadError, load
from lamina.runtime.processor import (
    LEVELS,
    Processor,
    ProcessorError,
    assumed_processor,
    check_processor,
    processor_features,
)

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


def test_a_kind_of_processor_is_a_level_and_further_features():
    kind = Processor.parse("x86-64-v3+gfni+avxvnni")
    assert kind == Processor("x86-64-v3", ("avxvnni", "gfni"))
    assert kind.features == {*LEVELS["x86-64-v3"].features, "avxvnni", "gfni"}
    target = Target.parse("cpu:x86-64-v3+gfni+avxvnni")
    assert (target.cpu, target.features, target.vector_bits) == ("x86-64-v3", "+avxvnni,+gfni", 256)
    assert Target.parse("cpu:x86-64-v4+amx-tile+amx-int8").product_features == "amx-int8"
    with pytest.raises(TargetError, match="knows no feature 'zap' of processors"):
        Target.parse("cpu:x86-64-v3+avxvnni+zap")
    with pytest.raises(TargetError, match="unknown target 'cpu:x86-64-v5.avxvnni'"):
        Target.parse("cpu:x86-64-v5+avxvnni")


@pytest.mark.parametrize("machine", MACHINES)
def test_tests_can_run_as_on_it(machine):
    kind = Processor.parse(MACHINES[machine].processor)
    assert kind.features >= set(LEVELS["x86-64-v3"].features)
    assert Target.parse(f"cpu:{MACHINES[machine].processor}").vector_bits in (256, 512)


AS_ANOTHER = """
import numpy as np, lamina
from lamina.backends.target import Target
from lamina.runtime import _runtime

host = Target.host()
compiled = lamina.jit(lamina.numpy.exp).lower(np.ones(999, np.float32)).compile()
text = compiled.as_text("asm")
target = compiled.artifact.manifest["target"]
print(host.cpu, host.vector_bits, _runtime.vector_bits(), host.product_features or None)
print("+avx2" in host.features, "-avx512f" in host.features, "-amx-tile" in host.features)
print("ymm" in text, "zmm" in text, target == host.describe(), compiled(np.zeros(999, np.float32))[7])
"""


def _as_another(processor, program=AS_ANOTHER):
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=600,
        env={**os.environ, "LAMINA_PROCESSOR": processor},
    )  # fmt: skip


def test_this_machine_can_be_taken_for_a_lesser_one():
    ran = _as_another("x86-64-v3")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == ["x86-64-v3 256 256 None", "True True True", "True False True 1.0"]


def test_it_cannot_be_taken_for_one_that_has_more():
    absent = next(name for name, there in llvm.get_host_cpu_features().items() if not there)
    ran = _as_another(f"x86-64-v3+{absent}")
    assert ran.returncode and f"this processor lacks {absent}: it can be taken for" in ran.stderr
    ran = _as_another("pentium", "import lamina")
    assert ran.returncode and "LAMINA_PROCESSOR: 'pentium' is no kind of processor" in ran.stderr


@pytest.fixture
def any_width():
    """Lets a test limit the runtime's own vectors."""
    yield
    assumed = assumed_processor()
    runtime.limit_vector_bits(512 if assumed is None else LEVELS[assumed.level].vector_bits)


@pytest.mark.parametrize("bits", [128, 256, 512])
@pytest.mark.parametrize("dtype", [np.int8, np.float16, np.float32, np.int64])
def test_the_runtime_s_loops_give_the_same_in_vectors_of_any_width(any_width, bits, dtype):
    runtime.limit_vector_bits(bits)
    assert _runtime.vector_bits() <= bits
    x = np.random.default_rng(0).integers(-99, 99, (70, 333)).astype(dtype)
    with lamina.enable_x64():
        found, at = map(np.asarray, lax.top_k(x, 5))
        ordered = np.asarray(lax.sort(x))
    np.testing.assert_array_equal(ordered, np.sort(x))
    np.testing.assert_array_equal(found, np.sort(x)[:, : -6 : -1])
    np.testing.assert_array_equal(found, np.take_along_axis(x, at, 1))
