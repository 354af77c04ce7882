"""Compiles the programs of `cuda_programs.py` with NVRTC and keeps their PTX in `cuda_ptx.tar.xz`.

    python -m venv /tmp/nvrtc
    /tmp/nvrtc/bin/pip install cuda-bindings nvidia-cuda-{nvrtc,cccl,runtime,crt} numpy ml_dtypes
    /tmp/nvrtc/bin/python test/ptx/make_cuda_ptx.py

Needs no GPU. Kept because a block primitive of CUB takes NVRTC several seconds.
"""

from __future__ import annotations

import io
import re
import sys
import tarfile
from pathlib import Path

import nvidia
from cuda.bindings import nvrtc
from cuda_programs import PROGRAMS

_KEPT = Path(__file__).with_name("cuda_ptx.tar.xz")


def compiled(source: str, arch: int) -> str:
    """The PTX, without the variables that no function names."""
    folders = [p for root in nvidia.__path__ for p in Path(root).glob("*/include")]
    options = [
        f"--gpu-architecture=compute_{arch}{'a' * (arch == 90)}",
        "-std=c++17",
        "--device-int128",
    ]
    options += [f"-I{p}" for folder in folders for p in (folder, folder / "cccl")]
    error, program = nvrtc.nvrtcCreateProgram(source.encode(), b"k.cu", 0, [], [])
    (error,) = nvrtc.nvrtcCompileProgram(program, len(options), [o.encode() for o in options])
    if error != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        log = b" " * nvrtc.nvrtcGetProgramLogSize(program)[1]
        nvrtc.nvrtcGetProgramLog(program, log)
        sys.exit(log.decode())
    found = b" " * nvrtc.nvrtcGetPTXSize(program)[1]
    nvrtc.nvrtcGetPTX(program, found)
    text = re.sub(r"//[^\n]*", "", found.decode().rstrip("\0 "))
    lines = [line for line in text.splitlines() if line.strip()]
    words = re.findall(r"[\w$]+", text)
    seen = {word: words.count(word) for word in set(words)}
    named = re.compile(r"(?:\.visible |\.weak )?\.(?:global|const) .*?\.[bsuf]\d+ ([\w$]+)")
    kept = [
        line
        for line in lines
        if not ((m := named.match(line)) and seen[m[1]] == 1 and line.endswith(";"))
    ]
    return "\n".join(kept) + "\n"


def main(*names: str) -> None:
    """Compiles all programs, or those whose names begin so, and keeps the others as they are."""
    texts: dict[str, bytes] = {}
    if names:
        with tarfile.open(_KEPT) as before:
            texts = {entry.name: before.extractfile(entry).read() for entry in before}  # type: ignore[union-attr]
    with tarfile.open(_KEPT, "w:xz") as kept:
        for program in PROGRAMS:
            for arch in program.architectures:
                name = program.file(arch)
                if not names or program.name.startswith(names):
                    print(name, flush=True)
                    texts[name] = compiled(program.source, arch).encode()
                data = texts[name]
                entry = tarfile.TarInfo(name)
                entry.size = len(data)
                kept.addfile(entry, io.BytesIO(data))
    print(f"{len(PROGRAMS)} programs: {_KEPT.stat().st_size} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
