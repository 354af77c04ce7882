"""Pack what `make gpu-check` needs for a machine with a GPU and no network, in parts of limited size.

    python benchmarks/pack_for_gpu.py out/gpu          # writes out/gpu/1, out/gpu/2, ...; prints what to run

Packages come as wheels for that machine's Python, lamina's own is built by a Python of that version
here. They are unpacked, freed of symbols and of what nobody imports, and packed again, tighter than
wheels are. What `PRESENT` lists must be there, and nothing else may be needed: that is checked; torch, for
cuBLAS, may be there.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from email.parser import Parser
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

REPO = Path(__file__).resolve().parent.parent
PACKAGES = ("cuda-bindings", "cuda-core", "cuda-pathfinder", "llvmlite", "optree", "scipy-openblas32",
            "torch-mlir")  # fmt: skip
TESTS = ("pytest", "pytest-xdist", "pytest-timeout", "hypothesis", "mpmath", "typing_extensions")
"""Small, and with all that they need; the last one is optree's."""
PRESENT = ("ml-dtypes", "numpy", "nvidia-nvjitlink", "opt-einsum")
"""What lamina needs of the other machine; its tests need scipy and jax, the demo scikit-learn and tqdm."""
_UNUSED = ("torch_mlir/_mlir_libs/torch-mlir-opt", "*/tests/*")
_PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_27_x86_64", "manylinux_2_17_x86_64",
              "manylinux2014_x86_64", "manylinux1_x86_64")  # fmt: skip
SITE = "/tmp/lamina-gpu"
"""Where the other machine has the packages."""


def requirements() -> list[str]:
    """The packages in the versions that pyproject.toml wants."""
    text = (REPO / "pyproject.toml").read_text()
    return [re.search(rf'"({re.escape(name)}\b[^"]*)"', text)[1] for name in PACKAGES]  # type: ignore[index]


def download(folder: Path, version: str) -> list[Path]:
    """Wheels of the packages for CPython of a version, such as 3.12, on x86-64."""
    platforms = [word for name in _PLATFORMS for word in ("--platform", name)]
    for names in (["--no-deps", *requirements()], TESTS):
        _run(sys.executable, "-m", "pip", "download", "-q", "--only-binary=:all:",
             "--python-version", version, "--implementation", "cp", *platforms,
             "-d", folder, *names)  # fmt: skip
    return sorted(folder.glob("*.whl"))


def lacking(wheels: list[Path], version: str) -> set[str]:
    """What wheels need on Linux that is neither among them nor in `PRESENT`."""
    found: dict[str, set[str]] = {}
    platform = {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix", "extra": "",
                "python_version": version, "python_full_version": f"{version}.0",
                "implementation_name": "cpython", "platform_python_implementation": "CPython"}  # fmt: skip
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            (name,) = [n for n in archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", n)]
            said = Parser().parsestr(archive.read(name).decode())
        needs = map(Requirement, said.get_all("Requires-Dist", []))
        found[canonicalize_name(said["Name"])] = {
            canonicalize_name(need.name)
            for need in needs if need.marker is None or need.marker.evaluate(platform)
        }  # fmt: skip
    return set().union(*found.values()) - set(found) - set(PRESENT)


def build(folder: Path, version: str) -> Path:
    """lamina's wheel, by the Python of that version that is on the path or among pyenv's."""
    # pyenv has a name on the path for each version it knows, also for those that are not chosen.
    found = next((python for python in _pythons(version) if _works(python)), None)
    if found is None:
        raise SystemExit(f"there is no Python {version} here to build lamina's extension with")
    _run(found, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, REPO)
    return next(folder.glob("lamina-*.whl"))


def _pythons(version: str) -> Iterator[str]:
    yield from map(str, sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python")))
    found = shutil.which(f"python{version}")
    if found is not None:
        yield found


def _works(python: str) -> bool:
    return not subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode


def pack(wheel: Path, folder: Path) -> Path:
    """A wheel's files as folder/<name>.tar.xz."""
    name = wheel.name.split("-")[0]
    tree = folder / f"{name}.tree"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tree)
    for pattern in _UNUSED:
        for path in tree.glob(pattern):
            path.unlink() if path.is_file() else None
    libraries = [str(path) for path in tree.rglob("*.so*") if path.is_file()]
    if libraries and shutil.which("strip"):
        subprocess.run(["strip", "--strip-unneeded", *libraries], check=False)
    made = folder / f"{name}.tar.xz"
    environment = os.environ | {"XZ_OPT": "-1"}
    subprocess.run(["tar", "cJf", made, "-C", tree, "."], check=True, env=environment)
    shutil.rmtree(tree)
    return made


def distribute(sizes: dict[str, int], most: int) -> list[list[str]]:
    """Names in as few parts as the largest-first rule finds, none above `most` bytes.

    Raises ValueError for one that is too large by itself.
    """
    parts: list[tuple[int, list[str]]] = []
    for name, size in sorted(sizes.items(), key=lambda item: -item[1]):
        if size > most:
            raise ValueError(f"{name} takes {size} bytes, more than the {most} of a part")
        for number, (taken, names) in enumerate(parts):
            if taken + size <= most:
                parts[number] = (taken + size, [*names, name])
                break
        else:
            parts.append((size, [name]))
    return [names for _, names in parts]


def commands(folder: Path, parts: int) -> list[tuple[str, str]]:
    """(what to carry, what to run there), one after the other while the machine is held."""
    unpack = f"mkdir -p {SITE} && for f in {{part}}/*.tar.xz; do tar xJf $f -C {SITE}; done"
    found = [
        (str(folder / str(n + 1)), unpack.format(part=folder / str(n + 1))) for n in range(parts)
    ]
    for stage in ("exchange rates", "demo", "samples"):
        found.append(("", f"PYTHONPATH={SITE} python3 benchmarks/gpu_check.py $OUT/gpu.json {stage}"))
    carry, last = found[parts - 1]
    found[parts - 1 : parts + 1] = [(carry, f"{last}; {found[parts][1]}")]
    return found


def _run(*words: object) -> None:
    subprocess.run([str(word) for word in words], check=True)


def main() -> None:
    """Packs, and says what to do with it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--python", default="3.12", help="of the other machine")
    parser.add_argument("--part-mib", type=int, default=52, help="the most that one part may take")
    given = parser.parse_args()
    folder = given.folder
    shutil.rmtree(folder, ignore_errors=True)
    wheels = folder / "wheels"
    wheels.mkdir(parents=True)
    every = [*download(wheels, given.python), build(wheels, given.python)]
    if lacks := lacking(every, given.python):
        raise SystemExit(f"packages are lacking that nobody would find there: {', '.join(sorted(lacks))}")
    made = [pack(wheel, folder) for wheel in every]
    parts = distribute({path.name: path.stat().st_size for path in made}, given.part_mib << 20)
    for number, names in enumerate(parts):
        (folder / str(number + 1)).mkdir()
        for name in names:
            (folder / name).rename(folder / str(number + 1) / name)
    shutil.rmtree(wheels)
    for carry, command in commands(folder, len(parts)):
        print(f"carry: {carry or 'nothing'}\n  {command}")


if __name__ == "__main__":
    main()
