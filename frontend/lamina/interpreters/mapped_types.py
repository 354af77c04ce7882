"""Types that users make known to vmap: values that are no arrays, and what one lane of them is."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from lamina.core.trace import get_aval

if TYPE_CHECKING:
    from lamina.interpreters.batching import BatchTrace


class _MappedType(NamedTuple):
    spec_type: type
    to_elt: Callable[..., Any]
    from_elt: Callable[..., Any]


_types: dict[type, _MappedType] = {}
_iotas: dict[type, Callable[[Any], Any]] = {}


class Element(NamedTuple):
    """A result of a mapped type: for one lane, in terms of the trace's tracers."""

    value: Any
    trace: BatchTrace


def register_vmappable(
    data_type: type,
    spec_type: type,
    axis_size_type: type,
    to_elt: Callable[..., Any],
    from_elt: Callable[..., Any],
    make_iota: Callable[[Any], Any] | None,
) -> None:
    """vmap takes and gives values of data_type as wholes, where in_axes and out_axes have for them
    values of spec_type.

    to_elt     to_elt(cont, get_idx, x, spec) is one lane of x: cont(part, spec of the part) that of a
               part of it, get_idx() the lane's number.
    from_elt   from_elt(cont, axis_size, elt, spec) is the whole of all lanes: cont(axis_size, part,
               spec of the part) that of a part.
    make_iota  make_iota(axis_size) the numbers of lanes, where `axis_size` of vmap is of
               axis_size_type.
    """
    _types[data_type] = _MappedType(spec_type, to_elt, from_elt)
    if make_iota is not None:
        _iotas[axis_size_type] = make_iota


def unregister_vmappable(data_type: type) -> None:
    """Values of this type are nothing special to vmap any more."""
    _types.pop(data_type, None)


def is_vmappable(x: Any) -> bool:
    """Whether x is of a type that is registered."""
    return type(x) in _types


def is_spec(x: Any) -> bool:
    """Whether x is of the spec type of a registered type."""
    return any(type(x) is t.spec_type for t in _types.values())


def to_element(trace: BatchTrace, x: Any, spec: Any) -> Any:
    """One lane of an argument, which is an array or of a mapped type."""
    kind = _types.get(type(x))
    if kind is None:
        return trace.lanes_of(x, spec)
    part, lane = functools.partial(_part, trace), functools.partial(_lane, trace)
    return kind.to_elt(part, lane, x, spec)


def _part(trace: BatchTrace, x: Any, spec: Any) -> Any:
    if isinstance(spec, int) and not is_vmappable(x):
        spec %= get_aval(x).ndim
    return to_element(trace, x, spec)


def _lane(trace: BatchTrace) -> Any:
    from lamina import lax

    size = trace.axis.size
    make = _iotas.get(type(size))
    return trace.lanes_of(make(size) if make else lax.iota("int32", size), 0)


def from_element(element: Element, axis_size: Any, spec: Any, place: Callable[..., Any]) -> Any:
    """All lanes of a result of a mapped type. `place(x, dim, spec)` is a batch of arrays with its
    dimension where it shall be."""

    def cont(axis_size: Any, part: Any, spec: Any) -> Any:
        kind = _types.get(type(part))
        if kind is not None:
            return kind.from_elt(cont, axis_size, part, spec)
        return place(*element.trace.unpack(part), spec)

    return _types[type(element.value)].from_elt(cont, axis_size, element.value, spec)
