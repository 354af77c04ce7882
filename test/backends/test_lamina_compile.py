"""The command lamina-compile."""

# ruff: noqa: E501 (program text)

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest

from lamina.runtime import array_from_numpy
from lamina.runtime.artifact import Artifact
from lamina.runtime.executable import load
from lamina.tools.lamina_compile import main

PROGRAM = """module @jit_f {
  func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.add %x, %x : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "f.mlir"
    path.write_text(PROGRAM)
    return path


def test_writes_an_artifact_that_runs(program: Path, tmp_path: Path) -> None:
    out = tmp_path / "f.lamina"
    assert main([str(program), "-o", str(out)]) == 0
    (y,) = load(Artifact.from_bytes(out.read_bytes()))([array_from_numpy(np.ones(4, np.float32))])
    np.testing.assert_array_equal(y.numpy_view(), np.full(4, 2, np.float32))


def test_shows_a_stage(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(program), "--emit", "fused"]) == 0
    assert "call @fused_add" in capsys.readouterr().out
    assert main([str(program), "--emit", "manifest"]) == 0
    assert json.loads(capsys.readouterr().out)["name"] == "jit_f"


def test_writes_a_stage_to_a_file(program: Path, tmp_path: Path) -> None:
    out = tmp_path / "f.s"
    assert main([str(program), "--emit", "asm", "-o", str(out)]) == 0
    assert "ret" in out.read_text()


def test_summary_and_timing(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(program), "--timing", "--name", "double"]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("double: float32[4] -> float32[4]\n")
    assert "1 x fused_add" in shown.out
    assert "s\n" in shown.err


def test_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(PROGRAM.encode())))
    assert main(["-", "--emit", "stablehlo"]) == 0
    assert "stablehlo.add" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("module {", "f.mlir:1:"),
        (PROGRAM.replace("add %x, %x", "custom_call @g(%x)").replace(" : tensor<4xf32>\n    ret", " : (tensor<4xf32>) -> tensor<4xf32>\n    ret"), "f.mlir:3:10\n    %0 = stablehlo.custom_call"),
    ],
)  # fmt: skip
def test_errors_are_one_message_with_the_line(
    program: Path, capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    program.write_text(text)
    assert main([str(program)]) == 1
    error = capsys.readouterr().err
    assert error.startswith("lamina-compile: ") and message in error
    assert "Traceback" not in error


def test_a_missing_file_and_a_target_that_is_not_there(
    program: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["nowhere.mlir"]) == 1
    assert "nowhere.mlir" in capsys.readouterr().err
    assert main([str(program), "--target", "cuda:sm_12"]) == 1
    assert "unknown GPU architecture" in capsys.readouterr().err
