"""Equal programs as one object, so that what is compiled for one serves the other.

Each call of scan or cond outside of jit traces its body anew; the programs are equal and distinct.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from lamina.core.jaxpr import ClosedJaxpr
from lamina.core.jaxpr_key import jaxpr_key
from lamina.forks import new_lock

_MAX_PROGRAMS = 1024
_lock = new_lock()
_known: OrderedDict[Any, ClosedJaxpr] = OrderedDict()


def interned(params: dict[str, Any]) -> dict[str, Any]:
    """The parameters, with each jaxpr replaced by the first equal one of those lately met."""
    return {name: _interned(value) for name, value in params.items()}


def _interned(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_interned, value))
    if not isinstance(value, ClosedJaxpr) or value.consts:
        return value
    text = jaxpr_key(value.jaxpr)
    if text is None:
        return value
    # The text does not tell weak types apart, which results carry.
    key = (text, *value.in_avals, *value.out_avals)
    with _lock:
        found = _known.setdefault(key, value)
        _known.move_to_end(key)
        while len(_known) > _MAX_PROGRAMS:
            _known.popitem(last=False)
    return found
