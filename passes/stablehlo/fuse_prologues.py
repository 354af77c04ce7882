"""Which element-wise ops `stablehlo-fuse` computes in the kernel of the product that alone reads them.

A product that is blocked for a kernel of its own can make a factor panel by panel, in the cache of the
task that multiplies with it (`linalg-multiply-panels`). That pays where each element is made once, in
tasks enough, and what makes it would not rather follow a contraction or a reduction in a kernel of theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from lamina.dialects.types import element_name
from lamina.passes.stablehlo.fuse_graph import Group, Place, Places
from lamina.passes.stablehlo.fuse_ops import VIEWS, Seen
from lamina.passes.stablehlo.gemm import Gemm

_FACTORS = (Place("left factor"), Place("right factor"))
_DOMAINS = frozenset(factor.domain for factor in _FACTORS)
_LEAST_PRODUCTS = 1 << 18
_MOST_OPS = 16
_LEAST_ROWS, _LEAST_COLUMNS, _FEW_TASKS = 32, 64, 4
_MOST_ROWS = 1024  # that a task may keep sums of
_MOST_WALKED = 32


def place_of_factor(op: Seen, number: int) -> Place | None:
    """Where an operand of a product is made in its kernel; None if it is read from memory."""
    if op.library:
        return None
    types = [value.type for value in (*op.operands, *op.results)]
    if {element_name(of) for of in types} not in ({"f32"}, {"f64"}):
        return None
    gemm = Gemm.of(op.op)
    if gemm is None or gemm.m * gemm.n * gemm.k * prod(gemm.batch) < _LEAST_PRODUCTS:
        return None
    many = prod(gemm.batch) >= _FEW_TASKS
    if number == 0:
        pays = gemm.m >= _LEAST_ROWS or (many and gemm.m > 1)
    else:
        pays = not gemm.b.transposed and 1 < gemm.m <= _MOST_ROWS and (gemm.n >= _LEAST_COLUMNS or many)
    return _FACTORS[number] if pays and gemm.n >= 16 else None


def refusal_of_prologue(op: Seen, group: Group, places: Places, block: Sequence[Seen]) -> str | None:
    """Why a group does not compute an op to make a factor; None if it does, or that isn't what it is for."""
    factors = {factor_of(place) for place in places} - {None}
    if not factors:
        return None
    if len(places) > 1:
        return "a factor that is needed at other places, too"
    if not (op.elementwise or op.name == "stablehlo.broadcast_in_dim"):
        return "not made with a factor"
    (factor,) = factors
    made = [member for member in group.members if factor_of(member[1]) == factor]
    if len(made) >= _MOST_OPS:
        return "too much makes a factor"
    if not made and _follows_another(op, block):
        return "follows what is another kernel's"
    return None


def factor_of(place: Place) -> str | None:
    """Which factor an op at a place makes, if any."""
    return place.domain if place.domain in _DOMAINS else None


def _follows_another(op: Seen, block: Sequence[Seen]) -> bool:
    """Whether what makes an op begins with something that a kernel follows up element by element."""
    work, seen = [op], 0
    while work:
        for value in work.pop().operands:
            maker = None if value.maker is None else block[value.maker]
            if maker is None or maker.library:
                continue
            if not (maker.joins_loops or maker.name in VIEWS or maker.stays_in_main):
                return True
            work.append(maker)
            seen += 1
        if seen > _MOST_WALKED:
            return True
    return False
