"""Pytrees: structure, order and errors are JAX's."""

import collections
import dataclasses
import functools

import jax
import numpy as np
import pytest
from support.oracle.judge import JAX, LAMINA

import lamina
from lamina import tree_util

Point = collections.namedtuple("Point", "x y")
TREES = [
    None, 1, (), [], {}, (1,), [1, None, (2, [3])], {"b": 1, "a": 2}, {"b": {"z": 1, "y": None}, "a": ()},
    collections.OrderedDict([("b", 1), ("a", 2)]), collections.defaultdict(int, {"q": 1, "p": 2}),
    Point(1, [2, 3]), Point(None, Point(1, 2)), {1: "a", 2: "b"}, {(1, 2): 3}, [{"a": Point(1, {})}],
    "text", np.arange(3), {"x": frozenset([1])},
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(TREES)))
def test_leaves_and_their_order(number):
    tree = TREES[number]
    assert [repr(x) for x in tree_util.tree_leaves(tree)] == [
        repr(x) for x in jax.tree_util.tree_leaves(tree)
    ]
    leaves, treedef = tree_util.tree_flatten(tree)
    again = tree_util.tree_unflatten(treedef, leaves)
    assert repr(again) == repr(tree) or isinstance(tree, dict)
    assert type(again) is type(tree)
    assert tree_util.tree_structure(tree) == treedef and hash(treedef) is not None
    assert treedef.num_leaves == len(leaves)


@pytest.mark.parametrize("number", range(len(TREES)))
def test_paths_are_written_as_jax_writes_them(number):
    tree = TREES[number]
    ours = [tree_util.keystr(path) for path, _ in tree_util.tree_flatten_with_path(tree)[0]]
    theirs = [jax.tree_util.keystr(p) for p, _ in jax.tree_util.tree_flatten_with_path(tree)[0]]
    assert ours == theirs


def test_is_leaf():
    for m in (LAMINA, JAX):
        leaves = m.tree_util.tree_leaves([1, (2, 3), None], is_leaf=lambda x: isinstance(x, tuple))
        assert leaves == [1, (2, 3)]
        assert m.tree_util.tree_leaves([1, None], is_leaf=lambda x: x is None) == [1, None]


def test_structures_tell_containers_apart():
    trees = [[1], (1,), {"a": 1}, {"b": 1}, Point(1, 2), (1, 2), collections.OrderedDict(a=1), None, 1]
    structures = [tree_util.tree_structure(t) for t in trees]
    for i, a in enumerate(structures):
        assert [a == b for b in structures].index(True) == i


def test_map_over_trees_that_extend_the_first():
    for m in (LAMINA, JAX):
        got = m.tree_util.tree_map(lambda a, b: (a, b), {"x": 1, "y": [2]}, {"x": (5, 6), "y": [7]})
        assert got == {"x": (1, (5, 6)), "y": [(2, 7)]}


@pytest.mark.parametrize(("a", "b"), [
    ((1, 2), (1,)), ({"a": 1}, {"b": 1}), ([1], (1,)), ((1, 2), 3), (Point(1, 2), (1, 2)), (None, 1),
    ({"a": 1}, {"a": 1, "b": 2}),
])  # fmt: skip
def test_map_over_trees_that_differ(a, b):
    for m in (LAMINA, JAX):
        with pytest.raises((ValueError, TypeError)):
            m.tree_util.tree_map(lambda x, y: 0, a, b)


def test_keys_that_cannot_be_compared_are_sorted_by_type():
    # JAX refuses such dicts.
    one, other = {1: "i", "a": "s", 0: "j"}, {"a": "s", 0: "j", 1: "i"}
    assert tree_util.tree_leaves(one) == tree_util.tree_leaves(other) == ["j", "i", "s"]
    assert tree_util.tree_structure(one) == tree_util.tree_structure(other)
    assert lamina.jit(lambda d: {k: v + 1 for k, v in d.items()})({"a": 2.0, 1: 1.0}) == {1: 2, "a": 3}


def test_reduce_all_transpose():
    assert tree_util.tree_reduce(lambda a, b: a + b, {"b": 2, "a": [3, 4]}) == 9
    assert tree_util.tree_reduce(lambda a, b: a + b, [], 5) == 5
    assert tree_util.tree_all([True, {"a": 1}]) and not tree_util.tree_all([True, 0])
    outer, inner = {"a": 0, "b": 0}, (0, 0)
    for m in (LAMINA, JAX):
        t = m.tree_util
        got = t.tree_transpose(t.tree_structure(outer), t.tree_structure(inner),
                               {"a": (1, 2), "b": (3, 4)})  # fmt: skip
        assert got == ({"a": 1, "b": 3}, {"a": 2, "b": 4})
    with pytest.raises(TypeError, match="Mismatch"):
        tree_util.tree_transpose(tree_util.tree_structure(outer), tree_util.tree_structure(inner), [1])


def test_unflatten_wants_the_right_number_of_leaves():
    treedef = tree_util.tree_structure((1, [2]))
    for leaves in ([1], [1, 2, 3]):
        with pytest.raises(ValueError):
            tree_util.tree_unflatten(treedef, leaves)
    assert tree_util.tree_unflatten(treedef, iter([5, 6])) == (5, [6])


class Pair:
    def __init__(self, left, right, tag="t"):
        self.left, self.right, self.tag = left, right, tag


tree_util.register_pytree_node(Pair, lambda p: ([p.left, p.right], p.tag),
                               lambda tag, kids: Pair(*kids, tag))  # fmt: skip


@tree_util.register_pytree_node_class
class Box:
    def __init__(self, value):
        self.value = value

    def tree_flatten(self):
        return (self.value,), None

    @classmethod
    def tree_unflatten(cls, aux, children):
        return cls(*children)


@functools.partial(tree_util.register_dataclass, data_fields=["w", "b"], meta_fields=["name"])
@dataclasses.dataclass
class Layer:
    w: object
    b: object
    name: str = "layer"


@tree_util.register_dataclass
@dataclasses.dataclass
class Auto:
    x: object
    n: int = dataclasses.field(default=3, metadata={"static": True})


@tree_util.register_static
class Mode:
    def __init__(self, name):
        self.name = name

    def __hash__(self):
        return hash(self.name)

    def __eq__(self, other):
        return self.name == other.name


def test_custom_nodes():
    assert tree_util.tree_leaves(Pair(1, Box([2, 3]))) == [1, 2, 3]
    doubled = tree_util.tree_map(lambda x: 2 * x, Pair(1, Box(2), "tag"))
    assert (doubled.left, doubled.right.value, doubled.tag) == (2, 4, "tag")
    assert tree_util.tree_structure(Pair(1, 2, "a")) != tree_util.tree_structure(Pair(1, 2, "b"))
    layer = tree_util.tree_map(lambda x: x + 1, Layer(1, 2, "l"))
    assert (layer.w, layer.b, layer.name) == (2, 3, "l")
    assert tree_util.tree_leaves(Auto(1)) == [1]
    assert tree_util.tree_leaves(Mode("a")) == []


def test_custom_nodes_through_transformations():
    traces = []

    @lamina.jit
    def f(p, layer, auto, mode):
        traces.append(1)
        return Pair(p.left * layer.w, Box(p.right.value + layer.b * auto.n), mode.name)

    args = (Pair(2.0, Box(3.0)), Layer(5.0, 7.0), Auto(1.0))
    out = f(*args, Mode("a"))
    assert (float(out.left), float(out.right.value), out.tag) == (10.0, 24.0, "a")
    f(*args, Mode("a"))
    assert len(traces) == 1
    f(*args, Mode("b"))
    f(Pair(2.0, Box(3.0)), Layer(5.0, 7.0, "other"), Auto(1.0), Mode("a"))
    f(Pair(2.0, Box(3.0)), Layer(5.0, 7.0), Auto(1.0, 4), Mode("a"))
    assert len(traces) == 4
    grad = lamina.grad(lambda p: p.left * p.right.value)(Pair(2.0, Box(3.0), "kept"))
    assert (float(grad.left), float(grad.right.value), grad.tag) == (3.0, 2.0, "kept")
    batched = lamina.vmap(lambda p: Box(p.left + p.right))(Pair(np.arange(3.0), np.ones(3)))
    assert batched.value.shape == (3,)


def test_partial_is_a_node_whose_arguments_are_leaves():
    p = tree_util.Partial(lambda a, b, c: a * b + c, 2.0, c=3.0)
    assert tree_util.tree_leaves(p) == [2.0, 3.0]
    assert lamina.jit(lambda f, x: f(x))(p, 5.0) == 13.0
    assert float(lamina.grad(lambda f: f(5.0))(p).args[0]) == 5.0


def test_registering_twice_is_refused():
    with pytest.raises(ValueError):
        tree_util.register_pytree_node(Pair, lambda p: ((), None), lambda aux, kids: Pair(1, 2))


def test_unregistered_objects_are_leaves():
    class Thing:
        pass

    thing = Thing()
    assert tree_util.tree_leaves([thing, {1, 2}]) == [thing, {1, 2}]
    with pytest.raises(TypeError, match="Error interpreting argument to <?.*as an abstract array"):
        lamina.jit(lambda x: 1.0)(thing)


def test_tree_namespace_has_jax_s_names():
    assert lamina.tree.map(lambda x: x + 1, {"a": 1}) == {"a": 2}
    assert lamina.tree.leaves((1, [2])) == [1, 2]
    leaves, treedef = lamina.tree.flatten((1, [2]))
    assert lamina.tree.unflatten(treedef, leaves) == (1, [2])
    assert lamina.tree.structure((1, [2])) == treedef
    assert lamina.tree.reduce(lambda a, b: a + b, (1, [2])) == 3
    assert lamina.tree.all((1, [True]))


@pytest.mark.parametrize(
    ("first", "second", "where", "text"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, "", "has a dict of keys ['a'], but the other tree has one"),
        ({"x": [1, (1, 2)]}, {"x": [1, (1,)]}, "['x'][1]", "a tuple of length 2, but the other"),
        ([None, (1,)], [None, [1]], "[1]", "<class 'tuple'>"),
        (None, 1, "", "<class 'NoneType'>"),
    ],
)
def test_map_says_where_structures_differ(first, second, where, text) -> None:
    with pytest.raises(ValueError, match="pytree structure error: different") as raised:
        lamina.tree.map(lambda x, y: x, first, second)
    assert f"tree_map tree{where}\n" in str(raised.value) and text in str(raised.value)


def test_dictionaries_of_other_classes_are_known_to_the_fast_path():
    ordered = lamina.jit(lambda d: collections.OrderedDict((k, v * 2) for k, v in d.items()))
    for d in ({"b": 1.0, "a": 2.0}, {"b": 3.0, "a": 4.0}):
        got = ordered(collections.OrderedDict(d))
        assert list(got) == ["b", "a"] and [float(v) for v in got.values()] == [2 * v for v in d.values()]
    assert ordered.cache_size() == 1
    assert list(ordered(collections.OrderedDict(a=1.0, b=2.0))) == ["a", "b"] and ordered.cache_size() == 2

    sums = lamina.jit(lambda d: sum(d["a"]) - d["b"])
    for values in ((1.0, 2.0), (3.0, 4.0)):
        d = collections.defaultdict(list)
        d["b"], d["a"] = 5.0, list(values)
        assert float(sums(d)) == sum(values) - 5
    assert sums.cache_size() == 1
    both = collections.defaultdict(list, {"a": [1.0], 3: 2.0})  # keys that can't be sorted
    assert float(lamina.jit(lambda d: d["a"][0] + d[3])(both)) == 3
