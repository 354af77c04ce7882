"""`make gpu-check` up to its JSON, on a GPU that is made of Python."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from support.fake_cuda import driver as fake_driver

import lamina

_PATH = Path(__file__).parents[2] / "benchmarks" / "gpu_check.py"


@pytest.fixture
def check(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("gpu_check", _PATH)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "gpu_check", module)  # dataclasses look there
    monkeypatch.syspath_prepend(str(_PATH.parent))
    spec.loader.exec_module(module)
    yield module
    lamina.config.update("matrix_products", "auto")  # which the program sets


def test_rates(check: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    every = check._rates

    def some(sizes: Any) -> dict[str, Any]:
        found = every(sizes)
        names = ("copy", "sum of rows", "launch", "loop of scalars", "loop of lanes", "matmul bf16 by kernel",
                 "matmul tf32 by kernel", "matmul f8", "convolution bf16")  # fmt: skip
        few = {name: found[name] for name in names}
        return few | {"broken": lambda: 1 / 0}

    monkeypatch.setattr(check, "_rates", some)
    with fake_driver.installed(fake_driver.FakeDriver()):
        check.main([str(tmp_path / "gpu.json"), "rates", "--small"])
    found = json.loads((tmp_path / "gpu.json").read_text())
    assert found["device"] == "Emulated GPU" and found["capability"] == "9.0"
    assert "ZeroDivisionError" in found["rates"]["broken"]["error"]
    assert found["rates"]["ratios"]["sum of rows of copy"] > 0
    assert found["rates"]["loop of lanes"]["seconds_per_step"] > 0
    for name, kind in [("matmul bf16 by kernel", "bf16"), ("matmul tf32 by kernel", "tf32"),
                       ("matmul f8", "e4m3"), ("convolution bf16", "bf16")]:  # fmt: skip
        assert re.match(rf"(wg)?mma\.{kind} ", found["rates"][name]["tiling"]), name


def test_exchange(check: ModuleType, tmp_path: Path) -> None:
    with fake_driver.installed(fake_driver.FakeDriver()):
        check.main([str(tmp_path / "gpu.json"), "exchange", "--small"])
    found = json.loads((tmp_path / "gpu.json").read_text())["exchange"]
    wanted = {"devices and contexts", "dlpack to cuda.core", "__cuda_array_interface__ to cuda.core",
              "__cuda_array_interface__ from cuda.core", "streams"}  # fmt: skip
    assert wanted <= set(found) and all(row == {"passed": True} for row in found.values()), found


def test_what_tests_say(check: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(words: list[Any], log: Path, environment: dict[str, str]) -> int | None:
        assert environment == {"LAMINA_TEST_PLATFORMS": "cuda,cpu"}
        log.write_text("[gw1] [ 10%] PASSED test/end_to_end/test_a.py::test_b[1] \n"
                       "[gw0] [ 20%] FAILED test/end_to_end/test_a.py::test_c \n")  # fmt: skip
        return None  # the time was over

    monkeypatch.setattr(check, "_run", run)
    found = check._samples(tmp_path / "log")
    assert found == {"passed": 1, "failed": 1, "exit": None,
                     "failures": ["test/end_to_end/test_a.py::test_c"]}  # fmt: skip


def test_there_is_no_gpu(check: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="cuda"):
        check.main([str(tmp_path / "gpu.json")])
    assert not list(tmp_path.iterdir())
