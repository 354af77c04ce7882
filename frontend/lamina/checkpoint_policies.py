"""Policies for `lamina.checkpoint`: which values to keep for the backward pass.

A policy is policy(primitive, *avals, **params), asked of each application of a primitive. It gives
True or Saveable to keep the result, False or Recompute to compute it again. This machine has one
memory, so Offloadable values are kept where they are.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from lamina import lax
from lamina.control_flow.checkpoint_name import name_p

Policy = Callable[..., Any]


class _Verdict:
    def __init__(self, name: str, keeps: bool) -> None:
        self._name, self._keeps = name, keeps

    def __repr__(self) -> str:
        return self._name

    def __bool__(self) -> bool:
        return self._keeps


Saveable = _Verdict("Saveable", True)
Recompute = _Verdict("Recompute", False)


@dataclasses.dataclass(frozen=True)
class Offloadable:
    """Keep the result in another memory: src and dst are the memories' names."""

    src: str
    dst: str


def everything_saveable(*_: Any, **__: Any) -> bool:
    """Keeps all: checkpoint has no effect."""
    return True


def nothing_saveable(*_: Any, **__: Any) -> bool:
    """Keeps nothing but the arguments; what checkpoint does without a policy."""
    return False


def dots_saveable(prim: Any, *_: Any, **__: Any) -> bool:
    """Keeps the results of matrix products and convolutions."""
    return prim in (lax.dot_general_p, lax.conv_general_dilated_p)


checkpoint_dots = dots_saveable


def dots_with_no_batch_dims_saveable(prim: Any, *_: Any, **params: Any) -> bool:
    """Keeps the results of matrix products without batch dimensions: layers with weights."""
    if prim is not lax.dot_general_p:
        return False
    _, (lhs_batch, rhs_batch) = params["dimension_numbers"]
    return not lhs_batch and not rhs_batch


checkpoint_dots_with_no_batch_dims = dots_with_no_batch_dims_saveable


def offload_dot_with_no_batch_dims(offload_src: str, offload_dst: str) -> Policy:
    """As dots_with_no_batch_dims_saveable, to another memory."""

    def policy(prim: Any, *avals: Any, **params: Any) -> Any:
        keep = dots_with_no_batch_dims_saveable(prim, *avals, **params)
        return Offloadable(offload_src, offload_dst) if keep else Recompute

    return policy


def save_anything_except_these_names(*names_not_to_save: str) -> Policy:
    """Keeps all values but those that checkpoint_name gave one of these names."""
    names = frozenset(names_not_to_save)

    def policy(prim: Any, *_: Any, **params: Any) -> bool:
        return prim is not name_p or params["name"] not in names

    return policy


def save_any_names_but_these(*names_not_to_save: str) -> Policy:
    """Keeps named values, but not those with one of these names."""
    names = frozenset(names_not_to_save)

    def policy(prim: Any, *_: Any, **params: Any) -> bool:
        return prim is name_p and params["name"] not in names

    return policy


def save_only_these_names(*names_which_can_be_saved: str) -> Policy:
    """Keeps values with one of these names."""
    names = frozenset(names_which_can_be_saved)

    def policy(prim: Any, *_: Any, **params: Any) -> bool:
        return prim is name_p and params["name"] in names

    return policy


def save_from_both_policies(policy_1: Policy, policy_2: Policy) -> Policy:
    """Keeps what either policy keeps."""

    def policy(prim: Any, *avals: Any, **params: Any) -> Any:
        return policy_1(prim, *avals, **params) or policy_2(prim, *avals, **params)

    return policy


def save_and_offload_only_these_names(
    *,
    names_which_can_be_saved: Sequence[str],
    names_which_can_be_offloaded: Sequence[str],
    offload_src: str,
    offload_dst: str,
) -> Policy:
    """Keeps values with a name of the first kind; offloads those with one of the second.

    Raises ValueError where a name is of both kinds.
    """
    saved, offloaded = frozenset(names_which_can_be_saved), frozenset(names_which_can_be_offloaded)
    if both := saved & offloaded:
        raise ValueError(
            "The names should be exclusive and should not intersect in `names_which_can_be_saved` "
            f"and `names_which_can_be_offloaded`, but {sorted(both)} are in both."
        )

    def policy(prim: Any, *_: Any, **params: Any) -> Any:
        if prim is name_p and params["name"] in saved:
            return Saveable
        if prim is name_p and params["name"] in offloaded:
            return Offloadable(offload_src, offload_dst)
        return Recompute

    return policy
