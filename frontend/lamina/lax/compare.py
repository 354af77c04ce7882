"""Comparisons, elementwise: eq ne lt le gt ge. NaN is unequal to everything."""

from __future__ import annotations

from typing import Any

import numpy as np

from lamina.core import Primitive
from lamina.lax import hlo
from lamina.lax.checks import ANY_OR_KEY, Accepted, accepted
from lamina.lax.elementwise_rules import elementwise, elementwise_lowering


def eq(x: Any, y: Any) -> Any:
    """x == y, elementwise."""
    return eq_p.bind(x, y)


def ne(x: Any, y: Any) -> Any:
    """x != y, elementwise."""
    return ne_p.bind(x, y)


def lt(x: Any, y: Any) -> Any:
    """x < y, elementwise; complex numbers have no order."""
    return lt_p.bind(x, y)


def le(x: Any, y: Any) -> Any:
    """x <= y, elementwise; complex numbers have no order."""
    return le_p.bind(x, y)


def gt(x: Any, y: Any) -> Any:
    """x > y, elementwise; complex numbers have no order."""
    return gt_p.bind(x, y)


def ge(x: Any, y: Any) -> Any:
    """x >= y, elementwise; complex numbers have no order."""
    return ge_p.bind(x, y)


def _comparison(name: str, accept: Accepted) -> Primitive:
    lowering = elementwise_lowering(lambda x, y: hlo.compare(x, y, name.upper()))
    return elementwise(name, lowering, accept, accept, result=lambda _: np.dtype(bool))


ORDERED = accepted("integer", "bool", "floating")

eq_p: Primitive = _comparison("eq", ANY_OR_KEY)
ne_p: Primitive = _comparison("ne", ANY_OR_KEY)
lt_p: Primitive = _comparison("lt", ORDERED)
le_p: Primitive = _comparison("le", ORDERED)
gt_p: Primitive = _comparison("gt", ORDERED)
ge_p: Primitive = _comparison("ge", ORDERED)
