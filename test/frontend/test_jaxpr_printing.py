"""The text of jaxprs: JAX's notation, names, literals, line breaks, nested programs."""

import numpy as np
import pytest

import lamina
import lamina.numpy as jnp
from lamina import lax
from lamina.core.jaxpr_printer import _letters, jaxpr_text
from lamina.jaxpr_io import parse_jaxpr


def test_short_programs_stand_on_one_line(trace):
    jaxpr = trace(lambda a: lax.add(lax.mul(a, 2.0), 1.0), "f32[5]")
    assert str(jaxpr) == (
        "{ lambda ; a:f32[5]. let b:f32[5] = mul a 2.0; c:f32[5] = add b 1.0 in (c,) }"
    )


def test_long_programs_have_one_equation_a_line(trace):
    def my_function(x):
        y = lax.mul(x, 2.0)
        z = lax.add(y, 1.0)
        return lax.mul(z, z)

    assert str(trace(my_function, "f32[10]")) == (
        "{ lambda ; a:f32[10]. let\n"
        "    b:f32[10] = mul a 2.0\n"
        "    c:f32[10] = add b 1.0\n"
        "    d:f32[10] = mul c c\n"
        "  in (d,) }"
    )


def test_width_decides_where_lines_break(trace):
    jaxpr = trace(lambda a: lax.mul(a, 2.0), "f32[5]").jaxpr
    assert "\n" not in jaxpr_text(jaxpr, width=200)
    assert jaxpr_text(jaxpr, width=20).count("\n") >= 2


def test_no_equations_and_no_inputs(trace):
    assert str(trace(lambda a: a, "i32[]")) == "{ lambda ; a:i32[]. let  in (a,) }"
    assert str(trace(lambda: [])) == "{ lambda ; . let  in () }"


def test_several_results_and_repeated_ones(trace):
    text = str(trace(lambda a, b: (a, a, lax.neg(b)), "f32[]", "f32[]"))
    assert text == "{ lambda ; a:f32[] b:f32[]. let c:f32[] = neg b in (a, a, c) }"


def test_unread_results_print_as_underscore(trace):
    text = str(trace(lambda a: (lax.sin(a), lax.cos(a))[0], "f32[2]"))
    assert text == "{ lambda ; a:f32[2]. let b:f32[2] = sin a; _:f32[2] = cos a in (b,) }"


def test_constants_stand_before_the_semicolon_once(trace):
    c = np.arange(3, dtype=np.float32)
    text = str(trace(lambda a: lax.add(lax.mul(a, c), c), "f32[3]"))
    assert text == (
        "{ lambda a:f32[3] ; b:f32[3]. let\n"
        "    c:f32[3] = mul b a\n"
        "    d:f32[3] = add c a\n"
        "  in (d,) }"
    )


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (2.0, "f32[]", "2.0"), (1e-10, "f32[]", "1e-10"), (float("inf"), "f32[]", "inf"),
        (-float("inf"), "f32[]", "-inf"), (float("nan"), "f32[]", "nan"), (3, "i32[]", "3"),
        (-3, "i32[]", "-3"), (np.float16(2), "f16[]", "2.0:f16[]"), (np.uint8(7), "u8[]", "7:u8[]"),
        (True, "bool[]", "True"), (1 + 2j, "c64[]", "(1+2j):c64[]"), (0.1, "f32[]", "0.1"),
        (np.float32(0.1), "f32[]", "0.1"), (1e300, "f32[]", "inf"),
    ],
)  # fmt: skip
def test_literals(trace, value, kind, text):
    add = lax.bitwise_xor if kind == "bool[]" else lax.add
    assert f" a {text} in" in str(trace(lambda a: add(a, value), kind))


def test_parameters_print_in_brackets_sorted(trace):
    text = str(trace(lambda a: lax.broadcast_in_dim(a, (2, 3), (1,)), "f32[3]"))
    assert "    b:f32[2,3] = broadcast_in_dim[broadcast_dimensions=(1,) shape=(2, 3)] a\n" in text


def test_nested_programs_are_indented_and_names_go_on(trace):
    def f(x):
        return lax.while_loop(lambda v: lax.lt(v, 5.0), lambda v: lax.add(v, 1.0), x)

    assert str(trace(f, "f32[]")) == (
        "{ lambda ; a:f32[]. let\n"
        "    b:f32[] = while[\n"
        "      body_jaxpr={ lambda ; c:f32[]. let d:f32[] = add c 1.0 in (d,) }\n"
        "      body_nconsts=0\n"
        "      cond_jaxpr={ lambda ; e:f32[]. let f:bool[] = lt e 5.0 in (f,) }\n"
        "      cond_nconsts=0\n"
        "    ] a\n"
        "  in (b,) }"
    )


def test_tuples_of_programs(trace):
    text = str(trace(lambda i, x: lax.switch(i, [lax.sin, lax.cos], x), "i32[]", "f32[]"))
    assert "cond[\n      branches=(\n        { lambda ; e:f32[]. let f:f32[] = sin e in (f,) }" in text


def test_what_a_jit_is_given_and_gives_has_the_names_outside():
    f = lamina.jit(lambda x, y, n: (jnp.sin(x) * y * n, y))
    assert str(lamina.make_jaxpr(lambda x: f(x, x, 3.0))(np.ones(2, np.float32))) == (
        "{ lambda ; a:f32[2]. let\n"
        "    b:f32[2] c:f32[2] = jit[\n"
        "      name=<lambda>\n"
        "      jaxpr={ lambda ; a:f32[2] c:f32[2] d:f32[]. let\n"
        "          e:f32[2] = sin a\n"
        "          f:f32[2] = mul e c\n"
        "          b:f32[2] = mul f d\n"
        "        in (b, c) }\n"
        "    ] a a 3.0\n"
        "  in (b, c) }"
    )


def test_a_long_jit_is_written_before():
    def ten_and_one(x):
        for _ in range(11):
            x = jnp.sin(x)
        return x

    outer = lamina.jit(lambda x: lamina.jit(ten_and_one)(x))
    text = str(lamina.make_jaxpr(lambda x: outer(x) + outer(x))(1.0))
    assert "let lambda = { lambda ; a:f32[]. let\n    b:f32[] = jit[name=ten_and_one jaxpr=ten_and_one] a" in text
    assert text.index("let lambda = ") < text.index("let ten_and_one = ") < text.rindex("{ lambda ;")
    assert str(parse_jaxpr(text)) == text


def test_programs_used_twice_are_written_once_before():
    inner = lamina.jit(lambda x: jnp.sin(x))
    text = str(lamina.make_jaxpr(lambda x, y: (inner(x), inner(y)))(1.0, 2.0))
    assert text == (
        "let lambda = { lambda ; a:f32[]. let b:f32[] = sin a in (b,) } in\n"
        "{ lambda ; c:f32[] d:f32[]. let\n"
        "    e:f32[] = jit[name=<lambda> jaxpr=lambda] c\n"
        "    f:f32[] = jit[name=<lambda> jaxpr=lambda] d\n"
        "  in (e, f) }"
    )
    again = parse_jaxpr(text)
    assert str(again) == text
    assert again.eqns[0].params["jaxpr"] is again.eqns[1].params["jaxpr"]
    assert again.eqns[0].params["name"] == "_lambda_"


def test_shared_branches_and_names_that_are_taken():
    f, g = lamina.jit(lambda x: jnp.sin(x)), lamina.jit(lambda x: jnp.cos(x))
    text = str(lamina.make_jaxpr(lambda x: f(g(x)) + g(f(x)))(1.0))
    assert text.count("let lambda = ") == text.count("let lambda1 = ") == 1
    assert str(parse_jaxpr(text)) == text
    closed = parse_jaxpr("""
        let f = { lambda ; a:f32[]. let b:f32[] = sin a in (b,) } in
        { lambda ; i:i32[] a:f32[]. let
            b:f32[] = cond[branches=(f { lambda ; a:f32[]. let in (a,) } f)] i a
          in (b,) }""")
    branches = closed.eqns[0].params["branches"]
    assert len(branches) == 3 and branches[0] is branches[2]


def test_letters_continue_after_z():
    names = [_letters(i) for i in range(26 * 27 + 3)]
    assert names[:2] + names[25:29] == ["a", "b", "z", "ba", "bb", "bc"]
    assert len(set(names)) == len(names)


def test_source_info_ends_each_equation(trace):
    def f(x):
        y = lax.sin(x)
        return lax.cos(y)

    first = f.__code__.co_firstlineno
    text = jaxpr_text(trace(f, "f32[2]").jaxpr, source_info=True)
    for offset, name in ((1, "sin"), (2, "cos")):
        line = next(t for t in text.splitlines() if f"= {name} " in t)
        assert f"test_jaxpr_printing.py:{first + offset} (" in line and line.rstrip("; ").endswith(
            "<locals>.f)"
        )
