"""Records are dataclasses, but for when they are made."""

import dataclasses
import pickle
import threading
from dataclasses import field

import pytest

from lamina.passes.records import Record


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


def test_a_record_is_a_dataclass_once_there_is_one():
    assert not dataclasses.is_dataclass(Sent)
    assert dataclasses.is_dataclass(Sent(1)) and dataclasses.is_dataclass(Sent)


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
    options = {"frozen": True, "eq": True}
    Fresh = type("Fresh", (Record,), {"__annotations__": {"size": int}, "__module__": __name__})
    assert Fresh._pending == options
    found = object.__new__(Fresh)
    found.__setstate__({"size": 3})
    assert found == Fresh(3) and pickle.loads(data) == Sent(3)


def test_threads_may_make_the_first_at_once():
    for _ in range(50):
        fresh = type("Fresh", (Record,), {"__annotations__": {"size": int}, "__module__": __name__})
        start, found = threading.Barrier(4), []

        def make(cls=fresh, start=start, found=found):
            start.wait()
            found.append(cls(7))

        threads = [threading.Thread(target=make) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(found)) == 1 and len(found) == 4
