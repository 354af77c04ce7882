"""Replace LAPACK's routines under the names that JAX's CPU rules call them by.

    custom_call @lapack_sgeqrf_ffi(%a)                 ->   custom_call @lamina.lapack.geqrf(%a)
    custom_call @lapack_spotrf_ffi(%a) {uplo = 76}     ->   cholesky %a, lower = true
    custom_call @lapack_strsm_ffi(%a, %b) {...}        ->   triangular_solve %a, %b

Layouts of operands and results say how XLA lays them out, and are left aside. What our routines give
where there is no answer is NaN, so `info` is zero. Refuses options that JAX does not use, and reads of
what LAPACK leaves in its workspace.

example: test/passes/stablehlo/legalize/adopt_lapack.mlir
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np

from lamina.dialects import stablehlo as hlo
from lamina.dialects.types import dtype_of, shape_of
from lamina.dialects.vendors import ir
from lamina.passes.framework.base import CompileError, Pass
from lamina.passes.framework.find import find_ops

_TARGET = re.compile(r"lapack_([sdcz])(\w+?)(?:_ffi)?")
_REAL_NAMES = {"ungqr": "orgqr", "unmqr": "ormqr", "hetrd": "sytrd", "heevd": "syevd"}
_Results = list["ir.Value | None"]
"""None: of what is in a workspace, which nobody may read."""


class AdoptLapack(Pass):
    """See the module's docstring."""

    only_with = frozenset(("stablehlo.custom_call",))

    def run(self, module: ir.Module) -> None:
        for op in find_ops(module, "stablehlo.custom_call"):
            rule = _rule(op.attributes["call_target_name"].value)
            if rule is None:
                continue
            with ir.InsertionPoint(op), op.location:
                try:
                    results = rule(_Call(op))
                except (IndexError, KeyError):
                    results = None
            if results is None or len(results) != len(op.results):
                raise CompileError.at(op, "does not take and give the arrays that the routine does")
            for old, new in zip(op.results, results, strict=True):
                if new is not None:
                    old.replace_all_uses_with(new)
                elif any(True for _ in old.uses):
                    raise CompileError.at(op, f"result {old.result_number} is workspace of LAPACK's")
            op.erase()
            self.count("routines")


def is_adopted(target: str) -> bool:
    """Whether the pass replaces custom calls of this name."""
    return _rule(target) is not None


def _rule(target: str) -> Callable[[_Call], _Results] | None:
    found = _TARGET.fullmatch(target)
    return _RULES.get(_REAL_NAMES.get(found[2], found[2])) if found else None


class _Call:
    """A custom call of a routine: its operands, its options, and what it is to give."""

    def __init__(self, op: ir.Operation) -> None:
        self.op = op
        self.operands = list(op.operands)
        attributes = op.attributes
        config = next((n for n in ("mhlo.backend_config", "backend_config") if n in attributes), None)
        is_typed = config is not None and isinstance(attributes[config], ir.DictAttr)
        self._config = ir.DictAttr(attributes[config]) if is_typed else {}

    def number(self, name: str) -> int:
        """An option that is a number, or a flag."""
        if name not in self._config:
            raise CompileError.at(self.op, f"has no option {name!r}")
        given = self._config[name]
        of = ir.BoolAttr if isinstance(given, ir.BoolAttr) else ir.IntegerAttr
        return int(of(given).value)

    def letter(self, name: str) -> str:
        """An option that is a letter of LAPACK's."""
        return chr(self.number(name))

    def shape(self, result: int) -> list[int]:
        return list(shape_of(self.op.results[result].type))

    def dtype(self, result: int) -> np.dtype:
        return dtype_of(self.op.results[result].type)

    def zeros(self, result: int) -> ir.Value:
        return hlo.full(0, self.shape(result), self.dtype(result))

    def lapack(
        self, routine: str, operands: Sequence[ir.Value], results: Sequence[int], **options: bool
    ) -> list[ir.Value]:
        """Our routine's results, which have the types of these ones of the call's."""
        of = [_Of(self.shape(i), self.dtype(i)) for i in results]
        return self.routine(routine, operands, of, **options)

    def routine(
        self, routine: str, operands: Sequence[ir.Value], results: Sequence[_Of], **options: bool
    ) -> list[ir.Value]:
        """The same, of these types; zeros where there is nothing to compute."""
        if all(0 in of.shape for of in results):
            return [hlo.full(0, of.shape, of.dtype) for of in results]
        return hlo.lapack(routine, operands, results, **options)


class _Of:
    """The type of a result."""

    def __init__(self, shape: Sequence[int], dtype: np.dtype) -> None:
        self.shape, self.dtype = list(shape), dtype


def _potrf(call: _Call) -> _Results:
    lower = call.letter("uplo") == "L"
    return [hlo.cholesky(call.operands[0], lower=lower), call.zeros(1)]


def _trsm(call: _Call) -> _Results:
    a, b, *scale = call.operands
    adjoint = {"N": "NO_TRANSPOSE", "T": "TRANSPOSE", "C": "ADJOINT"}[call.letter("trans_x")]
    if scale:
        b = hlo.multiply(b, hlo.broadcast_in_dim(scale[0], call.shape(0), []))
    return [
        hlo.triangular_solve(
            a, b, left_side=call.letter("side") == "L", lower=call.letter("uplo") == "L",
            unit_diagonal=call.letter("diag") == "U", transpose_a=adjoint,
        )
    ]  # fmt: skip


def _getrf(call: _Call) -> _Results:
    rows = _Of([*call.shape(1)[:-1], call.shape(0)[-2]], call.dtype(1))
    types = [_Of(call.shape(i), call.dtype(i)) for i in (0, 1)]
    lu, pivots, _ = call.routine("getrf", call.operands, [*types, rows])
    counted = hlo.add(pivots, hlo.full(1, call.shape(1), call.dtype(1)))
    return [lu, counted, call.zeros(2)]


def _geqrf(call: _Call) -> _Results:
    return list(call.lapack("geqrf", call.operands, (0, 1)))


def _geqp3(call: _Call) -> _Results:
    return list(call.lapack("geqp3", call.operands, (0, 1, 2)))


def _orgqr(call: _Call) -> _Results:
    if 0 in shape_of(call.operands[1].type):
        rows, columns = (hlo.iota(call.shape(0), np.dtype(np.int32), len(call.shape(0)) - i) for i in (2, 1))
        return [hlo.convert(hlo.compare(rows, columns, "EQ"), call.dtype(0))]
    return list(call.lapack("orgqr", call.operands, (0,)))


def _ormqr(call: _Call) -> _Results:
    if 0 in shape_of(call.operands[1].type):
        return [call.operands[2]]
    how = {name: bool(call.number(name)) for name in ("left", "transpose")}
    return list(call.lapack("ormqr", call.operands, (0,), **how))


def _gehrd(call: _Call) -> _Results:
    if (call.number("low"), call.number("high")) != (1, call.shape(0)[-1]):
        raise CompileError.at(call.op, "reduces a part of a matrix; only whole ones are supported")
    return [*call.lapack("gehrd", call.operands, (0, 1)), call.zeros(2)]


def _sytrd(call: _Call) -> _Results:
    lower = call.letter("uplo") == "L"
    return [*call.lapack("sytrd", call.operands, (0, 1, 2, 3), lower=lower), call.zeros(4)]


def _syevd(call: _Call) -> _Results:
    lower = call.letter("uplo") == "L"
    return [*call.lapack("syevd", call.operands, (0, 1), lower=lower), call.zeros(2)]


def _svd(routine: str) -> Callable[[_Call], _Results]:
    def rule(call: _Call) -> _Results:
        mode = call.letter("mode")
        if mode not in "ASN":
            raise CompileError.at(call.op, f"writes vectors over its operand (mode {mode!r})")
        vectors = mode != "N"
        made = call.lapack(
            routine, call.operands, (1, 2, 3) if vectors else (1,), full=mode == "A", vectors=vectors
        )
        return [None, *made, *([] if vectors else [None, None]), call.zeros(4)]

    return rule


def _geev(call: _Call) -> _Results:
    left, right = (call.letter(f"compute_{side}") == "V" for side in ("left", "right"))
    is_real = call.dtype(0).kind == "f"
    first = 2 if is_real else 1  # result: of the left eigenvectors
    values = _Of(call.shape(0), call.dtype(first))
    vectors = [_Of(call.shape(first), call.dtype(first))] * (left + right)
    w, *given = call.routine("geev", call.operands, [values, *vectors], left=left, right=right)
    found: _Results = [hlo.real(w), hlo.imag(w)] if is_real else [w]
    found += [given.pop(0) if asked else None for asked in (left, right)]
    return [*found, call.zeros(first + 2)]


def _gees(call: _Call) -> _Results:
    if call.letter("sort") != "N":
        raise CompileError.at(call.op, "sorts eigenvalues, which our Schur form does not")
    vectors = call.letter("mode") == "V"
    made = call.lapack("gees", call.operands, (0, 1) if vectors else (0,), vectors=vectors)
    last = len(call.op.results) - 1
    values: _Results = [None] * (last - 3)
    return [*made, *([] if vectors else [None]), *values, call.zeros(last - 1), call.zeros(last)]


def _gtsv(call: _Call) -> _Results:
    (x,) = call.lapack("gtsv", call.operands, (3,))
    return [None, None, None, x, call.zeros(4)]


_RULES: dict[str, Callable[[_Call], _Results]] = {
    "potrf": _potrf,
    "trsm": _trsm,
    "getrf": _getrf,
    "geqrf": _geqrf,
    "geqp3": _geqp3,
    "orgqr": _orgqr,
    "ormqr": _ormqr,
    "gehrd": _gehrd,
    "sytrd": _sytrd,
    "syevd": _syevd,
    "gesdd": _svd("gesdd"),
    "gesvd": _svd("gesvd"),
    "geev": _geev,
    "gees": _gees,
    "gtsv": _gtsv,
}
