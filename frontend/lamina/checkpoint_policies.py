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

__all__ = [
    "Offloadable",
    "Policy",
    "Recompute",
    "Saveable",
    "checkpoint_dots",
    "checkpoint_dots_with_no_batch_dims",
    "dots_saveable",
    "dots_with_no_batch_dims_saveable",
    "everything_saveable",
    "nothing_saveable",
    "offload_dot_with_no_batch_dims",
    "save_and_offload_only_these_names",
    "save_any_names_but_these",
    "save_anything_except_these_names",
    "save_from_both_policies",
    "save_only_these_names",
]

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
    """The policy that keeps all, so that checkpoint has no effect. Policies are called with a
    primitive, its operands' types and its parameters.

    >>> f = lamina.checkpoint(jnp.sin, policy=lamina.checkpoint_policies.everything_saveable)
    >>> print(lamina.grad(f)(0.0))
    1.0
    """
    return True


def nothing_saveable(*_: Any, **__: Any) -> bool:
    """The policy that keeps nothing but the arguments; what checkpoint does without a policy.

    >>> f = lamina.checkpoint(jnp.sin, policy=lamina.checkpoint_policies.nothing_saveable)
    >>> print(lamina.grad(f)(0.0))
    1.0
    """
    return False


def dots_saveable(prim: Any, *_: Any, **__: Any) -> bool:
    """The policy that keeps the results of matrix products and convolutions, and computes the rest
    again.

    prim  the primitive that is asked about.

    >>> f = lamina.checkpoint(lambda x: x @ x, policy=lamina.checkpoint_policies.dots_saveable)
    >>> print(lamina.grad(f)(jnp.array([1.0, 2.0])))
    [2. 4.]
    """
    return prim in (lax.dot_general_p, lax.conv_general_dilated_p)


checkpoint_dots = dots_saveable


def dots_with_no_batch_dims_saveable(prim: Any, *_: Any, **params: Any) -> bool:
    """The policy that keeps the results of matrix products without batch dimensions: those of
    layers with weights, not those of attention.

    prim    the primitive that is asked about.
    params  its parameters.

    >>> policy = lamina.checkpoint_policies.dots_with_no_batch_dims_saveable
    >>> print(lamina.grad(lamina.checkpoint(lambda x: x @ x, policy=policy))(jnp.array([1.0, 2.0])))
    [2. 4.]
    """
    if prim is not lax.dot_general_p:
        return False
    _, (lhs_batch, rhs_batch) = params["dimension_numbers"]
    return not lhs_batch and not rhs_batch


checkpoint_dots_with_no_batch_dims = dots_with_no_batch_dims_saveable


def offload_dot_with_no_batch_dims(offload_src: str, offload_dst: str) -> Policy:
    """The policy that keeps what dots_with_no_batch_dims_saveable keeps, in another memory.

    offload_src  the memory where values are, such as "device".
    offload_dst  the memory where they wait, such as "pinned_host".

    >>> policy = lamina.checkpoint_policies.offload_dot_with_no_batch_dims("device", "pinned_host")
    >>> print(lamina.grad(lamina.checkpoint(lambda x: x @ x, policy=policy))(jnp.array([1.0, 2.0])))
    [2. 4.]
    """

    def policy(prim: Any, *avals: Any, **params: Any) -> Any:
        keep = dots_with_no_batch_dims_saveable(prim, *avals, **params)
        return Offloadable(offload_src, offload_dst) if keep else Recompute

    return policy


def save_anything_except_these_names(*names_not_to_save: str) -> Policy:
    """A policy that keeps all values but those that checkpoint_name gave one of these names.

    names_not_to_save  the names.

    >>> policy = lamina.checkpoint_policies.save_anything_except_these_names("sine")
    >>> print(lamina.grad(lamina.checkpoint(jnp.sin, policy=policy))(0.0))
    1.0
    """
    names = frozenset(names_not_to_save)

    def policy(prim: Any, *_: Any, **params: Any) -> bool:
        return prim is not name_p or params["name"] not in names

    return policy


def save_any_names_but_these(*names_not_to_save: str) -> Policy:
    """A policy that keeps values that checkpoint_name named, but not those with one of these names.

    names_not_to_save  the names.

    >>> policy = lamina.checkpoint_policies.save_any_names_but_these("sine")
    >>> print(lamina.grad(lamina.checkpoint(jnp.sin, policy=policy))(0.0))
    1.0
    """
    names = frozenset(names_not_to_save)

    def policy(prim: Any, *_: Any, **params: Any) -> bool:
        return prim is name_p and params["name"] not in names

    return policy


def save_only_these_names(*names_which_can_be_saved: str) -> Policy:
    """A policy that keeps values that checkpoint_name gave one of these names, and no others.

    names_which_can_be_saved  the names.

    >>> policy = lamina.checkpoint_policies.save_only_these_names("sine")
    >>> def f(x):
    ...     return jnp.cos(lamina.ad_checkpoint.checkpoint_name(jnp.sin(x), "sine"))
    >>> print(lamina.grad(lamina.checkpoint(f, policy=policy))(1.0).round(3))
    -0.403
    """
    names = frozenset(names_which_can_be_saved)

    def policy(prim: Any, *_: Any, **params: Any) -> bool:
        return prim is name_p and params["name"] in names

    return policy


def save_from_both_policies(policy_1: Policy, policy_2: Policy) -> Policy:
    """A policy that keeps what either of two policies keeps.

    policy_1, policy_2  the two.

    >>> policies = lamina.checkpoint_policies
    >>> policy = policies.save_from_both_policies(
    ...     policies.dots_saveable, policies.save_only_these_names("sine")
    ... )
    >>> print(lamina.grad(lamina.checkpoint(jnp.sin, policy=policy))(0.0))
    1.0
    """

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
    """A policy that keeps values with a name of a first kind, and those with one of a second kind
    in another memory.

    names_which_can_be_saved      the first kind.
    names_which_can_be_offloaded  the second.
    offload_src                   the memory where values are, such as "device".
    offload_dst                   the memory where they wait, such as "pinned_host".

    Raises ValueError where a name is of both kinds.

    >>> policy = lamina.checkpoint_policies.save_and_offload_only_these_names(
    ...     names_which_can_be_saved=["a"], names_which_can_be_offloaded=["b"],
    ...     offload_src="device", offload_dst="pinned_host",
    ... )
    >>> print(lamina.grad(lamina.checkpoint(jnp.sin, policy=policy))(0.0))
    1.0
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
