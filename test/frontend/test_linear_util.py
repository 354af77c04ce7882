"""Layers around functions, and memories of calls of them."""

import pytest

from lamina.extend import linear_util as lu


@lu.transformation2
def times(f, factor, *args):
    return factor * f(*args)


@lu.transformation_with_aux2
def counted(f, store, *args):
    store.store(len(args))
    return f(*args)


@lu.transformation
def shifted(by, *args):
    out = yield tuple(a + by for a in args), {}
    yield out


@lu.transformation_with_aux
def kept(*args):
    out = yield args, {}
    yield out, ("result", out)


def base(x, y, z=1):
    """A function."""
    return x + y * z


def test_layers():
    fun, count = counted(times(lu.wrap_init(base, {"z": 10}), 2))
    fun, result = kept(shifted(fun, 1))
    with pytest.raises(lu.StoreException, match="empty"):
        count()
    assert fun.call_wrapped(1, 2) == 2 * (2 + 3 * 10)
    assert (count(), result(), fun.__name__) == (2, ("result", 64), "base")
    with pytest.raises(lu.StoreException, match="occupied"):
        fun.call_wrapped(1, 2)
    assert "times (2,)" in repr(fun)


def test_equality_is_of_functions_and_layers():
    one, other = (times(lu.wrap_init(base), n) for n in (3, 4))
    assert one == times(lu.wrap_init(base), 3)
    assert hash(one) == hash(times(lu.wrap_init(base), 3))
    assert one != other
    again, aux = counted(one, use_eq_store=True)
    assert (again.call_wrapped(1, 2), again.call_wrapped(3, 2), aux()) == (9, 15, 2)


def test_calls_are_remembered_with_what_they_stored():
    calls = []

    @lu.cache
    def go(fun, x):
        calls.append(x)
        return fun.call_wrapped(x, 1)

    for _ in range(2):
        fun, aux = counted(times(lu.wrap_init(base), 3))
        assert (go(fun, 5), aux()) == (18, 2)
    assert go(times(lu.wrap_init(base), 4), 5) == 24
    assert calls == [5, 5]
    go.cache_clear()
    assert go(times(lu.wrap_init(base), 4), 5) == 24
    assert len(calls) == 3


def test_one_aux_of_two():
    def empty():
        raise lu.StoreException("Store empty")

    assert lu.merge_linear_aux(lambda: 7, empty) == (True, 7)
    assert lu.merge_linear_aux(empty, lambda: 8) == (False, 8)
    for pair, text in (((empty, empty), "neither"), ((lambda: 1, lambda: 2), "both")):
        with pytest.raises(lu.StoreException, match=text):
            lu.merge_linear_aux(*pair)
