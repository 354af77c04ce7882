"""What vjp gives: a function of cotangents that is a tree of the values it keeps; and what says where
gradients go (`lamina.ad`)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from lamina.core import tree
from lamina.core.library import library
from lamina.core.refs import Ref
from lamina.core.trace import get_aval
from lamina.core.tracebacks import api_boundary
from lamina.core.tree_differences import tree_differences
from lamina.interpreters.backward_logs import collected
from lamina.linear_maps import LinearMap
from lamina.records import Record
from lamina.tree_util import register_pytree_node
from lamina.tuple_trees import mirrored


class GradValue(Record):
    """Among the arguments of `with_refs`: the gradient by this argument is given as a value."""


class DontWant(Record):
    """Among the arguments of `with_refs`: nobody asks for the gradient by this argument."""


class GradRef(Record):
    """Among gradients: this one was added to a ref."""


class DidntWant(Record):
    """Among gradients: nobody asked for this one."""


class NotNeeded(Record):
    """In the place of an argument that the backward pass does not read."""


class NotSaveable(Record):
    """In the place of an argument that was not to be kept: the caller puts it back."""


def _register_empty(kind: type) -> None:
    register_pytree_node(kind, lambda _: ((), None), lambda *_: kind())


for _kind in (GradRef, DidntWant, NotNeeded, NotSaveable):
    _register_empty(_kind)


class VJP(Record, frozen=False):
    """A function from the cotangents of a function's results to those of its arguments.

    linear            the linear map, without values.
    residuals_are     for each value that the map reads, whether it is an argument, and its place
                      among the arguments' leaves or in opaque_residuals.
    args_res          the arguments that are read, in their tree; NotNeeded stands for the others, and
                      NotSaveable for what was not to be kept, to be put back before the first call.
    opaque_residuals  what else is read.
    want_logs         whether a call gives (cotangents, logs): see `with_logs`.
    """

    linear: LinearMap
    residuals_are: tuple[tuple[bool, int], ...]
    args_res: list[Any]
    opaque_residuals: list[Any]
    want_logs: bool = False

    @classmethod
    def of(cls, linear: LinearMap, args: Sequence[Any], saveable: list[bool] | None) -> VJP:
        """The function of a linear map found at these arguments."""
        leaves = tree.leaves(tuple(args))
        places = {id(x): i for i, x in enumerate(leaves)}
        are: list[tuple[bool, int]] = []
        opaque: list[Any] = []
        for value in linear.give_residuals():
            place = places.get(id(value))
            are.append((False, len(opaque)) if place is None else (True, place))
            if place is None:
                opaque.append(value)
        read = {place for is_argument, place in are if is_argument}
        kept = [
            NotNeeded() if i not in read else x if saveable is None or saveable[i] else NotSaveable()
            for i, x in enumerate(leaves)
        ]
        return cls(linear, tuple(are), list(mirrored(linear.in_tree, kept)), opaque)

    in_tree = property(lambda self: self.linear.in_tree)
    out_tree = property(lambda self: self.linear.out_tree)
    jaxpr = property(lambda self: self.linear.jaxpr)
    out_nzs = property(lambda self: self.linear.out_nzs)

    @api_boundary
    def __call__(self, *cotangents: Any) -> Any:
        """The arguments' cotangents, a tuple, from those of the result.

        Raises TypeError for more than one argument, ValueError where structures, shapes or dtypes
        are not the result's.
        """
        with collected() as logs:
            found = self.linear.pull(self._residuals(), *cotangents)
        given = tree.unflatten(self.in_tree, found)
        return (given, logs) if self.want_logs else given

    @property
    def with_logs(self) -> VJP:
        """The same function, where it gives (cotangents, logs): a dict of what derivative rules log
        (`custom_vjp.defvjp_with_logs`)."""
        return self.replace(want_logs=True)

    def with_refs(self, *places: Any) -> Callable[[Any], Any]:
        """The same function, where gradients go to these places, a tree as the arguments are: a Ref,
        to which the gradient is added; GradValue() where it is to be given; DontWant().

        Raises ValueError where the structure, or a ref's type, is another.

            grad_ref = lamina.new_ref(jnp.zeros(3))
            f_vjp.with_refs(grad_ref, lamina.ad.DontWant())(cotangent)
        """
        given, structure = tree.flatten(places)
        if structure != self.in_tree:
            raise ValueError(
                "unexpected tree structure in the arguments to a VJP function's `with_refs` method, "
                "which takes for each array argument a `Ref`, or "
                f"`{library}.ad.GradValue()`, or `{library}.ad.DontWant()`:\n"
                + "\n".join(
                    f"  * args{path} was {a} in the primal arguments, but {b} here, so {why}"
                    for path, a, b, why in tree_differences(self.in_tree, structure)
                )
            )
        for place, aval in zip(given, self.linear.in_avals, strict=True):
            if isinstance(place, Ref):
                _check_ref(place, aval.to_tangent_aval())

        def call(*cotangents: Any) -> Any:
            with collected() as logs:
                found = self.linear.pull(self._residuals(), *cotangents)
            put = [_put(x, place) for x, place in zip(found, given, strict=True)]
            result = tree.unflatten(self.in_tree, put)
            return (result, logs) if self.want_logs else result

        return call

    def replace(self, **changes: Any) -> VJP:
        """The same function with other fields."""
        return dataclasses.replace(self, **changes)

    __hash__ = object.__hash__
    __eq__ = object.__eq__

    def _residuals(self) -> list[Any]:
        args = tree.leaves(self.args_res, is_leaf=_is_mark)
        for is_argument, place in self.residuals_are:
            if is_argument and isinstance(args[place], NotSaveable):
                raise ValueError(
                    "the VJP function was applied before restoring its not-saveable residuals: assign "
                    f"to its attribute `args_res`, which lacks leaf {place} of the arguments of "
                    f"{self.linear.name}"
                )
        return [args[i] if is_argument else self.opaque_residuals[i]
                for is_argument, i in self.residuals_are]  # fmt: skip


def _is_mark(x: Any) -> bool:
    return isinstance(x, (NotNeeded, NotSaveable))


def _check_ref(ref: Ref, want: Any) -> None:
    if ref.shape != want.shape or ref.dtype != want.dtype:
        raise ValueError(
            "unexpected type (e.g. shape/dtype) of a gradient ref given to a VJP function's "
            f"`with_refs` method: the ref has type {ref.aval}, but the gradient is {want.str_short()}"
        )


def _put(gradient: Any, place: Any) -> Any:
    if isinstance(place, Ref):
        if get_aval(gradient).size:
            place.addupdate(gradient)
        return GradRef()
    return DidntWant() if isinstance(place, DontWant) else gradient


register_pytree_node(
    VJP,
    lambda f: ((f.args_res, f.opaque_residuals), (f.linear, f.residuals_are, f.want_logs)),
    lambda static, parts: VJP(static[0], static[1], parts[0], parts[1], static[2]),
)
