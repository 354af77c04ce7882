"""Arguments in forms that are seldom used, and what is said of wrong ones: as in JAX."""

from __future__ import annotations

import collections.abc
import functools
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest
from support.oracle import judge as oracle

import lamina
from lamina import numpy as lnp

ONES = np.ones((2, 3), np.float32)


def ends(vector: Any, width: Any, axis: int, options: Any) -> Any:
    filled = vector.at[: width[0]].set(options.get("low", axis + 7))
    return filled.at[len(vector) - width[1] :].set(9)


TAKEN = {
    "pad by a function": lambda m: m.np.pad(np.arange(4).reshape(2, 2), ((1, 2), (2, 1)), ends),
    "its arguments": lambda m: m.np.pad(np.arange(3.0), 2, ends, low=-1),
    "mgrid[:]": lambda m: (m.np.mgrid[:], m.np.mgrid[2:], m.np.ogrid[:], m.np.mgrid[:2, :]),
    "c_ as a matrix": lambda m: (m.np.c_["r", [1, 2], [3, 4]], m.np.c_["c", [1, 2], [3, 4]]),
    "r_ as a matrix": lambda m: (m.np.r_["r", [1, 2], [3, 4]], m.np.r_["c", [1, 2], [3, 4]]),
    "closeness of keys": lambda m: m.np.isclose(*[m.module.random.split(m.module.random.key(1))] * 2),
    "tensordot": lambda m: m.np.tensordot(ONES, ONES, axes=([0, 1], (0, 1))),
    "a closed jaxpr": lambda m: m.module.core.eval_jaxpr(m.make_jaxpr(lambda x: x + 1)(1), [], 7)
    if m.name == "lamina"
    else [8],
}
WRONG = {
    "zeros of two numbers": (TypeError, lambda m: m.np.zeros(2, 3), "meant"),
    "ones of two numbers": (TypeError, lambda m: m.np.ones(2, 3), "meant"),
    "rot90 of a vector": (ValueError, lambda m: m.np.rot90(ONES[0]), "ndim at least two"),
    "tensordot of lists": (TypeError, lambda m: m.np.tensordot(ONES, ONES, axes=([0], [0, 1])), "equal length"),
    "tensordot of words": (TypeError, lambda m: m.np.tensordot(ONES, ONES, axes=("a", "b")), "tuples or lists"),
    "covariance of integers": (ValueError, lambda m: m.np.cov(ONES, dtype=int), "cov: dtype must be"),
    "correlation of integers": (ValueError, lambda m: m.np.corrcoef(ONES, dtype=int), "corrcoef: dtype must be"),
    "repeated axis": (ValueError, lambda m: m.np.expand_dims(ONES, (1, 1)), "repeated axis"),
    "a shape that is none": (
        TypeError, lambda m: m.module.random.choice(m.module.random.key(0), 3, shape=2), "must be a sequence",
    ),
    "an axis that is not there": (ValueError, lambda m: m.lax.argmax(ONES, 2, np.int32), "nvalid axis 2"),
    "a negative axis of lax": (ValueError, lambda m: m.lax.argmin(ONES, -1, np.int32), "nvalid axis -1"),
    "a real variance": (ValueError, lambda m: m.np.var(1j * ONES, dtype=np.float16), "does not .*support"),
    "a real variance of what is no NaN": (
        ValueError, lambda m: m.np.nanvar(1j * ONES, dtype=np.int32), "does not .*support",
    ),
    "a hash": (TypeError, lambda m: hash(m.np.ones(2)), "unhashable"),
}  # fmt: skip


@pytest.mark.parametrize("case", TAKEN)
def test_taken(case: str) -> None:
    oracle.check(TAKEN[case])


@pytest.mark.parametrize("case", WRONG)
def test_refused(case: str) -> None:
    kind, program, words = WRONG[case]
    for m in (oracle.JAX, oracle.LAMINA):
        with pytest.raises(kind, match=words):
            program(m)


def test_arrays_are_not_hashable() -> None:
    for x in (lnp.ones(2), lamina.random.key(0)):
        assert not isinstance(x, collections.abc.Hashable)


def test_the_shape_of_a_result_for_what_has_a_shape_and_a_dtype() -> None:
    class Described(dict):
        shape, dtype = (3,), np.dtype("int32")

    out = lamina.eval_shape(lambda x, n: x["a"] * n + x["b"], {"a": Described(), "b": ONES[0]}, 3)
    assert (out.shape, out.dtype) == ((3,), np.float32)
    static = lamina.jit(lambda n, x: x[:n], static_argnums=0)
    assert lamina.eval_shape(static, 2, Described()).shape == (2,)


def test_copies_to_the_host_are_begun_for_other_arrays_too() -> None:
    begun = []

    class Elsewhere:
        def copy_to_host_async(self) -> None:
            begun.append(self)

    x = Elsewhere()
    assert lamina.copy_to_host_async([x, 3, lnp.ones(2)])[0] is x and begun == [x]
    of_instance = SimpleNamespace(copy_to_host_async=lambda: begun.append("own"))
    assert lamina.copy_to_host_async(of_instance) is of_instance and begun == [x, "own"]


def test_sizes_may_be_an_array_whose_values_are_known() -> None:
    for m in (lamina, jax):
        sizes = m.numpy.array([2, 1])
        assert m.lax.dynamic_slice(m.numpy.ones((3, 4)), (0, 1), sizes).shape == (2, 1)
        assert m.numpy.zeros(sizes).shape == m.numpy.ones(2).reshape(sizes).shape == (2, 1)
        with pytest.raises(TypeError, match="Shapes must be 1D sequences of concrete values"):
            m.jit(m.numpy.zeros)(sizes)


def test_an_array_that_is_given_away_may_not_be_shared() -> None:
    for m in (lamina, jax):
        with pytest.raises(ValueError, match="may_alias and donate cannot be True at the same time"):
            m.device_put(m.numpy.zeros(2), may_alias=True, donate=True)


def test_what_makes_an_array_of_itself_is_a_scalar_where_that_is_one() -> None:
    class Holder:
        shape, dtype = (), np.dtype("int32")

        def __jax_array__(self) -> lamina.Array:
            return lnp.int32(1)

    assert lnp.isscalar(Holder()) and lnp.size(Holder()) == 1


def test_tolerances_by_dtype() -> None:
    lamina.test_util.check_grads(lnp.sin, (np.float32(1),), 2, atol={np.float32: 0.01}, rtol={np.float32: 0.01})
    with pytest.raises(AssertionError):
        lamina.test_util.check_grads(lnp.sin, (np.float32(1),), 1, atol={np.float32: 0}, rtol={np.float32: 0})


# ---- pytrees -------------------------------------------------------------------------------------
def test_a_partial_of_a_partial_keeps_its_own_arguments() -> None:
    for m in (jax, lamina):
        inner = functools.partial(lambda *xs: xs, 2)
        p = m.tree_util.Partial(inner, 3)
        assert (p.args, p(4)) == ((3,), (2, 3, 4)) and m.tree_util.tree_leaves(p) == [3]
        assert p.func == inner and inner == p.func and hash(p.func) == hash(inner)
        assert m.tree_util.Partial(p, 5)() == (2, 3, 5)
        copied = m.tree_util.tree_map(lambda x: x, p)
        assert m.tree_util.tree_structure(copied) == m.tree_util.tree_structure(p)


def test_keys_of_different_kinds_have_different_hashes() -> None:
    keys = [f(1) for f in (lamina.tree_util.SequenceKey, lamina.tree_util.DictKey,
                           lamina.tree_util.FlattenedIndexKey, lamina.tree_util.GetAttrKey)]  # fmt: skip
    assert len({hash(k) for k in keys}) == 4 == len(set(keys))
    assert len({lamina.tree_util.DictKey("a"), lamina.tree_util.DictKey("a")}) == 1


def test_a_defaultdict_comes_back_with_its_keys_in_order() -> None:
    given = collections.defaultdict(list, {"b": 2, "a": 1})
    out = lamina.tree_util.tree_map(lambda x: x + 1, given)
    assert list(out) == ["a", "b"] and out == {"a": 2, "b": 3} and out["c"] == []


@pytest.mark.parametrize("parts", ["hello", (1, 2, 3), (7, 7)])
def test_a_flatten_function_that_gives_something_else(parts: Any) -> None:
    class Node:
        pass

    lamina.tree_util.register_pytree_node(Node, lambda _: parts, lambda *_: None)
    with pytest.raises(ValueError, match=r"Node'> must return a tuple \(iterable of children, static"):
        lamina.tree_util.tree_flatten(Node())


def test_fields_of_dataclasses() -> None:
    import dataclasses

    class Plain:
        x: int

    @dataclasses.dataclass
    class Late:
        x: int
        y: int = dataclasses.field(default=1, init=False)

    register = lamina.tree_util.register_dataclass
    with pytest.raises(TypeError, match="must both be specified"):
        register(Plain, data_fields=["x"])
    with pytest.raises(ValueError, match="must not overlap. Overlapping fields: {'x'}"):
        register(Plain, data_fields=["x"], meta_fields=["x"])
    with pytest.raises(ValueError, match="init=False"):
        register(Late)
    assert lamina.tree_util.tree_leaves(register(Late, drop_fields=["y"])(3)) == [3]
    assert lamina.tree.static(metadata={"static": False}).metadata == {"static": False}


def test_a_namedtuple_that_is_registered() -> None:
    pair = collections.namedtuple("pair", "x y")
    lamina.tree_util.register_pytree_node(pair, lambda p: ((p.x,), p.y), lambda y, c: pair(*c, y))
    [(path, leaf)], _ = lamina.tree_util.tree_flatten_with_path(pair(1, "static"))
    assert leaf == 1 and lamina.tree_util.keystr(path) == "[<flat index 0>]"


# ---- objects that give an array for themselves ---------------------------------------------------
class Parameter:
    def __init__(self, value: Any) -> None:
        self.value = value

    def __jax_array__(self) -> Any:
        return self.value


OPERATIONS = {
    "right": lambda m, x, p: x * p + x**p, "left": lambda m, x, p: p - x, "product": lambda m, x, p: x @ p,
    "comparison": lambda m, x, p: (x < p, p >= x), "asarray": lambda m, x, p: m.np.asarray(p),
    "array": lambda m, x, p: m.np.array(p, np.int32), "list": lambda m, x, p: m.np.array([p, x, [p.value] * 1][:2]),
    "shape": lambda m, x, p: m.np.zeros(m.np.shape(p)), "in jit": lambda m, x, p: m.jit(lambda x: x * p)(x),
    "differentiated": lambda m, x, p: m.grad(lambda x: (p * x).sum())(x),
}  # fmt: skip


@pytest.mark.parametrize("case", OPERATIONS)
def test_an_object_that_gives_an_array_is_an_operand(case: str) -> None:
    def run(m: Any) -> Any:
        x = m.np.asarray(ONES[0]) * 3
        return OPERATIONS[case](m, x, Parameter(m.np.asarray([1.0, 2.0, 4.0])))

    oracle.check(run)


def test_what_gives_no_array_is_left_to_the_other_operand() -> None:
    class Other:
        def __radd__(self, x: Any) -> str:
            return "theirs"

    assert lnp.ones(2) + Other() == "theirs"
    with pytest.raises(TypeError, match="unsupported operand"):
        lnp.ones(2) - Other()
