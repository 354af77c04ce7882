"""Where a backward rule puts cotangents, for rules that are given places in place of giving values."""

from __future__ import annotations

from typing import Any

from lamina.core.avals import ShapedArray
from lamina.core.refs import Ref
from lamina.core.tangents import Zero
from lamina.core.trace import get_aval
from lamina.interpreters.tangents import add_tangents, zeros_like_aval


class GradAccum:
    """A place for the sum of an argument's cotangents, of type `aval`."""

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.aval.str_short()})"

    def accum(self, x: Any) -> None:
        """Adds a cotangent; None and Zero add nothing. Raises ValueError for another shape."""
        raise NotImplementedError

    def freeze(self) -> Any:
        """The sum; Zero of nothing."""
        raise NotImplementedError

    def _is_something(self, x: Any) -> bool:
        if x is None or isinstance(x, Zero):
            return False
        if get_aval(x).shape != self.aval.shape:
            raise ValueError(
                f"Expected cotangent type {self.aval.str_short()} but got {get_aval(x).str_short()}"
            )
        return True


class ValAccum(GradAccum):
    """A sum that is a value."""

    def __init__(self, aval: ShapedArray, val: Any = None) -> None:
        super().__init__(aval)
        self.val = Zero(aval) if val is None else val

    def accum(self, x: Any) -> None:
        if self._is_something(x):
            self.val = add_tangents(self.val, x)

    def freeze(self) -> Any:
        return self.val


class RefAccum(GradAccum):
    """A sum in a ref, which the first cotangent makes where none is given."""

    def __init__(self, aval: ShapedArray, ref: Any = None) -> None:
        super().__init__(aval)
        self.ref = ref

    def accum(self, x: Any) -> None:
        if not self._is_something(x):
            return
        if self.ref is None:
            self.inst()
        self.ref.addupdate(x)

    def freeze(self) -> Any:
        return Zero(self.aval) if self.ref is None else self.ref.read()

    def inst(self) -> RefAccum:
        """With a ref of zeros where it has none."""
        if self.ref is None:
            self.ref = Ref(zeros_like_aval(self.aval))
        return self


class NullAccum(GradAccum):
    """No place: nobody asks for this cotangent."""

    def accum(self, x: Any) -> None:
        pass

    def freeze(self) -> Any:
        return Zero(self.aval)
