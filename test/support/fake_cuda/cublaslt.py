"""A cuBLASLt made of Python, for the driver made of Python: what `runtime/src/cuda/library.cpp` calls.

It multiplies as NumPy does, when the stream gets there, reads and writes nothing but the matrices, and
says in `asked` what it was asked for. `milliseconds` is what the driver's clock says of a product.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from support.fake_cuda.c_calls import INT, PTR, WORD, set_int, set_word
from support.fake_cuda.driver import FakeDriver

_TYPES = {0: np.float32, 1: np.float64, 2: np.float16, 3: np.int8, 4: np.complex64, 5: np.complex128,
          10: np.int32, 14: ml_dtypes.bfloat16}  # fmt: skip
NOT_SUPPORTED = 15
_WORKSPACE = 1 << 20
_MAGIC = 0x1A31


@dataclass
class _Described:
    """A description of a product, or of a matrix."""

    given: tuple[int, ...]
    attributes: dict[int, int] = field(default_factory=dict)


class FakeCublasLt:
    """The calls, by symbol, for `FakeDriver(libraries=...)`."""

    def __init__(self, milliseconds: float = 0.5, has_algorithms: bool = True) -> None:
        self.milliseconds, self.has_algorithms = milliseconds, has_algorithms
        self.asked: list[dict[str, Any]] = []

    def calls(self) -> dict[str, Any]:
        def made(cuda: FakeDriver, out: int, *given: int) -> None:
            set_word(out, cuda.handle(_Described(given)))

        def set_attribute(cuda: FakeDriver, of: int, which: int, data: int, size: int) -> None:
            content = ctypes.string_at(data, size)
            cuda.objects[of].attributes[which] = int.from_bytes(content, "little")

        def dropped(cuda: FakeDriver, handle: int) -> None:
            del cuda.objects[handle]

        table: dict[str, tuple[tuple[Any, ...], Callable[..., int | None]]] = {
            "GetVersion": ((), lambda cuda: 130100),
            "Create": ((PTR,), made),
            "MatmulDescCreate": ((PTR, INT, INT), made),
            "MatrixLayoutCreate": ((PTR, INT, WORD, WORD, WORD), made),
            "MatmulPreferenceCreate": ((PTR,), made),
            "MatmulAlgoGetHeuristic": ((*[PTR] * 7, INT, PTR, PTR), self._heuristic),
            "Matmul": ((*[PTR] * 14, WORD, PTR), self._multiply),
        }
        for kind in ("MatmulDesc", "MatrixLayout", "MatmulPreference"):
            table[f"{kind}SetAttribute"] = ((PTR, INT, PTR, WORD), set_attribute)
            table[f"{kind}Destroy"] = ((PTR,), dropped)
        return {f"cublasLt{name}": call for name, call in table.items()}

    def _heuristic(
        self, cuda: FakeDriver, handle: int, desc: int, a: int, b: int, c: int, d: int,
        preference: int, wanted: int, found: int, count: int,
    ) -> int | None:  # fmt: skip
        asked = {1: 32 << 20} | dict.fromkeys((5, 6, 7, 8), 16)
        assert wanted == 1 and cuda.objects[preference].attributes == asked
        if not self.has_algorithms:
            return NOT_SUPPORTED
        ctypes.memset(found, 0, 96)
        set_word(found, _MAGIC)
        set_word(found + 64, _WORKSPACE)
        set_int(count, 1)
        return None

    def _multiply(
        self, cuda: FakeDriver, handle: int, desc: int, alpha: int, a: int, a_layout: int, b: int,
        b_layout: int, beta: int, c: int, c_layout: int, d: int, d_layout: int, algorithm: int,
        workspace: int, workspace_bytes: int, stream: int,
    ) -> None:  # fmt: skip
        assert ctypes.c_uint64.from_address(algorithm).value == _MAGIC
        assert workspace_bytes == _WORKSPACE and workspace % 256 == 0 and c == d
        described: _Described = cuda.objects[desc]
        compute, scale = described.given
        attributes = dict(described.attributes)
        element = np.dtype(_TYPES[scale])
        for address, value in ((alpha, 1), (beta, 0)):
            assert np.frombuffer(ctypes.string_at(address, element.itemsize), element)[0] == value
        layouts = [(at, cuda.objects[layout]) for at, layout in ((a, a_layout), (b, b_layout), (d, d_layout))]
        self.asked.append({"compute": compute, "epilogue": attributes.get(7, 1)})
        held = cuda.objects[stream]

        def work() -> None:
            cuda.at(workspace, workspace_bytes).fill(0xEE)
            left, right, target = (_matrices(cuda, at, layout) for at, layout in layouts)
            wide = element if element.kind != "f" else np.float64
            left, right = left.astype(wide), right.astype(wide)
            left = left.swapaxes(1, 2) if attributes[3] else left
            right = right.swapaxes(1, 2) if attributes[4] else right
            total = left @ right
            if attributes.get(7) == 4:
                of = np.dtype(_TYPES[attributes[26]])
                rows = target.shape[1]
                total = total + cuda.at(attributes[8], rows * of.itemsize).view(of).astype(wide)[:, None]
            target[...] = total.astype(target.dtype)
            held.milliseconds += self.milliseconds

        held.put(work)


def _matrices(cuda: FakeDriver, address: int, layout: _Described) -> np.ndarray:
    """Batches of matrices as an array [batch, row, column] on the device's memory."""
    type_, rows, columns, leading = layout.given
    dtype = np.dtype(_TYPES[type_])
    batches, stride = layout.attributes.get(5, 1), layout.attributes.get(6, 0)
    count = (batches - 1) * stride + (columns - 1) * leading + rows
    data = cuda.at(address, count * dtype.itemsize).view(dtype)
    size = dtype.itemsize
    return np.lib.stride_tricks.as_strided(
        data, (batches, rows, columns), (stride * size, size, leading * size)
    )
