"""Dataclasses whose methods are compiled when their first instance is made.

The compiler has some two hundred small classes of data, and a program needs few of them. Python
takes half a millisecond to make a dataclass, nearly all of it to compile its methods; here the
classes that nobody makes an instance of cost nothing.
"""

from __future__ import annotations

import dataclasses
import threading
from typing import Any, ClassVar, dataclass_transform

_one_at_a_time = threading.RLock()


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
class Record:
    """A frozen dataclass, once there is an instance of it: `class Frame(Record):`, with annotated fields.
    `frozen=False` and `eq=False` mean what they mean to `dataclasses.dataclass`.
    """

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]
    _pending: ClassVar[dict[str, bool] | None] = None
    """How the class is to be made; None once it is."""

    def __init_subclass__(cls, *, frozen: bool = True, eq: bool = True, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._pending = {"frozen": frozen, "eq": eq}
        if any(base is not Record and issubclass(base, Record) for base in cls.__bases__):
            _make(cls)  # else it would have the other's methods for its own

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        cls = type(self)
        _make(cls)
        cls.__init__(self, *args, **kwargs)

    def __setstate__(self, state: dict[str, Any]) -> None:
        _make(type(self))  # one that comes from another process may be the first here
        vars(self).update(state)


def _make(cls: type[Record]) -> None:
    with _one_at_a_time:
        options = vars(cls)["_pending"]
        if options is None:  # by another thread meanwhile
            return
        for base in cls.__bases__:
            if base is not Record and issubclass(base, Record):
                _make(base)
        dataclasses.dataclass(**options)(cls)
        cls._pending = None
