"""The type of cond to a type checker: what lambdas are given follows from the operands, and
the result from what they return. Operands that are arrays or numbers are Arrays to a branch, and so are
results; where one branch gives an array and another a number the result is an Array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar, overload

from lamina.core.array_class import Array
from lamina.core.array_likes import ArrayLike

R = TypeVar("R")
S = TypeVar("S")
T = TypeVar("T")
U = TypeVar("U")


class Cond(Protocol):
    """The type of cond. With one overload for numbers, and one for trees, in each place: where several fit a
    lambda, mypy takes what it gives only if all agree, so none may be there that gives Any."""

    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, pred: Any, true_fun: Callable[[], ArrayLike], false_fun: Callable[[], ArrayLike], /,
    ) -> Array: ...
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, pred: Any, true_fun: Callable[[], R], false_fun: Callable[[], R], /,
    ) -> R: ...
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self,
        pred: Any,
        true_fun: Callable[[Array], ArrayLike],
        false_fun: Callable[[Array], ArrayLike],
        x: ArrayLike,
        /,
    ) -> Array: ...
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self,
        pred: Any,
        true_fun: Callable[[Array], R],
        false_fun: Callable[[Array], R],
        x: ArrayLike,
        /,
    ) -> R: ...
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self,
        pred: Any,
        true_fun: Callable[[S], ArrayLike],
        false_fun: Callable[[S], ArrayLike],
        x: S,
        /,
    ) -> Array: ...
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, pred: Any, true_fun: Callable[[S], R], false_fun: Callable[[S], R], x: S, /,
    ) -> R: ...
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self,
        pred: Any,
        true_fun: Callable[[Array, Array], ArrayLike],
        false_fun: Callable[[Array, Array], ArrayLike],
        x: ArrayLike,
        y: ArrayLike,
        /,
    ) -> Array: ...
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self,
        pred: Any,
        true_fun: Callable[[Array, Array], R],
        false_fun: Callable[[Array, Array], R],
        x: ArrayLike,
        y: ArrayLike,
        /,
    ) -> R: ...
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self,
        pred: Any,
        true_fun: Callable[[S, Array], R],
        false_fun: Callable[[S, Array], R],
        x: S,
        y: ArrayLike,
        /,
    ) -> R: ...
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self,
        pred: Any,
        true_fun: Callable[[Array, S], R],
        false_fun: Callable[[Array, S], R],
        x: ArrayLike,
        y: S,
        /,
    ) -> R: ...
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self,
        pred: Any,
        true_fun: Callable[[S, T], R],
        false_fun: Callable[[S, T], R],
        x: S,
        y: T,
        /,
    ) -> R: ...
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self,
        pred: Any,
        true_fun: Callable[[Array, Array, Array], ArrayLike],
        false_fun: Callable[[Array, Array, Array], ArrayLike],
        x: ArrayLike,
        y: ArrayLike,
        z: ArrayLike,
        /,
    ) -> Array: ...
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self,
        pred: Any,
        true_fun: Callable[[Array, Array, Array], R],
        false_fun: Callable[[Array, Array, Array], R],
        x: ArrayLike,
        y: ArrayLike,
        z: ArrayLike,
        /,
    ) -> R: ...
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self,
        pred: Any,
        true_fun: Callable[[S, Array, Array], R],
        false_fun: Callable[[S, Array, Array], R],
        x: S,
        y: ArrayLike,
        z: ArrayLike,
        /,
    ) -> R: ...
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self,
        pred: Any,
        true_fun: Callable[[Array, S, Array], R],
        false_fun: Callable[[Array, S, Array], R],
        x: ArrayLike,
        y: S,
        z: ArrayLike,
        /,
    ) -> R: ...
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self,
        pred: Any,
        true_fun: Callable[[Array, Array, S], R],
        false_fun: Callable[[Array, Array, S], R],
        x: ArrayLike,
        y: ArrayLike,
        z: S,
        /,
    ) -> R: ...
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self,
        pred: Any,
        true_fun: Callable[[S, T, U], R],
        false_fun: Callable[[S, T, U], R],
        x: S,
        y: T,
        z: U,
        /,
    ) -> R: ...
    @overload
    def __call__(
        self,
        pred: Any,
        true_fun: Callable[..., R],
        false_fun: Callable[..., R],
        w: Any,
        x: Any,
        y: Any,
        z: Any,
        /,
        *operands: Any,
    ) -> R: ...
    @overload
    def __call__(
        self,
        pred: Any,
        true_fun: Callable[[Array], R],
        false_fun: Callable[[Array], R],
        *,
        operand: ArrayLike,
    ) -> R: ...
    @overload
    def __call__(
        self,
        pred: Any,
        true_fun: Callable[[S], R],
        false_fun: Callable[[S], R],
        *,
        operand: S,
    ) -> R: ...

def as_cond(fun: Any) -> Cond:
    """cond, typed."""
    typed: Cond = fun
    return typed
