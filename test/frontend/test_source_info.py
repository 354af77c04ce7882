"""Where equations come from: the user's frames, also through transformations and nested programs."""

import pytest

import lamina
import lamina.numpy as jnp
from lamina import lax
from lamina.core import source_info
from lamina.core.jaxpr import all_equations


def helper(x):
    return jnp.tanh(x)  # the line of tanh


def places(closed, name):
    """file:line and function of each equation of a primitive, outermost program first."""
    found = [e.source_info.frames for e in all_equations(closed.jaxpr) if e.primitive.name == name]
    assert found
    return found


LINE = helper.__code__.co_firstlineno + 1
TRANSFORMS = [
    lamina.jit, lamina.grad, lamina.vmap, lamina.jacrev, lamina.hessian,
    lambda f: lambda x: lamina.jvp(f, (x,), (x,)), lambda f: lambda x: lamina.linearize(f, x)[0],
    lambda f: lamina.grad(lamina.jit(f)), lambda f: lamina.vmap(lamina.jit(f)),
    lambda f: lambda x: lax.scan(lambda c, v: (c, f(v)), 0.0, x),
    lambda f: lambda x: lax.cond(x > 0, f, lambda v: v, x),
    lambda f: lambda x: lax.while_loop(lambda v: v < 1, f, x),
    lambda f: lamina.grad(lambda x: lax.fori_loop(0, 3, lambda i, v: f(v), x)),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(TRANSFORMS)))
def test_the_innermost_frame_is_the_user_s_line(number):
    transform = TRANSFORMS[number]
    needs_array = number in (2, 8, 9)
    closed = lamina.make_jaxpr(transform(helper))(jnp.ones(3) if needs_array else 1.0)
    for frames in places(closed, "tanh"):
        assert frames[0].file == __file__
        assert (frames[0].line, frames[0].function) == (LINE, "helper")
        assert frames[0].text == "return jnp.tanh(x)  # the line of tanh"


def test_what_a_gradient_computes_has_the_place_of_what_it_differentiates():
    def loss(x):
        y = jnp.sin(x)
        return jnp.sum(y * 3.0)

    first = loss.__code__.co_firstlineno
    for f in (lamina.grad(loss), lamina.grad(lamina.jit(loss)), lamina.jit(lamina.grad(loss))):
        closed = lamina.make_jaxpr(f)(jnp.ones(3))
        assert all(frames[0].line == first + 1 for frames in places(closed, "cos"))
        lines = {frames[0].line for frames in places(closed, "mul")}
        assert lines <= {first + 1, first + 2}


def test_the_stack_goes_from_the_innermost_frame_outwards():
    def outer(x):
        return middle(x) + 1

    def middle(x):
        return helper(x)

    (frames,) = places(lamina.make_jaxpr(outer)(1.0), "tanh")
    names = [f.function.rpartition(".")[2] for f in frames]
    assert names[:4] == ["helper", "middle", "outer",
                         "test_the_stack_goes_from_the_innermost_frame_outwards"]  # fmt: skip
    assert frames[1].line == middle.__code__.co_firstlineno + 1
    assert frames[0].column == 12 and str(frames[0]) == f"{__file__}:{LINE} (helper)"


def test_operators_methods_and_library_functions_show_the_caller():
    def f(x):
        a = x + 1
        b = a.sum()
        return (b, jnp.where(a > 0, a, 0.0))

    first = f.__code__.co_firstlineno
    closed = lamina.make_jaxpr(f)(jnp.ones(3))
    lines = {e.primitive.name: e.source_info.frames[0].line - first
             for e in all_equations(closed.jaxpr)}  # fmt: skip
    assert lines["add"] == 1 and lines["reduce_sum"] == 2 and lines["select_n"] == 3


def test_rules_of_the_user_are_places_too():
    @lamina.custom_jvp
    def f(x):
        return jnp.sin(x)

    @f.defjvp
    def rule(primals, tangents):
        return f(*primals), jnp.cos(primals[0]) * tangents[0]

    closed = lamina.make_jaxpr(lamina.grad(lamina.jit(lambda x: f(x))))(1.0)
    for frames in places(closed, "cos"):
        assert frames[0].function.endswith("rule")


def test_outside_of_everything_there_is_no_place():
    assert source_info.UNKNOWN.frames == ()
    assert source_info.UNKNOWN.summary() == "unknown location"


def test_places_are_reset_after_errors():
    def bad(x):
        raise ZeroDivisionError

    closed = lamina.make_jaxpr(lambda x: jnp.sin(x))(1.0)
    broken = closed.eqns[0].replace(primitive=type(closed.eqns[0].primitive)(
        "broken", abstract_eval=bad, impl=bad))  # fmt: skip
    closed.jaxpr.eqns[0] = broken
    with pytest.raises(ZeroDivisionError):
        lamina.core.eval_jaxpr(closed.jaxpr, [], 1.0)
    assert source_info.current().frames[0].function == "test_places_are_reset_after_errors"
