"""Functions with partitioning rules of their own, by JAX's names. Rules are kept and not asked: what devices do of such
a function is found out from its operations, as for any other."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from lamina.control_flow.tracing import check_callable
from lamina.core.library import library
from lamina.core.wrapping import function_name, update_wrapper

__all__ = ["BATCHING", "ArrayMapping", "CompoundFactor", "SdyShardingRule", "custom_partitioning"]

BATCHING = "…"
"""In a rule: the leading dimensions, of any number."""


class CompoundFactor(tuple[str, ...]):
    """A dimension that is the product of several factors.

    >>> lamina.experimental.custom_partitioning.CompoundFactor("i", "j")
    ('i', 'j')
    """

    def __new__(cls, *factors: str) -> CompoundFactor:
        if len(factors) < 2:
            raise ValueError("A compound factor should contain at least two factors")
        return super().__new__(cls, _checked(factors))


class ArrayMapping(tuple[Any, ...]):
    """The factors of an array's dimensions.

    >>> lamina.experimental.custom_partitioning.ArrayMapping("i", "j")
    ('i', 'j')
    """

    def __new__(cls, *dim_mappings: Any) -> ArrayMapping:
        for mapping in dim_mappings:
            if not isinstance(mapping, CompoundFactor):
                _checked((mapping,))
        return super().__new__(cls, dim_mappings)


def _checked(factors: Sequence[Any]) -> Sequence[Any]:
    for factor in factors:
        if not isinstance(factor, str):
            raise ValueError(f"Each element of a sharding rule must be a str or CompoundFactor, but got {type(factor)}")
    return factors


@dataclasses.dataclass(frozen=True, init=False)
class SdyShardingRule:
    """Which dimensions of operands and results are cut together: those of one factor.

    operand_mappings, result_mappings  an ArrayMapping, or a tuple of factors, for each array.
    reduction_factors, need_replication_factors, permutation_factors  what is to be said of factors.
    factor_sizes  the sizes of factors that no dimension has alone.
    """

    operand_mappings: tuple[ArrayMapping, ...]
    result_mappings: tuple[ArrayMapping, ...]
    reduction_factors: tuple[str, ...]
    need_replication_factors: tuple[str, ...]
    permutation_factors: tuple[str, ...]
    factor_sizes: dict[str, int]

    def __init__(
        self,
        operand_mappings: Sequence[Any],
        result_mappings: Sequence[Any],
        *,
        reduction_factors: Sequence[str] = (),
        need_replication_factors: Sequence[str] = (),
        permutation_factors: Sequence[str] = (),
        **factor_sizes: int,
    ) -> None:
        values = {
            "operand_mappings": tuple(ArrayMapping(*m) for m in operand_mappings),
            "result_mappings": tuple(ArrayMapping(*m) for m in result_mappings),
            "reduction_factors": tuple(reduction_factors),
            "need_replication_factors": tuple(need_replication_factors),
            "permutation_factors": tuple(permutation_factors),
            "factor_sizes": factor_sizes,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)


class custom_partitioning:  # noqa: N801
    """A function that says by `def_partition` how it is cut; its results are the function's.

    fun             a function of trees of arrays.
    static_argnums  positions of arguments that are no arrays.

    >>> f = lamina.experimental.custom_partitioning.custom_partitioning(jnp.sin)
    >>> f.def_partition(lambda mesh, args, result: None, sharding_rule="i -> i")
    >>> float(lamina.jit(f)(0.0))
    0.0
    """

    __name__: str

    def __init__(self, fun: Callable[..., Any], static_argnums: Sequence[int] = ()) -> None:
        check_callable(fun)
        update_wrapper(self, fun)
        self.fun, self.static_argnums = fun, static_argnums
        self.partition: Callable[..., Any] | None = None
        self.infer_sharding_from_operands: Callable[..., Any] | None = None
        self.propagate_user_sharding: Callable[..., Any] | None = None
        self.sharding_rule: Any = None

    def def_partition(
        self,
        partition: Callable[..., Any],
        infer_sharding_from_operands: Callable[..., Any] | None = None,
        propagate_user_sharding: Callable[..., Any] | None = None,
        decode_shardings: bool = True,
        sharding_rule: Any = None,
        *,
        reduction_factors: Sequence[str] = (),
        need_replication_factors: Sequence[str] = (),
        permutation_factors: Sequence[str] = (),
        **factor_sizes: int,
    ) -> None:
        """Keeps the rules. Raises TypeError where sharding_rule is neither a text "operands -> results" nor an
        SdyShardingRule nor a function that gives one; ValueError for a text without "->" and for factors beside a rule
        that has them."""
        if not (sharding_rule is None or isinstance(sharding_rule, (str, SdyShardingRule)) or callable(sharding_rule)):
            raise TypeError(
                "sharding_rule must be an SdyShardingRule, a text such as 'i j, j k -> i k', or a function that gives "
                f"one of them, got {sharding_rule!r}"
            )
        if isinstance(sharding_rule, str) and sharding_rule.count("->") != 1:
            raise ValueError(f"There must be one '->' in the sharding rule: {sharding_rule!r}")
        of_factors = (reduction_factors, need_replication_factors, permutation_factors, factor_sizes)
        if isinstance(sharding_rule, SdyShardingRule) and any(of_factors):
            raise ValueError("what is said of factors belongs into the SdyShardingRule, where one is given")
        self.partition = partition
        self.infer_sharding_from_operands = infer_sharding_from_operands
        self.propagate_user_sharding = propagate_user_sharding
        self.sharding_rule = sharding_rule

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.partition is None:
            raise AttributeError(
                f"No partition rules defined for {library}.experimental.custom_partitioning function "
                f"{function_name(self.fun)} using def_partition."
            )
        return self.fun(*args, **kwargs)
