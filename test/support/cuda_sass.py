"""What NVIDIA's disassembler shows of a cubin: its machine's instructions, kernel by kernel."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass

from cuda.pathfinder import find_nvidia_binary_utility

_SECTION = re.compile(r"^\s*\.section\s+\.text\.(\S+?),", re.MULTILINE)
_INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:\{\s*)?(?:@!?U?P\w+\s+)?([A-Z][\w.]*)(.*)$", re.MULTILINE)
_TENSOR = re.compile(r"[HIQDO]G?MMA\.[\dx]+")

COUNTERPARTS = {
    "ld16": r"LDG\.E\S*\.(?:128|256)", "st16": r"STG\.E\S*\.(?:128|256)", "ld8": r"LDG\.E\S*\.(?:64|128)",
    "st8": r"STG\.E\S*\.(?:64|128)", "shfl": r"SHFL", "bar": r"BAR\.", "atom": r"ATOM|RED", "cp.async": r"LDGSTS",
    "bulk": r"UTMALDG", "ldmatrix": r"LDSM", "mma": r"[HIQD]MMA", "wgmma": r"[HIQ]GMMA",
}  # fmt: skip
"""By what PTX has, what the machine must have for it."""
_LOCAL = re.compile(r"LDL|STL")


@dataclass(frozen=True)
class Machine:
    """Of kernels: the most instructions that one has, less what fills it up; and, of all, what they have by name,
    sorted."""

    instructions: int
    names: tuple[str, ...]

    @property
    def tensor(self) -> str:
        """Tensor instructions with their shapes, and whether functions are called."""
        shapes = {found[0] for name in self.names if (found := _TENSOR.match(name))}
        return " ".join([*sorted(shapes), *(["CALL"] if any(n.startswith("CALL") for n in self.names) else [])])

    def lacks(self, ptx: Sequence[str]) -> list[str]:
        """Of what PTX has (`COUNTERPARTS`), that which did not become what it should."""
        return [each for each in ptx if not any(re.match(COUNTERPARTS[each], name) for name in self.names)]

    def joined(self, other: Machine) -> Machine:
        """Of the kernels of both."""
        return Machine(
            max(self.instructions, other.instructions), tuple(sorted({*self.names, *other.names}))
        )


def disassembled(code: bytes, kernels: set[str]) -> Machine:
    """What the kernels of a cubin have; none may use local memory."""
    tool = find_nvidia_binary_utility("nvdisasm")
    assert tool is not None, "nvdisasm is missing: pip install nvidia-cuda-nvdisasm"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(code)
        file.flush()
        text = subprocess.run([tool, "-c", "-ndf", file.name], check=True, capture_output=True, text=True).stdout
    _, *parts = _SECTION.split(text)
    found = dict(zip(parts[::2], parts[1::2], strict=True))
    assert kernels <= set(found), (kernels, set(found))
    most, names = 0, set()
    for kernel in kernels:
        ops = [match[1] for match in _INSTRUCTION.finditer(found[kernel])]
        while ops and ops[-1] == "NOP":
            ops.pop()
        assert not any(map(_LOCAL.match, ops)), f"{kernel} uses local memory"
        most = max(most, len(ops))
        names.update(ops)
    return Machine(most, tuple(sorted(names)))
