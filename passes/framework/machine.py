"""What passes may know of the machine that code is for: how large its caches are, and what work takes there.

A module says so itself, as `lamina.machine`, a dictionary with the fields of `Machine` that differ from the
reference's; a module without one is for that, `Machine()`. `backends/machine` finds out what the machine at hand has.
`lamina-opt --machine NAME` writes the dictionary of a known one. (Nothing here needs MLIR: a process that finds its
programs in the store does without it. How modules say it is in machine_attribute.py.)
"""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lamina.records import Record

SIZES = (64, 128, 256, 512, 1024)
"""The rows, columns and terms of the products whose rates a machine has."""
_CACHED_SIZE = SIZES[2]
_ELEMENTS = 5  # of a vector: more of f32, fewer of f64


class Machine(Record):
    """Facts about a processor, then rates of one of its cores, rounded so that measuring again changes no code.

    What operations take weighs one way to do something against another, on a core of some 4 GHz, and predicts nothing.

    What is here may decide how loops are cut, what is kept in caches, what runs as tasks and which library is called,
    never how a reduction is split into partial sums: results are the same bits whatever the caches and threads.
    """

    l1_bytes: int = 48 << 10
    """Of the first data cache."""
    l2_bytes: int = 1 << 20
    """Of a core's second cache."""
    l3_bytes: int = 32 << 20
    """Of the last cache, which cores share. How many cores there are is no part of this: the runtime divides the
    work as it runs."""

    l1_ways: int = 8
    """Lines of the first cache that may be any multiple of a page apart."""
    line_bytes: int = 64
    """Of a line in caches."""
    page_bytes: int = 4096
    """Of the smallest page, which is as far as a processor fetches ahead by itself."""
    near_pages: int = 96
    """Pages whose addresses a core has at hand (in the first level of its TLB)."""
    ahead_bytes: int = 2048
    """How far ahead of what is read next to fetch; half and twice as far make no difference."""
    ahead_rows: int = 8
    """The same where each row is on a page of its own: more rows would share few places of the first cache."""
    ahead_terms: int = 12
    """The same for rows of a factor of a product, while those of the other stay in registers."""

    task_ns: int = 10_000
    """Work that is worth a task of its own."""
    parallel_ns: int = 30_000
    """Work that is worth handing to other threads at all."""

    ops_in_flight: int = 8
    """Operations on vectors that are computed at a time where none waits for another: those that begin in a cycle,
    times the cycles that one takes."""
    ops_ahead: int = 100
    """Operations that a processor begins before those in front of them are done."""
    op_ps: int = 150
    """Picoseconds of an operation on a vector of 32 bytes, or on one element."""
    function_ps: int = 3_000
    """... of an elementary function of such a vector."""
    access_ps: int = 250
    """... of reading or writing one, where its elements are neighbours."""
    apart_ps: int = 600
    """... of reading or writing an element that is no neighbour of the last."""
    scalar_ps: int = 200
    """... of one of the operations on single numbers that libraries do."""
    loop_ps: int = 1_500
    """... of an innermost loop beyond its iterations."""
    lanes_ps: int = 3_000
    """... of adding up the lanes of a vector."""
    l2_line_ps: int = 1_200
    """... of a line that comes from the second cache."""
    l3_line_ps: int = 3_500
    """... of one from the third."""
    memory_line_ps: int = 7_000
    """... of one from memory."""
    not_ahead: int = 2
    """As many times as long takes a line that is not next to the one before."""

    pack_bytes_per_us: int = 10_000
    """How fast the factors of products are packed, beyond what is in the rates of square ones."""
    stream_bytes_per_us: int = 40_000
    """How fast results that are in no cache are written and read again."""
    cached_bytes_per_us: int = 120_000
    """... of those that the second cache holds."""
    transposed_percent: int = 140
    """Of its time, what code for the shape of a product takes where the left factor is transposed."""
    message_bytes: int = 64 << 10
    """Of a message between devices beyond which its length counts for more than that there is one."""
    vector_dots: int = 500
    """GFLOP/s of products of bytes and of bf16 by instructions on vectors that add several products."""
    tile_dots: int = 2_500
    """... by instructions on tiles (AMX)."""
    f32_code: tuple[int, ...] = (120, 160, 170, 158, 145)
    """GFLOP/s of code that is generated for the shape of a product, at `SIZES`."""
    f32_shared: tuple[int, ...] = (112, 138, 158, 155, 140)
    """... of the packed product that all products of a type share (passes/kernels/cpu/gemm/product_code.py)."""
    f32_library: tuple[int, ...] = (57, 110, 148, 140, 160)
    """... of OpenBLAS."""
    f64_code: tuple[int, ...] = (60, 80, 98, 98, 106)
    f64_shared: tuple[int, ...] = (54, 72, 94, 98, 106)
    f64_library: tuple[int, ...] = (28, 55, 74, 87, 96)

    @property
    def alone(self) -> Machine:
        """The same machine, to code that runs in a task already: nothing is worth handing to other threads."""
        return replace(self, parallel_ns=1 << 62)

    def rate(self, element: str, by: str, size: float) -> float:
        """Operations per ns of products of f32 or f64 of so many rows, columns and terms by "code", "shared" or
        "library": between two sizes on a line over the size's logarithm."""
        rates = getattr(self, f"{element}_{by}")
        at = math.log2(min(max(size, SIZES[0]), SIZES[-1]) / SIZES[0])
        low = min(int(at), len(rates) - 2)
        return float(rates[low] + (at - low) * (rates[low + 1] - rates[low]))

    def grain(self, ps: int) -> int:
        """How many of what takes so many picoseconds are worth a task, one at least."""
        return max(1, self.task_ns * 1000 // ps)

    def multiply_add_ns(self, element: str) -> float:
        """Nanoseconds of a term of a product of f32 or f64 whose factors are in the caches."""
        return 2 / self.rate(element, "code", _CACHED_SIZE)

    @staticmethod
    def on_elements(ps: float) -> float:
        """Nanoseconds of an element where a vector of 32 bytes takes so many picoseconds, whether f32 or f64."""
        return ps / _ELEMENTS / 1000

    @functools.cached_property
    def text(self) -> str:
        """The dictionary that modules have, as MLIR writes it."""
        reference = _fields(REFERENCE)
        entries = [f"{name} = {_text_of(value)}" for name, value in _fields(self).items() if value != reference[name]]
        return f'{{{", ".join([*entries, KEY])} = "{self.key}"}}'

    @staticmethod
    def described(fields: Mapping[str, Any]) -> Machine:
        """The machine of fields as JSON has them; those that are not there are the reference machine's. Raises
        ValueError for what no machine has."""
        defaults = _fields(REFERENCE)
        values: dict[str, Any] = {}
        for name, value in fields.items():
            if name not in defaults:
                raise ValueError(f"a machine has no {name}; it has {', '.join(defaults)}")
            is_rates = isinstance(defaults[name], tuple)
            numbers = value if is_rates and isinstance(value, (list, tuple)) else [value]
            are_numbers = all(type(number) is int and number > 0 for number in numbers)
            if not are_numbers or len(numbers) != (len(SIZES) if is_rates else 1):
                expected = f"numbers above 0 for the sizes {SIZES}" if is_rates else "a number above 0"
                raise ValueError(f"{name} of a machine is {expected}, got {value!r}")
            values[name] = tuple(numbers) if is_rates else numbers[0]
        return Machine(**values)

    def describe(self) -> dict[str, int | list[int]]:
        """The fields as JSON has them."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in _fields(self).items()}

    @functools.cached_property
    def key(self) -> str:
        """Digits that name all that is here; by them a dictionary that was read before is known again."""
        return hashlib.blake2b(repr(self).encode(), digest_size=6).hexdigest()


REFERENCE = Machine()
GPU_LAUNCH_NS = 4_000
"""Of a kernel's start and end on GPUs; what else is known of these is in gpu/machine.py."""
KEY = "key"
"""The entry of the dictionary that has `Machine.key`."""


def _text_of(value: int | tuple[int, ...]) -> str:
    return f"array<i64: {', '.join(map(str, value))}>" if isinstance(value, tuple) else f"{value} : i64"


def _fields(machine: Machine) -> dict[str, int | tuple[int, ...]]:
    return {name: getattr(machine, name) for name in Machine.__annotations__}
