"""Jaxprs from text: what is printed parses to what was printed; mistakes are shown in place."""

import numpy as np
import pytest
from hypothesis import given, settings
from support.strategies.jaxprs import programs

import lamina
import lamina.numpy as jnp
from lamina import lax
from lamina.core import ShapedArray
from lamina.core.jaxpr import DropVar, all_equations
from lamina.core.jaxpr_checker import check_jaxpr
from lamina.errors import JaxprTypeError
from lamina.interpreters.staging import trace_to_jaxpr
from lamina.jaxpr_io import JaxprSyntaxError, parse_jaxpr


@given(programs())
@settings(max_examples=150)
def test_what_is_printed_parses_to_the_same_program(drawn):
    program, types = drawn
    closed = trace_to_jaxpr(program, [ShapedArray(*t) for t in types])
    check_jaxpr(closed)
    again = parse_jaxpr(str(closed))
    assert str(again) == str(closed)
    for a, b in zip(all_equations(closed.jaxpr), all_equations(again.jaxpr), strict=True):
        assert a.primitive is b.primitive
        assert a.params.keys() == b.params.keys()
        for name, value in a.params.items():
            if "jaxpr" not in name and name != "branches":
                assert b.params[name] == value, (a.primitive, name)
    assert [v.aval.dtype for v in again.jaxpr.outvars] == [a.dtype for a in closed.out_avals]


def test_equations_end_at_lines_or_semicolons_and_comments_are_skipped():
    one = parse_jaxpr("{ lambda ; a:f32[5]. let b:f32[5] = mul a 2.0; c:f32[5] = add b 1.0 in (c,) }")
    many = parse_jaxpr("""
      # a comment
      { lambda ; a:f32[5]. let
          b:f32[5] = mul a 2.0   # doubled
          c:f32[5] = add b 1.0
        in (c,) }""")
    assert str(one) == str(many)


def test_names_are_free():
    text = "{ lambda ; foo:i32[] in_:i32[]. let _:i32[] = add foo 1; in1:i32[] = neg in_ in (in1,) }"
    closed = parse_jaxpr(text)
    assert isinstance(closed.eqns[0].outvars[0], DropVar)
    assert str(closed) == (
        "{ lambda ; a:i32[] b:i32[]. let _:i32[] = add a 1; c:i32[] = neg b in (c,) }"
    )


def test_constants_become_leading_inputs():
    closed = parse_jaxpr("{ lambda a:f32[3] ; b:f32[3]. let c:f32[3] = add a b in (c,) }")
    assert len(closed.jaxpr.invars) == 2 and not closed.consts


@pytest.mark.parametrize("literal", ["inf", "-inf", "nan", "-1.5e-10", "2.0:f16[]", "3.0:bf16[]",
                                     "7:u8[]", "True", "(1+2j):c64[]", "-3"])  # fmt: skip
def test_literals(literal):
    kind = literal.partition(":")[2] or (
        "bool[]" if literal == "True" else "i32[]" if literal == "-3" else "f32[]"
    )
    closed = parse_jaxpr(f"{{ lambda ; a:{kind}. let in ({literal},) }}")
    (out,) = closed.jaxpr.outvars
    assert out.aval.str_short() == kind
    assert str(closed).endswith(f"in ({literal},) }}")


@pytest.mark.parametrize(
    ("text", "message", "column_of"),
    [
        ("{ lambda ; a:f32[5]. let b:f32[5] = mull a 2.0 in (b,) }", "unknown primitive 'mull'", "mull"),
        ("{ lambda ; a:f32[5]. let b:f32[5] = mul a z in (b,) }", "variable 'z' is not defined", "z in"),
        ("{ lambda ; a:f33[5]. let in (a,) }", "unknown dtype 'f33'", "f33"),
        ("{ lambda ; a:f32(5). let in (a,) }", "expected a type such as f32[2,3]", "f32("),
        ("{ lambda ; a:f32[5] let in (a,) }", "expected '.'", "let"),
        ("{ lambda ; a:f32[5]. let in (a,) } tail", "unexpected text after the jaxpr", "tail"),
        ("{ lambda ; a:f32[5]. let b:f32[5] mul a 2.0 in (b,) }", "expected '='", "mul"),
        ("{ lambda ; a:f32[5]. let b:f32[] = reduce_sum[axes=(0] a in (b,) }", "can't be read", "(0"),
        ("{ lambda ; a:f32[]. let b:f32[] = sin a; b:f32[] = cos a in (b,) }",
         "variable 'b' is defined twice", "b:f32[] = cos"),
        ("{ lambda ; a:f32[] a:f32[]. let in (a,) }", "variable 'a' is defined twice", "a:f32[]. "),
        ("lambda a", "expected '{'", "lambda"),
        ("{ lambda ; a:f32[5]. let", "expected", None),
        ("{ lambda ; a:f32[5]. let b:f32[5] = add[x=f(1)] a a in (b,) }", "is not known", "f(1)"),
        ("{ lambda ; a:f32[5]. let b:f32[5] = add[x=a.b] a a in (b,) }", "can't be read", "a.b"),
        ("{ lambda ; a:f32[5]. let b:f32[5] = add[x=1+1] a a in (b,) }", "is not allowed here", "1+1"),
    ],
)  # fmt: skip
def test_mistakes_are_shown_with_a_caret(text, message, column_of):
    with pytest.raises(JaxprSyntaxError) as e:
        parse_jaxpr(text)
    first, shown, caret = str(e.value).split("\n")
    assert first.startswith("line 1: ") and message in first
    assert shown == text
    if column_of is not None:
        assert caret.index("^") == text.index(column_of)


def test_mistakes_name_their_line():
    with pytest.raises(JaxprSyntaxError, match="^line 3: unknown primitive 'coss'\n +c:f32"):
        parse_jaxpr("{ lambda ; a:f32[]. let\n b:f32[] = sin a\n  c:f32[] = coss b\n in (c,) }")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{ lambda ; a:f32[5]. let b:f32[4] = mul a 2.0 in (b,) }",
         r"equation 0 \(mul at unknown location\): result declared f32\[4\] but is f32\[5\]"),
        ("{ lambda ; a:f32[5] c:i32[5]. let b:f32[5] = mul a c in (b,) }", "equation 0"),
        ("{ lambda ; a:f32[]. let b:f32[] c:f32[] = sin a in (b,) }", "has 2 results where 1"),
        ("{ lambda ; a:f32[2]. let b:f32[] = reduce_sum[axes=(4,)] a in (b,) }", "equation 0"),
        ("{ lambda ; a:f32[2]. let b:f32[] = reduce_sum[axis=0] a in (b,) }", "equation 0"),
    ],
)  # fmt: skip
def test_programs_that_do_not_type_check_are_refused(text, message):
    with pytest.raises(JaxprTypeError, match=message):
        parse_jaxpr(text)


def test_errors_within_nested_programs_name_the_parameter():
    text = """{ lambda ; a:f32[]. let
        b:f32[] = while[
          body_jaxpr={ lambda ; a:f32[]. let b:f32[2] = add a 1.0 in (b,) }
          body_nconsts=0
          cond_jaxpr={ lambda ; a:f32[]. let b:bool[] = lt a 5.0 in (b,) }
          cond_nconsts=0
        ] a
      in (b,) }"""
    with pytest.raises(JaxprTypeError, match="while at unknown location"):
        parse_jaxpr(text)


def test_checker_on_traced_programs_names_the_user_s_line(trace):
    def f(x):
        return lax.sin(x)

    closed = trace(f, "f32[2]")
    closed.eqns[0].outvars[0].aval = ShapedArray((3,), np.dtype("float32"))
    line = f.__code__.co_firstlineno + 1
    with pytest.raises(JaxprTypeError, match=rf"sin at .*test_jaxpr_parser.py:{line} \(.*f\)"):
        check_jaxpr(closed)


def test_checker_refuses_undefined_variables_and_wrong_constants(trace):
    from lamina.core.jaxpr import ClosedJaxpr, Jaxpr, Var

    aval = ShapedArray((2,), np.dtype("float32"))
    with pytest.raises(JaxprTypeError, match="a result is a variable that is not defined"):
        check_jaxpr(Jaxpr([], [], [Var(aval)], []))
    closed = trace(lambda a: lax.sin(a), "f32[2]")
    with pytest.raises(JaxprTypeError, match=r"equation 0 .*reads a variable that is not defined"):
        check_jaxpr(Jaxpr([], [], closed.jaxpr.outvars, closed.eqns))
    v = Var(aval)
    with pytest.raises(JaxprTypeError, match=r"constant of type f32\[3\] for variable of type f32\[2\]"):
        check_jaxpr(ClosedJaxpr(Jaxpr([v], [], [v], []), [np.zeros(3, np.float32)]))
    with pytest.raises(JaxprTypeError, match="the inputs: a variable is defined twice"):
        check_jaxpr(Jaxpr([], [v, v], [v], []))


def test_checkpoints_parse():
    f = lamina.checkpoint(lambda x: jnp.sin(lamina.ad_checkpoint.checkpoint_name(jnp.cos(x), "c")))
    text = str(lamina.make_jaxpr(lamina.grad(f))(1.0))
    assert text.count("checkpoint[") == 2
    assert str(parse_jaxpr(text)) == text
