"""Rules of primitives seen as tables, and primitives to which rules are added one by one.

Libraries that define primitives write `primitive_jvps[my_p] = rule`. A table is a view of one field
of all primitives; nothing is stored in it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

from lamina.core.primitive import OWED, Primitive


def set_rule(primitive: Primitive, field: str, rule: Any) -> None:
    """Gives a primitive a rule after it was made."""
    object.__setattr__(primitive, field, rule)


class RuleTable(MutableMapping[Primitive, Any]):
    """The rules of one kind, by primitive.

    field   of Primitive.
    adapt   (primitive, rule as the table takes it) -> rule as the field takes it.
    """

    def __init__(
        self, field: str, adapt: Callable[[Primitive, Any], Any] = lambda _, rule: rule
    ) -> None:
        self._field, self._adapt = field, adapt
        self._given: dict[Primitive, Any] = {}

    def __getitem__(self, primitive: Primitive) -> Any:
        rule = self._given.get(primitive, getattr(primitive, self._field, None))
        if rule is OWED or rule is None:
            raise KeyError(primitive)
        return rule

    def __setitem__(self, primitive: Primitive, rule: Any) -> None:
        self._given[primitive] = rule
        set_rule(primitive, self._field, self._adapt(primitive, rule))

    def __delitem__(self, primitive: Primitive) -> None:
        del self._given[primitive]
        set_rule(primitive, self._field, OWED)

    def __iter__(self) -> Iterator[Primitive]:
        return iter(self._given)

    def __len__(self) -> int:
        return len(self._given)


class UserPrimitive(Primitive):
    """A primitive whose rules come later, from outside of lamina.

    Set `multiple_results = True` where it gives a list. `def_abstract_eval` is needed for jit,
    `def_impl` only where evaluation is something else than compiling the one operation.
    """

    def __init__(self, name: str) -> None:
        defaults = {
            f.name: f.default
            for f in dataclasses.fields(Primitive)
            if f.default is not dataclasses.MISSING
        }
        for field, value in {**defaults, "name": name, "abstract_eval": self._no_types}.items():
            set_rule(self, field, value)

    def __setattr__(self, name: str, value: Any) -> None:
        set_rule(self, name, value)

    def _no_types(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError(f"Abstract evaluation for '{self.name}' not implemented")

    def def_impl(self, impl: Callable[..., Any]) -> Callable[..., Any]:
        """Sets how to evaluate: impl(*args, **params) -> result."""
        set_rule(self, "impl", impl)
        return impl

    def def_abstract_eval(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Sets the types: rule(*avals, **params) -> aval, or a list with multiple_results."""
        set_rule(self, "abstract_eval", rule)
        return rule

    def def_effectful_abstract_eval(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """As def_abstract_eval, for rules that give (types, effects); the effects must be empty.

        Raises NotImplementedError, when the primitive is traced, where they are not.
        """

        def types(*avals: Any, **params: Any) -> Any:
            out, effects = rule(*avals, **params)
            if effects:
                raise NotImplementedError(f"'{self.name}' has effects: {effects}")
            return out

        set_rule(self, "abstract_eval", types)
        return rule
