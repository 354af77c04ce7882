"""Spaces of memory as bytes, each byte with what is known of it."""

from __future__ import annotations

import numpy as np

from support.ptx.errors import PtxError

NONE, RAW, SET, PENDING, PADDING = 0, 1, 2, 3, 4
"""A byte is in no variable; was never written; was written; a copy to it is under way; only fills up 16 bytes."""
_WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_ALL_SET = {n: int.from_bytes(bytes([SET]) * n, "little") for n in (1, 2, 4, 8)}
_POISON = 0xAB


class Space:
    """Bytes in rows, one row for each block or thread that has them for itself; addresses count in the
    row from `base`."""

    def __init__(self, name: str, base: int, size: int, rows: int = 1, strict: bool = True) -> None:
        """`strict`: to read what nobody wrote is an error; else it is any number."""
        self.name, self.base = name, base
        self.row = -(-size // 16) * 16
        self.data = np.full(self.row * rows, _POISON, np.uint8)
        self.state = np.zeros(self.row * rows, np.uint8)
        self.changes, self.strict = 0, strict

    def declare(self, at: int, size: int, data: bytes | None = None) -> None:
        """A variable of every row."""
        state, bytes_ = self.state.reshape(-1, self.row), self.data.reshape(-1, self.row)
        state[:, at : at + size] = RAW
        if data is not None:
            state[:, at : at + size] = SET
            bytes_[:, at : at + size] = np.frombuffer(data, np.uint8)

    def pad(self, at: int) -> None:
        """What is between a variable's end and the next multiple of 16 may be read: LLVM widens loads up to
        there, which no page of a GPU's memory ends before. What comes of it is any number."""
        rest = self.state[at : -(-at // 16) * 16]
        rest[rest == NONE] = PADDING

    def place(
        self, address: np.ndarray, rows: np.ndarray | int, size: int, what: object
    ) -> np.ndarray:
        """Where in `data` accesses of `size` bytes are, which must be aligned and inside."""
        at = address.astype(np.int64) - self.base
        if at.size == 0:
            return at
        if int(at.min()) < 0 or int(at.max()) > self.row - size:
            wrong = at[(at < 0) | (at > self.row - size)][0]
            raise PtxError(
                f"{what}: {size} bytes at {int(wrong) + self.base:#x} are outside {self.name} memory"
            )
        align = 16 if size > 16 else size
        if (at & (align - 1)).any():
            wrong = address[(at & (align - 1)) != 0][0]
            raise PtxError(f"{what}: {wrong:#x} in {self.name} memory is no multiple of {align}")
        return at + np.multiply(rows, self.row)

    def read(self, place: np.ndarray, size: int, what: object) -> np.ndarray:
        """Words of `size` bytes, the wide ones as rows of 8 bytes."""
        width = min(size, 8)
        index = place // width
        if size > 8:
            index = index[:, None] + np.arange(size // 8)
        states = self.state.view(_WORDS[width])[index]
        if (states != _ALL_SET[width]).any():
            self._explain(place, size, what)
        return self.data.view(_WORDS[width])[index]

    def write(self, place: np.ndarray, size: int, words: np.ndarray, what: object) -> None:
        """The last of several writers of a place wins."""
        width = min(size, 8)
        index = place // width
        if size > 8:
            index = index[:, None] + np.arange(size // 8)
        states = self.state.view(np.uint8).reshape(-1, width)[index]
        if ((states == NONE) | (states >= PENDING)).any():
            self._explain(place, size, what, writing=True)
        self.data.view(_WORDS[width])[index] = words
        self.state.view(_WORDS[width])[index] = _ALL_SET[width]
        self.changes += 1

    def _explain(self, place: np.ndarray, size: int, what: object, writing: bool = False) -> None:
        for one in place:
            states = self.state[one : one + size]
            if (states == PENDING).any():
                raise PtxError(
                    f"{what}: touches {self.name} memory at {one % self.row + self.base:#x} that a copy is writing"
                )
            if (states == NONE).any():
                raise PtxError(
                    f"{what}: {size} bytes at {one % self.row + self.base:#x} are in no variable of {self.name} memory"
                )
            if writing and (states == PADDING).any():
                raise PtxError(f"{what}: writes {self.name} memory past the end of a variable")
            if not writing and self.strict and (states == RAW).any():
                raise PtxError(
                    f"{what}: reads {self.name} memory at {one % self.row + self.base:#x} that nobody wrote"
                )
