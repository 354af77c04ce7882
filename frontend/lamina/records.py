"""Dataclasses that pay for their methods when they are used often.

The compiler has some two hundred small classes of data, and a program needs few instances of most.
Python takes half a millisecond to make a dataclass, nearly all of it to compile its methods. Here
the first instances of a class have methods that read its fields' names from a list; a class with more
of them than that pays for becomes a dataclass of Python's.
"""

from __future__ import annotations

import dataclasses
import inspect
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, dataclass_transform

from lamina.forks import new_lock

_USES = 32
"""Calls of a class's general methods before it gets its own."""

_one_at_a_time = new_lock()


class _Fields:
    """The fields of a class that is no dataclass yet."""

    def __init__(self, cls: type[Record]) -> None:
        self.names: list[str] = []
        self.defaults: dict[str, Any] = {}
        self.factories: dict[str, Callable[[], Any]] = {}
        self.compared: list[str] = []
        self.uses = 0
        for name, annotation in inspect.get_annotations(cls).items():
            if str(annotation).startswith(("ClassVar", "typing.ClassVar")):
                continue
            default = vars(cls).get(name, dataclasses.MISSING)
            if isinstance(default, dataclasses.Field):
                if default.default_factory is not dataclasses.MISSING:
                    self.factories[name] = default.default_factory
                is_compared, default = default.compare, default.default
            else:
                is_compared = True
            if default is not dataclasses.MISSING:
                self.defaults[name] = default
            if is_compared:
                self.compared.append(name)
            self.names.append(name)

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any] | None:
        """Name -> value of the arguments of a call, in the order of the fields; None if they don't fit."""
        given = dict(zip(self.names, args, strict=False)) | kwargs
        if len(given) != len(args) + len(kwargs):  # too many, or one of them twice
            return None
        found = {}
        for name in self.names:
            if name in given:
                found[name] = given.pop(name)
            elif name in self.defaults:
                found[name] = self.defaults[name]
            elif name in self.factories:
                found[name] = self.factories[name]()
            else:
                return None
        return None if given else found


class _OfDataclass:
    """What a class has once it is a dataclass, and becomes one for who asks for it."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type[Record]) -> Any:
        if owner is Record:
            raise AttributeError(self._name)
        _make(owner)
        return vars(owner)[self._name]


class _Signature:
    """The signature of the methods that a class has once it is a dataclass."""

    def __get__(self, instance: Any, owner: type[Record]) -> Any:
        if owner is not Record:
            _make(owner)
        signature = inspect.signature(owner.__init__)
        return signature.replace(parameters=list(signature.parameters.values())[1:])


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
class Record:
    """A frozen dataclass: `class Frame(Record):`, with annotated fields. `frozen=False` and `eq=False` mean
    what they mean to `dataclasses.dataclass`.

        >>> class Point(Record):
        ...     x: int
        ...     y: int = 2
        >>> Point(1) == Point(1, 2)
        True
    """

    if TYPE_CHECKING:
        __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]
    else:
        __dataclass_fields__ = _OfDataclass()
        __match_args__ = _OfDataclass()
        __signature__ = _Signature()
    _pending: ClassVar[dict[str, bool] | None] = None
    """How the class is to be made a dataclass; None once it is one."""
    _fields: ClassVar[_Fields | None] = None

    def __init_subclass__(cls, *, frozen: bool = True, eq: bool = True, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._pending = {"frozen": frozen, "eq": eq}
        cls._fields = None
        if not eq and "__eq__" not in vars(cls):
            cls.__eq__ = object.__eq__  # type: ignore[method-assign]
            cls.__hash__ = object.__hash__  # type: ignore[method-assign]
        elif not frozen and "__hash__" not in vars(cls):
            cls.__hash__ = None  # type: ignore[assignment]
        if any(base is not Record and issubclass(base, Record) for base in cls.__bases__):
            _make(cls)  # else it would have the other's methods for its own
        elif frozen:
            cls.__setattr__ = _refuse  # type: ignore[method-assign, assignment]
            cls.__delattr__ = _refuse  # type: ignore[method-assign, assignment]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        cls = type(self)
        values = None if _is_often_used(cls) else _fields(cls).bind(args, kwargs)
        if values is None:
            _make(cls)
            cls.__init__(self, *args, **kwargs)  # which says what does not fit
            return
        for name, value in values.items():
            object.__setattr__(self, name, value)
        post_init = getattr(cls, "__post_init__", None)
        if post_init is not None:
            post_init(self)

    def __eq__(self, other: object) -> bool:
        cls = type(self)
        if type(other) is not cls:
            return NotImplemented
        if _is_often_used(cls):
            _make(cls)
            return cls.__eq__(self, other)
        return all(getattr(self, name) == getattr(other, name) for name in _fields(cls).compared)

    def __hash__(self) -> int:
        cls = type(self)
        if _is_often_used(cls):
            _make(cls)
            return cls.__hash__(self)
        return hash(tuple([getattr(self, name) for name in _fields(cls).compared]))

    def __repr__(self) -> str:
        _make(type(self))
        return repr(self)


def _refuse(self: Record, name: str, *value: Any) -> None:
    raise dataclasses.FrozenInstanceError(
        f"cannot {'assign to' if value else 'delete'} field {name!r}"
    )


def _is_often_used(cls: type[Record]) -> bool:
    """Whether a class's general methods have been called often; counts this call."""
    fields = _fields(cls)
    fields.uses += 1
    return fields.uses > _USES


def _fields(cls: type[Record]) -> _Fields:
    found = vars(cls)["_fields"]
    if found is None:
        found = cls._fields = _Fields(cls)
    return found


def _make(cls: type[Record]) -> None:
    """Makes a class a dataclass. Other threads use the class meanwhile: at any moment each of its methods
    is the general one or the dataclass's. An interrupt leaves the class as it was."""
    with _one_at_a_time:
        options = vars(cls)["_pending"]
        if options is None:  # by another thread meanwhile
            return
        for base in cls.__bases__:
            if base is not Record and issubclass(base, Record):
                _make(base)
        _fields(cls)  # while the defaults are where the class's author put them
        before = dict(vars(cls))
        try:
            for name in ("__setattr__", "__delattr__"):
                if before.get(name) is _refuse:
                    delattr(cls, name)
            cls._pending = None  # `dataclass` asks for the signature
            by_values = options["eq"] and options["frozen"] and "__hash__" not in before
            if by_values:  # `dataclass` would have the class without a hash for a moment
                cls.__hash__ = Record.__hash__  # type: ignore[method-assign]
            dataclasses.dataclass(**options)(cls)
            if by_values:
                cls.__hash__ = _hash_of(cls)  # type: ignore[method-assign, assignment]
        except BaseException:
            for name in set(vars(cls)) - set(before):
                delattr(cls, name)
            for name, value in before.items():
                if vars(cls).get(name, dataclasses.MISSING) is not value:
                    setattr(cls, name, value)
            raise


def _hash_of(cls: type[Record]) -> Callable[[Record], int]:
    """The same number as the general method finds."""
    names = [
        field.name
        for field in dataclasses.fields(cls)
        if (field.compare if field.hash is None else field.hash)
    ]
    if len(names) > 1:
        values = operator.attrgetter(*names)
        return lambda self: hash(values(self))
    return lambda self: hash(tuple([getattr(self, name) for name in names]))
