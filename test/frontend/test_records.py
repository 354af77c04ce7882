"""Records are dataclasses, but for when they are made."""

import dataclasses
import inspect
import pickle
import threading
import types
from dataclasses import field

import pytest

from lamina.records import Record


class Point(Record):
    x: int
    y: int = 2


class Place(Point):
    name: str = ""


class Notes(Record, frozen=False):
    lines: list[str] = field(default_factory=list)


class Node(Record, eq=False):
    value: int


class Sent(Record):
    size: int


def fresh(options=None, **fields):
    """A new class of records whose fields, all of them ints, have these defaults (None: none)."""
    members = {name: default for name, default in fields.items() if default is not None}
    annotations = dict.fromkeys(fields, int)
    members |= {"__annotations__": annotations, "__module__": __name__}
    return types.new_class("Fresh", (Record,), options or {}, lambda body: body.update(members))


def is_made(cls):
    return "__dataclass_fields__" in vars(cls)


def test_a_record_is_a_dataclass_for_who_asks_or_makes_many():
    asked, many = fresh(x=None), fresh(x=None)
    assert asked(1).x == 1 and not is_made(asked)
    assert [f.name for f in dataclasses.fields(asked)] == ["x"] and is_made(asked)
    assert [many(i).x for i in range(100)] == list(range(100)) and is_made(many)
    assert dataclasses.is_dataclass(Sent) and not dataclasses.is_dataclass(Record)


@pytest.mark.parametrize("options", [{}, {"frozen": False}, {"eq": False}])
def test_the_first_records_are_as_those_of_a_dataclass(options):
    cls = fresh(options, x=None, y=2)
    early = [cls(1), cls(1, 2), cls(y=3, x=1), cls(1, 3)]
    state = cls.__new__(cls)
    vars(state).update(x=1, y=3)  # as pickle does
    early.append(state)
    hashes = [] if cls.__hash__ is None else [hash(x) for x in early]
    equal = [[x == y for y in early] for x in early]
    if options.get("frozen", True):
        with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'x'"):
            early[0].x = 2
        with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'x'"):
            del early[0].x
    match early[0]:
        case cls(a, b):
            assert (a, b) == (1, 2)
    assert str(inspect.signature(fresh(x=None, y=2))) == "(x: int, y: int = 2) -> None"
    dataclasses.fields(cls)
    assert is_made(cls)
    assert equal == [[x == y for y in early] for x in early]
    assert hashes == ([] if cls.__hash__ is None else [hash(x) for x in early])
    assert repr(early[0]) == "Fresh(x=1, y=2)" and vars(early[2]) == {"x": 1, "y": 3}


@pytest.mark.parametrize(
    "args, kwargs", [((), {}), ((1, 2, 3), {}), ((1,), {"x": 1}), ((1,), {"z": 1})]
)
def test_arguments_that_do_not_fit_are_refused_as_a_dataclass_does(args, kwargs):
    first, made = fresh(x=None, y=2), fresh(x=None, y=2)
    dataclasses.fields(made)
    with pytest.raises(TypeError) as expected:
        made(*args, **kwargs)
    with pytest.raises(TypeError) as found:
        first(*args, **kwargs)
    assert str(found.value) == str(expected.value)


def test_records_are_compared_hashed_and_shown_by_their_fields():
    assert Point(1) == Point(1, 2) == Point(y=2, x=1) != Point(2)
    assert len({Point(1), Point(1), Place(1)}) == 2
    assert repr(Point(1)).endswith("Point(x=1, y=2)")
    assert dataclasses.replace(Point(1), y=3) == Point(1, 3)
    assert Node(1) != Node(1)


def test_records_are_frozen_unless_they_say_otherwise():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Point(1).x = 2
    notes = Notes()
    notes.lines = ["a"]
    assert (notes, Notes().lines) == (Notes(["a"]), [])


def test_a_record_over_another_has_both_fields():
    assert Place(1, 2, "here") == Place(1, name="here")
    assert Place(1) != Point(1)


def test_a_record_may_come_from_another_process():
    data = pickle.dumps(Sent(3))
    assert pickle.loads(data) == Sent(3)


def test_threads_may_make_it_a_dataclass_at_once():
    for _ in range(50):
        cls = fresh(x=None)
        start, found, wrong = threading.Barrier(4), [], []

        def make(cls=cls, start=start, found=found, wrong=wrong):
            start.wait()
            try:
                found.extend(cls(i) == cls(i) for i in range(40))
            except Exception as error:
                wrong.append(error)

        threads = [threading.Thread(target=make) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong and found == [True] * 160


class Watching(type):
    """The class of classes that look at their instances after each change of themselves."""

    watch = None

    def __setattr__(cls, name, value):
        type.__setattr__(cls, name, value)
        if Watching.watch is not None:
            Watching.watch(cls, name)


def test_other_threads_find_it_whole_while_it_becomes_a_dataclass():
    class Watched(Record, metaclass=Watching):
        x: int
        y: int = 2

    one, same, other, number = Watched(1), Watched(1), Watched(2), hash(Watched(1))
    changes = []

    def watch(cls, name):
        changes.append(name)
        cls._fields.uses = 0  # else it would wait for the thread that makes the dataclass: this one
        assert hash(one) == number, name
        assert one == same and one != other, name
        assert cls(1, 2) == one and cls(x=1).y == 2, name

    Watching.watch = watch
    try:
        repr(one)
    finally:
        Watching.watch = None
    assert "__init__" in changes and "__eq__" in changes


@pytest.mark.parametrize("options", [{}, {"frozen": False}, {"eq": False}])
def test_an_interrupt_leaves_it_as_it_was(options):
    class Watched(Record, metaclass=Watching, **options):
        x: int
        y: int = 2

    def interrupt(cls, name):
        if name == interrupt.at:
            Watching.watch = None
            raise KeyboardInterrupt

    one = Watched(1)
    for interrupt.at in ("__init__", "__eq__", "__hash__", "__setattr__", "__match_args__"):
        Watching.watch = interrupt
        try:
            repr(one)
        except KeyboardInterrupt:
            pass
        finally:
            Watching.watch = None
        assert Watched(1).y == 2 and one == one
    for _ in range(100):
        assert Watched(3).x == 3
    assert repr(one).endswith("Watched(x=1, y=2)")
    if options.get("frozen", True):
        with pytest.raises(dataclasses.FrozenInstanceError):
            one.x = 2
