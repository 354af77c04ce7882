"""Rules of primitives seen as tables, and primitives to which rules are added one by one.

Libraries that define primitives write `primitive_jvps[my_p] = rule`, others read or replace the rules
of ours. A table is a view of one field of all primitives: it has whichever have a rule of that kind.
"""

from __future__ import annotations

import dataclasses
import weakref
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from types import MappingProxyType
from typing import Any

from lamina.core.avals import ShapedArray
from lamina.core.effects import Effects
from lamina.core.primitive import OWED, Primitive, all_primitives, is_marker


def set_rule(primitive: Primitive, field: str, rule: Any) -> None:
    """Gives a primitive a rule after it was made.

    primitive  the primitive.
    field      which: "jvp", "transpose", "batching", "lowering".
    rule       a function as Primitive takes it for this field.

    >>> unchanged_p = lamina.extend.core.Primitive("unchanged")
    >>> lamina.interpreters.batching_rules.set_rule(
    ...     unchanged_p, "batching", lambda args, dims: (args[0], dims[0])
    ... )
    """
    object.__setattr__(primitive, field, rule)


class RuleTable(MutableMapping[Primitive, Any]):
    """The rules of one kind, by primitive.

    field     of Primitive.
    adapt     (primitive, rule as the table takes it) -> rule as the field takes it.
    in_words  what says in one word what a rule would be: marker -> (primitive -> rule as the table
              gives it). Other markers say that there is no rule.
    """

    def __init__(
        self,
        field: str,
        adapt: Callable[[Primitive, Any], Any] = lambda _, rule: rule,
        in_words: Mapping[Any, Callable[[Primitive], Any]] = MappingProxyType({}),
    ) -> None:
        self._field, self._adapt, self._in_words = field, adapt, in_words
        # What was put in, where the field has something else, made of it.
        self._given: weakref.WeakKeyDictionary[Primitive, Any] = weakref.WeakKeyDictionary()

    def __getitem__(self, primitive: Primitive) -> Any:
        rule = getattr(primitive, self._field, None)
        if is_marker(rule) and rule in self._in_words:
            return self._in_words[rule](primitive)
        if is_marker(rule) or rule is None:
            raise KeyError(primitive)
        return self._given.get(primitive, rule)

    def __setitem__(self, primitive: Primitive, rule: Any) -> None:
        adapted = self._adapt(primitive, rule)
        if adapted is rule:
            self._given.pop(primitive, None)
        else:
            self._given[primitive] = rule
        set_rule(primitive, self._field, adapted)

    def __delitem__(self, primitive: Primitive) -> None:
        if primitive not in self:
            raise KeyError(primitive)
        self._given.pop(primitive, None)
        set_rule(primitive, self._field, OWED)

    def __iter__(self) -> Iterator[Primitive]:
        return (p for p in all_primitives() if p in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class _EveryPrimitive(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Primitive)


class UserPrimitive(Primitive, metaclass=_EveryPrimitive):
    """A primitive whose rules come later, from outside of lamina.

    Set `multiple_results = True` where it gives a list. `def_abstract_eval` is needed for jit,
    `def_impl` only where evaluation is something else than compiling the one operation.

    As libraries' `isinstance` has it, every primitive is an instance.
    """

    _types_and_effects: Callable[..., Any] | None

    def __init__(self, name: str) -> None:
        defaults = {
            f.name: f.default
            for f in dataclasses.fields(Primitive)
            if f.default is not dataclasses.MISSING
        }
        for field, value in {**defaults, "name": name, "abstract_eval": self._no_types}.items():
            set_rule(self, field, value)
        set_rule(self, "_types_and_effects", None)
        self.__post_init__()

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
        set_rule(self, "_types_and_effects", None)
        return rule

    def def_effectful_abstract_eval(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """As def_abstract_eval, for rules that give (types, effects): a set of Effects, for which
        an equation is kept though nobody reads its results."""
        set_rule(self, "abstract_eval", lambda *avals, **params: rule(*avals, **params)[0])
        set_rule(self, "_types_and_effects", rule)
        return rule

    def effects_on(self, avals: Sequence[ShapedArray], params: dict[str, Any]) -> Effects:
        rule = self._types_and_effects
        if rule is None:
            return super().effects_on(avals, params)
        return frozenset(rule(*avals, **params)[1])
