"""Compiles the programs of `triton_programs.py` with Triton and keeps their PTX in `triton_ptx.tar.xz`.

    python -m venv /tmp/triton && /tmp/triton/bin/pip install triton numpy ml_dtypes
    /tmp/triton/bin/python test/ptx/make_triton_ptx.py

Needs no GPU. Triton's wheel has 285 MB, too much for each run of the tests; its PTX has a few hundred kB.
"""

from __future__ import annotations

import io
import json
import os
import re
import sys
import tarfile
from pathlib import Path
from typing import Any

os.environ["TRITON_DISABLE_LINE_INFO"] = "1"

import triton
import triton_kernels
from counted_programs import COUNTED
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton_programs import PROGRAMS, Program

_KEPT = Path(__file__).with_name("triton_ptx.tar.xz")


def compiled(program: Program, arch: int) -> tuple[str, dict[str, Any]]:
    """The PTX, and how it is launched."""
    kernel = getattr(triton_kernels, program.kernel)
    signature = program.signature | dict.fromkeys(program.constants, "constexpr")
    order = [p.name for p in kernel.params]
    arguments = dict(zip(program.signature, program.arguments(program.random())))
    by_16 = [
        name for name, type_ in program.signature.items()
        if type_.startswith("*") or (type_[0] in "iu" and arguments[name] % 16 == 0)
    ]  # fmt: skip
    source = ASTSource(
        fn=kernel,
        signature={name: signature[name] for name in order},
        constexprs=program.constants,
        attrs={(order.index(name),): [["tt.divisibility", 16]] for name in by_16},
    )
    options = {"num_warps": program.warps, "num_stages": program.stages}
    made = triton.compile(source, target=GPUTarget("cuda", arch, 32), options=options)
    text = re.sub(r"\s*//.*", "", made.asm["ptx"])
    text = re.sub(r"\.section\s+\.debug\w+\s*\{.*?\}\n", "", text, flags=re.DOTALL)
    assert made.metadata.global_scratch_size == 0, program.name
    how = {"shared": made.metadata.shared, "threads": 32 * program.warps}
    if program.boxes:
        how["maps"] = made.metadata.tensordesc_meta
    return text, how


def _kept() -> dict[str, str]:
    with tarfile.open(_KEPT) as files:
        return {entry.name: files.extractfile(entry).read().decode() for entry in files}  # type: ignore[union-attr]


def main(*names: str) -> None:
    """Compiles all programs, or those whose names begin so, and keeps the others as they are."""
    texts = _kept() if names else {}
    launches = json.loads(texts.pop("launches.json", "{}"))
    for program in (*PROGRAMS, *(program for one in COUNTED for program in one.triton)):
        for arch in program.architectures:
            if names and not program.name.startswith(names):
                continue
            print(program.file(arch), flush=True)
            texts[program.file(arch)], launches[program.file(arch)] = compiled(program, arch)
    texts["triton"] = triton.__version__
    texts["launches.json"] = json.dumps(launches, indent=1)
    with tarfile.open(_KEPT, "w:xz") as kept:
        for name, text in texts.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text.encode())
            kept.addfile(entry, io.BytesIO(text.encode()))
    print(
        f"{len(texts) - 2} programs with Triton {triton.__version__}: {_KEPT.stat().st_size} bytes"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
