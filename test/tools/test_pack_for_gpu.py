"""Packing for a machine without a network: what goes where, and a wheel that becomes an archive."""

from __future__ import annotations

import importlib.util
import tarfile
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

_PATH = Path(__file__).parents[2] / "benchmarks" / "pack_for_gpu.py"


@pytest.fixture(scope="module")
def packer() -> ModuleType:
    spec = importlib.util.spec_from_file_location("pack_for_gpu", _PATH)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_parts_are_few_and_small(packer: ModuleType) -> None:
    assert packer.distribute({"a": 40, "b": 35, "c": 15, "d": 1}, 56) == [["a", "c", "d"], ["b"]]
    with pytest.raises(ValueError, match="b takes 57 bytes, more than the 56"):
        packer.distribute({"a": 1, "b": 57}, 56)


def test_each_part_is_carried_once(packer: ModuleType) -> None:
    rows = packer.commands(Path("out/gpu"), 2)
    assert [carry for carry, _ in rows] == ["out/gpu/1", "out/gpu/2", "", ""]
    assert "tar xJf" in rows[0][1] and rows[1][1].endswith("gpu.json exchange rates")
    assert all(len(command) < 2000 for _, command in rows)


def test_a_wheel_without_what_nobody_imports(packer: ModuleType, tmp_path: Path) -> None:
    wheel = tmp_path / "torch_mlir-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("torch_mlir/ir.py", "x = 1")
        archive.writestr("torch_mlir/_mlir_libs/torch-mlir-opt", "large")
    made = packer.pack(wheel, tmp_path)
    assert made.name == "torch_mlir.tar.xz"
    with tarfile.open(made) as archive:
        names = [name for name in archive.getnames() if "torch_mlir/" in name]
    assert [name.split("torch_mlir/")[1] for name in names if "." in name[2:]] == ["ir.py"]


def test_versions_are_pyproject_s(packer: ModuleType) -> None:
    assert [name.split("=")[0].split(">")[0] for name in packer.requirements()] == list(packer.PACKAGES)


def test_what_wheels_lack(packer: ModuleType, tmp_path: Path) -> None:
    """But for what is there, what only other systems or Pythons need, and extras."""

    def wheel(name: str, *needs: str) -> Path:
        path = tmp_path / f"{name}-1-py3-none-any.whl"
        with zipfile.ZipFile(path, "w") as archive:
            lines = [f"Name: {name}", *(f"Requires-Dist: {need}" for need in needs)]
            archive.writestr(f"{name}-1.dist-info/METADATA", "\n".join(lines))
        return path

    tree = wheel("optree", "typing-extensions>=4", 'jax; extra == "jax"', 'colorama; sys_platform == "win32"')
    made = [tree, wheel("lamina", "Optree", "ml_dtypes>=0.5", 'tomli; python_version < "3.11"')]
    assert packer.lacking(made, "3.12") == {"typing-extensions"}
    assert not packer.lacking([*made, wheel("typing_extensions")], "3.12")
