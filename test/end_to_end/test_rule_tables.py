"""The tables of rules that libraries read and write: views of what primitives hold."""

from __future__ import annotations

import collections
from typing import Any

import numpy as np
import pytest

import lamina
from lamina import lax
from lamina import numpy as lnp
from lamina.core import ShapedArray
from lamina.core.tree_nodes import node_types
from lamina.extend import core
from lamina.interpreters import ad, batching, mlir, partial_eval

X = np.arange(1, 4, dtype=np.float32)
TABLES = {
    "jvps": (ad.primitive_jvps, lax.sin_p, lax.sort_p),
    "transposes": (ad.primitive_transposes, lax.mul_p, lax.sin_p),
    "batchers": (batching.primitive_batchers, lax.sin_p, None),
    "dce": (partial_eval.dce_rules, core.primitives.scan_p, lax.sin_p),
}


def twice_p(name: str = "twice") -> Any:
    """A primitive without any rule, given what evaluation and jit need."""
    primitive = core.Primitive(name)

    @primitive.def_impl
    def impl(x: Any) -> Any:
        return lax.mul(x, np.float32(2))

    @primitive.def_abstract_eval
    def types(x: Any) -> Any:
        return ShapedArray(x.shape, x.dtype)

    mlir.register_lowering(primitive, mlir.lower_fun(lambda x: x * 2, multiple_results=False))
    return primitive


@pytest.mark.parametrize("kind", TABLES)
def test_a_table_has_all_rules_of_its_kind(kind: str) -> None:
    table, there, _ = TABLES[kind]
    assert there in table and there in list(table) and callable(table[there])
    assert len(table) == len(list(table)) and all(callable(rule) for rule in table.values())
    assert len(table) > (3 if kind == "dce" else 50)
    new = core.Primitive("new")
    assert new not in table and new not in list(table) and table.get(new) is None
    with pytest.raises(KeyError):
        table[new]
    with pytest.raises(KeyError):
        del table[new]


@pytest.mark.parametrize("kind", TABLES)
def test_a_rule_that_is_written_is_there_until_it_is_deleted(kind: str) -> None:
    table, new = TABLES[kind][0], core.Primitive("new")
    rule = lambda *args, **params: None  # noqa: E731
    count = len(table)
    table[new] = rule
    assert table[new] is rule and new in list(table) and len(table) == count + 1
    assert table.pop(new) is rule and new not in table and len(table) == count


def test_tables_do_not_keep_primitives_alive() -> None:
    import gc

    count = len(ad.primitive_jvps)
    new = core.Primitive("short-lived")
    ad.primitive_jvps[new] = lambda primals, tangents: None
    assert len(ad.primitive_jvps) == count + 1
    del new
    gc.collect()
    assert len(ad.primitive_jvps) == count


@pytest.mark.parametrize("primitive", ["neg_p", "floor_p", "sin_p", "exp_p"])
def test_rules_of_ours_are_called_as_they_are_read(primitive: str) -> None:
    p = getattr(lax, primitive)
    x, t = lnp.asarray(X), lnp.asarray(X[::-1])
    out, tangent = ad.primitive_jvps[p]((x,), (t,))
    want, want_tangent = lamina.jvp(lambda x: p.bind(x), (x,), (t,))
    np.testing.assert_array_equal(out, want)
    np.testing.assert_array_equal(ad.instantiate_zeros(tangent), want_tangent)
    mapped, dim = batching.primitive_batchers[p]((x[:, None],), (0,))
    np.testing.assert_array_equal(mapped[:, 0], want)
    assert dim == 0


def test_a_rule_of_ours_can_be_replaced_and_put_back() -> None:
    theirs = ad.primitive_jvps[lax.sinh_p]
    try:
        ad.primitive_jvps[lax.sinh_p] = lambda primals, tangents: (primals[0], tangents[0] * 7)
        assert float(lamina.grad(lambda x: lax.sinh(x) + 0)(1.5)) == 7
    finally:
        ad.primitive_jvps[lax.sinh_p] = theirs
    assert float(lamina.grad(lambda x: lax.sinh(x) + 1)(1.5)) == pytest.approx(np.cosh(1.5))


def test_rules_given_one_by_one() -> None:
    primitive = twice_p()
    f = lambda x: primitive.bind(x).sum()  # noqa: E731
    np.testing.assert_array_equal(lamina.jit(primitive.bind)(X), 2 * X)
    with pytest.raises(NotImplementedError, match="Differentiation rule for 'twice'"):
        lamina.grad(f)(X)
    ad.deflinear(primitive, lambda ct: [primitive.bind(ct)])
    np.testing.assert_array_equal(lamina.grad(f)(X), [2, 2, 2])
    np.testing.assert_array_equal(lamina.linear_transpose(primitive.bind, X)(X)[0], 2 * X)
    batching.defvectorized(primitive)
    np.testing.assert_array_equal(lamina.vmap(lamina.grad(f))(X[:, None]), [[2], [2], [2]])
    ad.defjvp(primitive, lambda t, x: 5 * t)
    np.testing.assert_array_equal(lamina.jit(lamina.grad(lambda x: 1 * f(x)))(X), [5, 5, 5])


def test_before_there_are_types_the_error_says_so() -> None:
    bare = core.Primitive("bare")
    with pytest.raises(NotImplementedError, match="Abstract evaluation for 'bare'"):
        lamina.jit(bare.bind)(X)
    bare.def_abstract_eval(lambda x: x)
    with pytest.raises(NotImplementedError, match="lowering for 'bare'"):
        lamina.jit(bare.bind)(X)


def test_several_results() -> None:
    both = core.Primitive("both")
    both.multiple_results = True
    both.def_abstract_eval(lambda x: [x, x])
    mlir.register_lowering(both, mlir.lower_fun(lambda x: [x, -x]))
    ad.primitive_jvps[both] = lambda primals, tangents: (both.bind(*primals), [tangents[0]] * 2)
    for call in (both.bind, lamina.jit(both.bind)):
        np.testing.assert_array_equal(call(X), [X, -X])
    np.testing.assert_array_equal(lamina.grad(lambda x: sum(both.bind(x)).sum())(X), [2, 2, 2])


class Noted(core.Effect):
    pass


def test_an_equation_with_an_effect_is_kept() -> None:
    noted = twice_p("noted")
    noted.def_effectful_abstract_eval(lambda x: (x, {Noted()} if x.shape else set()))

    def f(x: Any) -> Any:
        noted.bind(x)
        noted.bind(x[0])
        return x

    jaxpr = lamina.make_jaxpr(lamina.jit(f))(X)
    assert jaxpr.effects == {Noted()}
    inner = jaxpr.eqns[0].params["jaxpr"]
    assert [e.invars[0].aval.shape for e in inner.eqns if e.primitive is noted] == [(3,)] or [
        e.effects for e in inner.eqns if e.primitive is noted
    ] == [{Noted()}, set()]
    np.testing.assert_array_equal(lamina.jit(f)(X), X)


def test_every_primitive_is_an_instance_of_the_libraries_class() -> None:
    assert isinstance(lax.sin_p, core.Primitive) and isinstance(twice_p(), core.Primitive)
    assert not isinstance(lax.sin, core.Primitive)


def test_rules_that_want_the_axis() -> None:
    primitive, seen = twice_p(), []

    def rule(axis: Any, args: Any, dims: Any, **params: Any) -> Any:
        seen.append((axis.name, axis.size))
        return primitive.bind(*args), dims[0]

    batching.fancy_primitive_batchers[primitive] = rule
    assert batching.fancy_primitive_batchers[primitive] is rule
    lamina.vmap(primitive.bind, axis_name="rows")(X)
    assert seen == [("rows", 3)]


# ---- types of pytrees ----------------------------------------------------------------------------
class Box:
    def __init__(self, content: Any) -> None:
        self.content = content


lamina.tree_util.register_pytree_node(Box, lambda b: ((b.content,), "static"), lambda _, c: Box(*c))


def test_types_of_nodes() -> None:
    children, static = node_types[Box].to_iter(Box(3))
    assert (tuple(children), static) == ((3,), "static")
    assert node_types[Box].from_iter("static", (4,)).content == 4
    assert Box in node_types and int not in node_types and node_types.get(int) is None
    assert {Box, list, tuple, dict, type(None), collections.OrderedDict} <= set(node_types)
    assert len(node_types) == len(list(node_types))
    with pytest.raises(KeyError):
        node_types[int]


@pytest.mark.parametrize("node", [[1, 2], (1, 2), {"b": 1, "a": 2}, collections.OrderedDict(b=1, a=2)])
def test_nodes_of_python_are_taken_apart_and_put_together(node: Any) -> None:
    kind = node_types[type(node)]
    children, static = kind.to_iter(node)
    hash(static)
    assert sorted(children) == [1, 2] and kind.from_iter(static, children) == node
