"""Which ops are one routine of LAPACK for each matrix of a batch, and its sizes.

Custom calls of `lamina.lapack.<routine>` are by name; `stablehlo.cholesky` and `triangular_solve`
are where the matrices are large enough for a call to pay.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from lamina.dialects.attributes import flag
from lamina.dialects.vendors import ir
from lamina.passes.stablehlo.analysis.lapack_types import MOST, problem_of_types
from lamina.records import Record

LETTERS = {"f32": "s", "f64": "d", "complex<f32>": "c", "complex<f64>": "z", "i32": "i"}
"""How LAPACK's names tell element types."""

TARGET = "lamina.lapack."
"""What the targets of custom calls begin with; the routine's name for real f64 follows, without
its letter."""

LARGE = 16  # rounding
"""The least size of a triangular system or of a Cholesky factor that is worth a call."""


_IN_PLACE = {"getrf": (0, 0), "potrf": (0, 0), "trsm": (1, 0)}


class Lapack(Record):
    """A routine applied to each matrix of a batch."""

    routine: str
    letter: str
    batch: int
    sizes: tuple[int, ...]
    """What the kernel's comment in runtime/src/lapack_*.cpp says."""
    work: int
    """Arithmetic operations for one matrix, roughly."""

    @classmethod
    def of(cls, op: ir.Operation) -> Lapack | None:
        """What an op is as a routine; None if it is none, or small enough to do without."""
        if op.name == "stablehlo.custom_call":
            routine = routine_of(op)
        else:
            routine = _routine_of_solver(op)
        if routine is None:
            return None
        row = _ROUTINES[routine]
        of = op.operands[0].type
        letter = LETTERS.get(str(of.element_type))
        if letter is None:
            return None
        batch = prod(list(of.shape)[: len(of.shape) - _rank(row, op)])
        sizes = tuple(int(size) for size in row.sizes(_Call(op)))
        return cls(routine, letter, batch, sizes, row.work(sizes))

    @property
    def in_place(self) -> tuple[int, int] | None:
        """The operand that the runtime's loop lets a result be written over, and that result."""
        return _IN_PLACE.get(self.routine)

    @property
    def name(self) -> str:
        """The library's name as the fused form records it."""
        own = self.routine in OWN
        return f"lamina.{self.routine}" if own else f"openblas.{self.routine}"


def routine_of(custom_call: ir.Operation) -> str | None:
    """The routine that a custom call names; None if we have none of that name."""
    target = ir.StringAttr(custom_call.attributes["call_target_name"]).value
    routine = target.removeprefix(TARGET)
    known = target.startswith(TARGET) and routine in _ROUTINES
    return routine if known and _ROUTINES[routine].types is not None else None


def problem_of_call(custom_call: ir.Operation, routine: str) -> str | None:
    """Why a custom call of a routine is none that its loop could do, which trusts its sizes; None where
    it is one."""
    row = _ROUTINES[routine]
    assert row.types is not None
    config = custom_call.attributes["backend_config"] if "backend_config" in custom_call.attributes else None
    if config is not None and not isinstance(config, ir.DictAttr):
        return f"has {config} for options, which are a dictionary of booleans"
    for option in config or ():
        if not isinstance(option.attr, ir.BoolAttr):
            return f"has the option {option.name} = {option.attr}, which must be a boolean"
    return problem_of_types(custom_call, row.types(_Call(custom_call)), row.rising)


def _rank(row: _Routine, op: ir.Operation) -> int:
    """Dimensions of one matrix of the first operand."""
    if row.types is None:
        return 2
    first, *_ = row.types(_Call(op)).split(" -> ")[0].split(",")
    return len(first.split(":")[0].split())


def _routine_of_solver(op: ir.Operation) -> str | None:
    if op.name not in ("stablehlo.cholesky", "stablehlo.triangular_solve"):
        return None
    of = op.operands[0].type
    size = of.shape[len(of.shape) - 1]
    if max(op.results[0].type.shape) > MOST:
        return None
    if size < LARGE or 0 in op.results[0].type.shape or str(of.element_type) not in LETTERS:
        return None
    return "potrf" if op.name == "stablehlo.cholesky" else "trsm"


class _Call(Record):
    """What sizes are read from."""

    op: ir.Operation

    def matrix(self, number: int) -> list[int]:
        """The last two sizes of an operand."""
        return list(self.op.operands[number].type.shape)[-2:]

    def last(self, number: int) -> int:
        """The last size of an operand."""
        return list(self.op.operands[number].type.shape)[-1]

    def last_of_result(self, number: int = 0) -> int:
        """The last size of a result."""
        return list(self.op.results[number].type.shape)[-1]

    def flag(self, name: str) -> bool:
        """An option."""
        return flag(self.op, name)


def _trsm_sizes(call: _Call) -> list[int]:
    how = str(call.op.attributes["transpose_a"])
    adjoint = 0 if "NO_TRANSPOSE" in how else 2 if "ADJOINT" in how else 1
    flags = [call.flag("left_side"), call.flag("lower"), adjoint, call.flag("unit_diagonal")]
    return [*call.matrix(1), *flags]


class _Routine(Record):
    sizes: Callable[[_Call], list[int]]
    work: Callable[[tuple[int, ...]], int]
    """Arithmetic operations, from the sizes."""
    types: Callable[[_Call], str] | None = None
    """Of a custom call, as lapack_types.py writes them; None where ops of their own stand for it."""
    rising: str = ""
    """Sizes of which each is the next one's at most."""


def _always(types: str) -> Callable[[_Call], str]:
    return lambda call: types


def _thin(factor: int) -> Callable[[tuple[int, ...]], int]:
    """factor * m * n * min(m, n), from sizes that begin with m and n."""
    return lambda sizes: factor * sizes[0] * sizes[1] * min(sizes[0], sizes[1])


def _cubed(factor: int) -> Callable[[tuple[int, ...]], int]:
    return lambda sizes: factor * sizes[0] ** 3


def _square(*flags: str) -> Callable[[_Call], list[int]]:
    return lambda call: [call.last(0), *(call.flag(name) for name in flags)]


OWN = frozenset(("cholesky_update", "permutation"))
"""Routines that LAPACK does not have: the runtime's own."""

def _gesdd_types(call: _Call) -> str:
    if not call.flag("vectors"):
        return "m n -> k:real"
    return "m n -> k:real, m m, n n" if call.flag("full") else "m n -> k:real, m k, k n"


def _geev_types(call: _Call) -> str:
    return "n n -> n:complex" + ", n n:complex" * (call.flag("left") + call.flag("right"))


_ROUTINES = {
    "getrf": _Routine(lambda c: c.matrix(0), _thin(1), _always("m n -> m n, k:int, m:int")),
    "permutation": _Routine(
        lambda c: [c.last(0), c.last_of_result()], lambda s: 4 * s[1], _always("p:int -> r:int"), "p r"
    ),
    "potrf": _Routine(_square("lower"), lambda s: s[0] ** 3 // 3),
    "trsm": _Routine(_trsm_sizes, lambda s: s[0] * s[1] * (s[0] if s[2] else s[1])),
    "geqrf": _Routine(lambda c: c.matrix(0), _thin(2), _always("m n -> m n, k")),
    "geqp3": _Routine(lambda c: c.matrix(0), _thin(2), _always("m n, n:int -> m n, n:int, k")),
    "orgqr": _Routine(
        lambda c: [*c.matrix(0), c.last(1)], _thin(2), _always("m n, t -> m n"), "t n m"
    ),
    "ormqr": _Routine(
        lambda c: [*c.matrix(0), *c.matrix(2), c.flag("left"), c.flag("transpose")],
        lambda s: 4 * s[1] * s[2] * s[3],
        lambda c: "r t, t, r n -> r n" if c.flag("left") else "r t, t, m r -> m r",
        "t r",
    ),
    "gehrd": _Routine(_square(), _cubed(4), _always("n n -> n n, n-1")),
    "sytrd": _Routine(
        _square("lower"), _cubed(2), _always("n n -> n n, n:real, n-1:real, n-1")
    ),
    "syevd": _Routine(_square("lower"), _cubed(9), _always("n n -> n n, n:real")),
    "gesdd": _Routine(
        lambda c: [*c.matrix(0), c.flag("full"), c.flag("vectors")], _thin(20), _gesdd_types
    ),
    "gesvd": _Routine(
        lambda c: [*c.matrix(0), c.flag("full"), c.flag("vectors")], _thin(20), _gesdd_types
    ),
    "geev": _Routine(_square("left", "right"), _cubed(25), _geev_types),
    "gees": _Routine(
        _square("vectors"), _cubed(25), lambda c: "n n -> n n" + ", n n" * c.flag("vectors")
    ),
    "gtsv": _Routine(
        lambda c: [*c.matrix(3)], lambda s: 8 * s[0] * s[1], _always("n, n, n, n r -> n r")
    ),
    "cholesky_update": _Routine(_square(), lambda s: 4 * s[0] ** 2, _always("n n, n -> n n")),
}  # fmt: skip
