"""The compile driver: what is looked up, what is kept, what is said when it can't be done."""

# ruff: noqa: E501 (program text)

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lamina.backends import compile as compile_driver
from lamina.backends import kernels
from lamina.backends.compile import Compilation, artifact_key, compile_module
from lamina.backends.stages import stages_of
from lamina.backends.target import Target, TargetError
from lamina.dialects.context import parse
from lamina.dialects.vendors import ir
from lamina.passes.framework.base import CompileError, PassError
from lamina.passes.framework.pipeline import Pipeline
from lamina.runtime import array_from_numpy
from lamina.runtime.artifact import Artifact
from lamina.runtime.executable import load

PROGRAM = """
module @jit_f {
  func.func public @main(%x: tensor<32x16xf32>, %w: tensor<16x8xf32>) -> (tensor<32x8xf32> {jax.result_info = "result"}) {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<32x16xf32>, tensor<16x8xf32>) -> tensor<32x8xf32>
    %1 = func.call @relu(%0) : (tensor<32x8xf32>) -> tensor<32x8xf32>
    return %1 : tensor<32x8xf32>
  }
  func.func private @relu(%x: tensor<32x8xf32>) -> tensor<32x8xf32> {
    %0 = stablehlo.constant dense<0.0> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<32x8xf32>
    %2 = stablehlo.maximum %x, %1 : tensor<32x8xf32>
    return %2 : tensor<32x8xf32>
  }
}
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LAMINA_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kernels that code is generated for, as it happens."""
    seen: list[str] = []
    real = kernels.lower_kernels

    def counting(several, target):
        seen.extend(symbol for _, symbol, _ in several)
        return real(several, target)

    monkeypatch.setattr(kernels, "lower_kernels", counting)
    return seen


def entries(cache: Path, kind: str) -> int:
    return len(list((cache / kind).glob("??/*")))


def run(compilation: Compilation, *arrays: np.ndarray) -> list[np.ndarray]:
    results = load(compilation.artifact)([array_from_numpy(a) for a in arrays])
    return [np.asarray(r.numpy_view()) for r in results]


def test_a_program_runs(cache: Path) -> None:
    random = np.random.default_rng(0)
    x, w = (random.normal(size=s).astype(np.float32) for s in ((32, 16), (16, 8)))
    (y,) = run(compile_module(parse(PROGRAM)), x, w)
    np.testing.assert_allclose(y, np.maximum(x @ w, 0), rtol=1e-5, atol=1e-6)


def test_the_second_time_it_comes_from_the_store(cache: Path, compiled: list[str]) -> None:
    first = compile_module(parse(PROGRAM))
    done = len(compiled)
    second = compile_module(parse(PROGRAM))
    assert not first.from_cache and second.from_cache
    assert len(compiled) == done
    assert first.artifact == second.artifact
    assert Artifact.from_bytes(first.artifact.to_bytes()) == first.artifact


def test_locations_do_not_name_an_artifact(cache: Path) -> None:
    compile_module(parse(PROGRAM))
    assert compile_module(parse("\n\n" + PROGRAM)).from_cache


def test_keys_differ_by_code_target_and_name() -> None:
    host = Target.host()
    other = Target(host.kind, "generic", host.triple, "", 128)
    keys = {
        artifact_key(code, target, name)
        for code in (b"a", b"b")
        for target in (host, other)
        for name in ("f", "g")
    }
    assert len(keys) == 8


def test_a_changed_program_reuses_the_kernels_it_shares(cache: Path, compiled: list[str]) -> None:
    chain = """
    func.func public @main(%x: tensor<64x64xf32>, %y: tensor<64x64xf32>) -> (tensor<64xf32>, tensor<f32>) {{
      %c = stablehlo.constant dense<0.0> : tensor<f32>
      %0 = stablehlo.reduce(%x init: %c) applies stablehlo.add across dimensions = [0] : (tensor<64x64xf32>, tensor<f32>) -> tensor<64xf32>
      %1 = stablehlo.{op} %y : tensor<64x64xf32>
      %2 = stablehlo.reduce(%1 init: %c) applies stablehlo.add across dimensions = [0, 1] : (tensor<64x64xf32>, tensor<f32>) -> tensor<f32>
      return %0, %2 : tensor<64xf32>, tensor<f32>
    }}"""
    compile_module(parse(chain.format(op="abs")))
    before = len(compiled)
    assert before == 2
    second = compile_module(parse(chain.format(op="negate")))
    assert not second.from_cache
    assert len(compiled) == before + 1


def test_equal_kernels_are_compiled_once(cache: Path, compiled: list[str]) -> None:
    lines = "\n".join(
        f"%{i + 1} = stablehlo.dot_general %{i}, %w, contracting_dims = [1] x [0] : "
        "(tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>"
        for i in range(6)
    )
    made = compile_module(
        parse(
            "func.func public @main(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> {\n"
            f"%0 = stablehlo.add %x, %x : tensor<8x8xf32>\n{lines}\n"
            "return %6 : tensor<8x8xf32> }"
        )
    )
    rows = made.artifact.manifest["kernels"]
    assert sum(row["calls"] for row in rows) >= 6
    assert len(compiled) == len({row["symbol"] for row in rows}) <= 3


def test_the_manifest_tells_what_the_program_is(cache: Path) -> None:
    manifest = compile_module(parse(PROGRAM), name="predict").artifact.manifest
    assert manifest["name"] == "predict"
    assert manifest["inputs"] == [
        {"dtype": "float32", "shape": [32, 16]},
        {"dtype": "float32", "shape": [16, 8]},
    ]
    assert manifest["outputs"] == [{"dtype": "float32", "shape": [32, 8], "name": "result"}]
    assert manifest["memory"]["argument"] == 4 * (32 * 16 + 16 * 8)
    assert manifest["memory"]["output"] == 4 * 32 * 8
    assert manifest["cost"]["flops"] == 2 * 32 * 16 * 8 + 32 * 8
    (kernel,) = manifest["kernels"]
    assert "dot_general" in kernel["ops"] and "maximum" in kernel["ops"] and kernel["calls"] == 1


def test_every_stage_has_a_text(cache: Path) -> None:
    made = compile_module(parse(PROGRAM))
    stored = Compilation.of_artifact(Artifact.from_bytes(made.artifact.to_bytes()))
    for stage in stages_of("cpu"):
        assert made.text(stage) == stored.text(stage)
        assert made.text(stage).strip()
    for stage in ("stablehlo", "optimized", "fused", "planned"):
        parse(made.text(stage))
    with pytest.raises(ValueError, match="no stage 'optimised'; there are stablehlo"):
        made.text("optimised")


def test_an_interrupted_compilation_leaves_nothing_half_done(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = kernels.lower_kernels

    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(kernels, "lower_kernels", interrupted)
    with pytest.raises(KeyboardInterrupt):
        compile_module(parse(PROGRAM))
    assert entries(cache, "artifact") == 0
    monkeypatch.setattr(kernels, "lower_kernels", real)
    assert not compile_module(parse(PROGRAM)).from_cache
    assert entries(cache, "artifact") == 1


def test_a_damaged_entry_is_compiled_again(cache: Path) -> None:
    compile_module(parse(PROGRAM))
    (path,) = (cache / "artifact").glob("??/*")
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.warns(UserWarning, match="ignores the entry"):
        again = compile_module(parse(PROGRAM))
    assert not again.from_cache


def test_without_a_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMINA_CACHE", "0")
    assert not compile_module(parse(PROGRAM)).from_cache


def test_a_donated_argument_becomes_the_result(cache: Path) -> None:
    made = compile_module(
        parse(
            """
            func.func public @main(%x: tensor<8xf32> {tf.aliasing_output = 0 : i32}, %y: tensor<8xf32>) -> tensor<8xf32> {
              %0 = stablehlo.add %x, %y : tensor<8xf32>
              return %0 : tensor<8xf32>
            }"""
        )
    )
    manifest = made.artifact.manifest
    assert manifest["outputs"][0]["alias_of"] == 0
    assert manifest["memory"]["alias"] == 32 and manifest["memory"]["temp"] == 0
    x = array_from_numpy(np.ones(8, np.float32))
    where = x.unsafe_buffer_pointer()
    (y,) = load(made.artifact)([x, array_from_numpy(np.ones(8, np.float32))])
    assert x.is_deleted() and y.unsafe_buffer_pointer() == where
    np.testing.assert_array_equal(y.numpy_view(), np.full(8, 2, np.float32))


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("module @empty {}", "has no function @main; it has none"),
        (
            "func.func private @g(tensor<4xf32>) -> tensor<4xf32>\n"
            "func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {"
            "%0 = call @g(%x) : (tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> }",
            "@g is declared but has no body",
        ),
        (
            "func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {"
            "%0 = stablehlo.custom_call @f(%x) : (tensor<4xf32>) -> tensor<4xf32> "
            "return %0 : tensor<4xf32> }",
            r"\[custom_call\] calls @f",
        ),
        (
            "func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {"
            "%0 = call @main(%x) : (tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> }",
            r"\[call\] .*recursive",
        ),
    ],
)
def test_errors_name_the_op(cache: Path, program: str, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        compile_module(parse(program))
    assert entries(cache, "artifact") == 0


def test_what_fails_unchecked_is_compiled_again_with_checks(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second time from what the program was: the first has been at work on the module."""
    monkeypatch.setenv("LAMINA_VERIFY", "0")
    planned: list[str] = []

    def refuse(module: ir.Module, *_: object) -> None:
        planned.append(str(module))
        module.operation.attributes["lamina.half"] = ir.UnitAttr.get(module.context)
        Pipeline.parse("one-shot-bufferize").run(module)  # kernels on tensors: it can't

    monkeypatch.setattr(compile_driver, "run_plan", refuse)
    module = parse(PROGRAM)
    with pytest.raises(PassError) as caught:
        compile_module(module)
    assert caught.value.pass_name == "one-shot-bufferize"
    assert len(planned) == 2 and planned[0] == planned[1]
    assert str(module) == str(parse(PROGRAM))


def test_amd_s_processors_load_elements_one_by_one() -> None:
    intel, amd, narrow = (
        Target("cpu", cpu, "x86_64-unknown-linux-gnu", "+avx2", bits)
        for cpu, bits in (("sapphirerapids", 512), ("znver5", 512), ("znver3", 256))
    )
    assert [target.gathers for target in (intel, amd, narrow)] == [True, False, False]
    assert [target.tuned_features for target in (intel, amd, narrow)] == ["+avx2", "+avx2,+prefer-no-gather", "+avx2"]


def test_targets() -> None:
    assert Target.parse("cpu") == Target.host() and hash(Target.parse("cpu")) == hash(Target.host())
    assert Target.parse("cuda:sm_80") == Target("cuda", "sm_80") != Target.parse("cuda")
    assert str(Target.parse("cuda")) == "cuda:sm_90a"
    with pytest.raises(TargetError, match="unknown GPU architecture 'sm_12'; there are sm_75, "):
        Target.parse("cuda:sm_12")
    with pytest.raises(TargetError, match="unknown target 'tpu'"):
        Target.parse("tpu")
