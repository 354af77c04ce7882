"""Runs the programs of other compilers in the emulator, from the PTX that is kept of them."""

from __future__ import annotations

import functools
import json
import tarfile
from pathlib import Path
from typing import Any

import cuda_programs
import numpy as np
import triton_programs
from support import ptx


@functools.cache
def kept(compiler: str) -> dict[str, str]:
    """The texts of a compiler, by file."""
    with tarfile.open(Path(__file__).with_name(f"{compiler}_ptx.tar.xz")) as files:
        return {entry.name: files.extractfile(entry).read().decode() for entry in files}  # type: ignore[union-attr]


def run_triton(
    program: triton_programs.Program, arch: int, seed: int = 0
) -> tuple[np.ndarray, Any]:
    """What a kernel of Triton's gives, and what it should give."""
    how = json.loads(kept("triton")["launches.json"])[program.file(arch)]
    emulated = ptx.Program(kept("triton")[program.file(arch)])
    (name,) = emulated.kernels
    given = program.arguments(program.random())
    wanted = program.wanted(given)
    arguments: list[Any] = []
    maps = iter(how.get("maps", ()))
    for (parameter, _), a in zip(program.signature.items(), given, strict=True):
        if parameter not in program.boxes:
            arguments.append(ptx.Pointer(a) if isinstance(a, np.ndarray) else a)
            continue
        box, size = next(maps), a.dtype.itemsize
        rows = ptx.TensorMap(
            ptx.Pointer(a),
            size,
            a.shape[::-1],
            [a.strides[0]],
            box["block_size"][::-1],
            box["swizzle"],
        )
        arguments += [rows, *a.shape, a.strides[0] // size, 1]
    result = [a for a in given if isinstance(a, np.ndarray)][-1]
    nothing = ptx.Pointer(np.zeros(0, np.uint8))
    arguments += [nothing, nothing]  # scratch memory and a profile, which none of the programs has
    emulated.launch(name, program.grid, (how["threads"],), arguments, how["shared"], seed)
    return result, wanted


def run_cuda(program: cuda_programs.Program, arch: int, seed: int = 0) -> tuple[np.ndarray, Any]:
    """What a kernel of CUDA C++ gives, and what it should give."""
    emulated = ptx.Program(kept("cuda")[program.file(arch)])
    given = program.arguments(program.random())
    wanted = program.wanted(*given[:-1])
    pointers: list[Any] = [ptx.Pointer(a) for a in given]
    for place, box in program.boxes.items():
        a = given[place]
        pointers[place] = ptx.TensorMap(ptx.Pointer(a), a.itemsize, a.shape[::-1], a.strides[-2::-1], box, swizzle=0)
    strict = not program.reads_beyond
    emulated.launch("k", (program.blocks,), (program.threads,), pointers, 0, seed, strict)
    return given[-1], wanted


def assert_right(found: np.ndarray, wanted: Any, tolerance: float) -> None:
    """Equal where nothing is tolerated, NaN as NaN."""
    wanted = np.asarray(wanted)
    found = found.reshape(wanted.shape)
    if tolerance:
        np.testing.assert_allclose(
            found.astype(np.float64), wanted.astype(np.float64), rtol=tolerance, atol=tolerance
        )
    elif found.dtype.kind in "iu":
        np.testing.assert_array_equal(found, wanted.astype(found.dtype))
    else:
        np.testing.assert_array_equal(found.astype(np.float64), wanted.astype(np.float64))
