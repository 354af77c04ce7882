"""Programs from outside: what is refused before MLIR sees it, and what may bring down its reader."""

import os
import random
import signal
import time

import pytest

from lamina.dialects import foreign
from lamina.dialects.context import context, parse
from lamina.dialects.foreign import read
from lamina.dialects.limits import DEFAULT_LIMITS, Limits
from lamina.dialects.look_over import look_over
from lamina.dialects.parse_error import ParseError, excerpt_at, place_of
from lamina.dialects.serialize import to_bytecode, to_portable_artifact, to_text

PROGRAM = """module @jit_f {
  func.func public @main(%x: tensor<4xf32>, %p: tensor<i1>) -> tensor<4xf32> {
    %c = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
    %0 = "stablehlo.if"(%p) ({
      %1 = stablehlo.tanh %x : tensor<4xf32>
      stablehlo.return %1 : tensor<4xf32>
    }, {
      stablehlo.return %c : tensor<4xf32>
    }) : (tensor<i1>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
"""


@pytest.fixture(scope="module")
def bytecode():
    return to_bytecode(parse(PROGRAM))


def _nested_ifs(count):
    opened = "".join(f'%v{i} = "stablehlo.if"(%p) ({{ ' for i in range(count))
    closed = "".join(
        f"stablehlo.return %v{i + 1} : tensor<f32> }}, {{ stablehlo.return %x : tensor<f32> }})"
        " : (tensor<i1>) -> tensor<f32>\n"
        for i in reversed(range(count))
    )
    inside = f"%v{count} = stablehlo.abs %x : tensor<f32>\n"
    return (
        "func.func @main(%p: tensor<i1>, %x: tensor<f32>) -> tensor<f32> {\n"
        f"{opened}{inside}{closed}return %v0 : tensor<f32> }}"
    )


NESTED = {
    "ifs": _nested_ifs,
    "modules": lambda n: "module {" * n + "}" * n,
    "attributes": lambda n: f"module attributes {{a.b = {'[' * n}{']' * n}}} {{}}",
    "dictionaries": lambda n: f"module attributes {{a.b = {'{x = ' * n}1{'}' * n}}} {{}}",
    "types": lambda n: f"func.func private @f({'tuple<' * n}i32{'>' * n})",
    "dense": lambda n: (
        f"module attributes {{a.b = dense<{'[' * n}1{']' * n}> : tensor<{'1x' * n}i32>}} {{}}"
    ),
    "locations": lambda n: f"module {{}} loc({'callsite(' * n}" + '"a"' + ' at "b")' * n + ")",
    "never closed": lambda n: "module {" * n,
    "beside strings": lambda n: 'module attributes {a = "]]]]]]", b.c = ' + '["]", ' * n,
    "beside comments": lambda n: "// ]]]]]]\n" * 9 + "module attributes {a.b = " + "[ // ]\n" * n,
    "beside arrows": lambda n: "func.func private @f(" + "(i32 -> " * n,
    "minus signs": lambda n: f"module attributes {{a.b = affine_map<(d0) -> ({'- ' * n}d0)>}} {{}}",
    "aliases": lambda n: (
        "#a0 = 1 : i32\n"
        + "".join(f"#a{i + 1} = [#a{i}]\n" for i in range(n))
        + f"module attributes {{a.b = #a{n}}} {{}}"
    ),
    "aliases of types": lambda n: (
        "!t0 = i32\n" + "".join(f"!t{i + 1} = tuple<!t{i}>\n" for i in range(n)) + "module {}"
    ),
}


@pytest.mark.parametrize("kind", NESTED)
def test_what_is_nested_too_deep_is_refused(kind):
    text = NESTED[kind](100_000)
    begin = time.process_time()
    with pytest.raises(ParseError, match="nested more than 500 deep|minus signs") as caught:
        read(text, name="deep.mlir")
    assert time.process_time() - begin < 5
    assert str(caught.value).startswith("deep.mlir") and len(str(caught.value)) < 1000


@pytest.mark.parametrize("kind", ["ifs", "attributes", "types", "dense", "aliases"])
def test_what_is_nested_within_the_limit_is_read(kind):
    text = NESTED[kind](100)
    assert len(to_text(read(text))) > 100
    with pytest.raises(ParseError, match="nested more than 50 deep"):
        read(text, limits=Limits(program_depth=50))
    read(NESTED[kind](400), limits=Limits(program_depth=2000))


def test_brackets_in_strings_are_none():
    text = f'module attributes {{a.b = "{"[" * 5000}", a.c = "{"(" * 5000}\\""}} {{}} // {"<" * 5000}'
    look_over(text, "", DEFAULT_LIMITS)
    look_over(PROGRAM * 1000, "", DEFAULT_LIMITS)


def test_the_place_of_the_bracket_that_is_too_deep():
    text = f'module attributes {{\n  "é]" = {"[" * 600}'
    with pytest.raises(ParseError) as caught:
        read(text, limits=Limits(program_depth=3))
    assert (caught.value.line, caught.value.column) == (2, 13)
    assert caught.value.excerpt.splitlines()[1].index("^") == 11  # a character is two bytes


def test_what_stands_for_too_much_is_refused():
    doubled = "".join(f"#a{i + 1} = [#a{i}, #a{i}]\n" for i in range(60))
    with pytest.raises(ParseError, match="#a.* stands for more than"):
        read(f"#a0 = 1 : i32\n{doubled}module attributes {{a.b = #a60}} {{}}")
    calls = "".join(f"#l{i + 1} = loc(callsite(#l{i} at #l{i}))\n" for i in range(60))
    with pytest.raises(ParseError, match="#l.* stands for more than"):
        read(f'module {{}} loc(#l60)\n#l0 = loc("a":1:1)\n{calls}')
    used = ", ".join(f"a.b{i} = #a15" for i in range(2000))
    few = "".join(f"#a{i + 1} = [#a{i}, #a{i}]\n" for i in range(15))
    with pytest.raises(ParseError, match="aliases written out"):
        read(f"#a0 = 1 : i32\n{few}module attributes {{{used}}} {{}}")


@pytest.mark.parametrize("number", [2**63 - 1, 400_000_000, 10**30, "0x7F800000"])
def test_dimensions_that_the_parser_would_make_room_for(number):
    text = (
        "func.func @main(%x: tensor<1x2x8xf32>, %k: tensor<3x2x3xf32>) -> tensor<1x3x8xf32> {\n"
        f"  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, f, {number}]x[o, i, 0]->[b, f, 0]"
    )
    with pytest.raises(ParseError, match="there is no such rank"):
        read(text)
    look_over("dense<[1024, 4096]> [b, 0, 12, f]", "", DEFAULT_LIMITS)


def test_call_stacks_in_locations_are_read():
    """As a frontend writes them: each frame is a name, used by all that it calls."""
    frames = "".join(f"#loc{i + 1} = loc(callsite(#loc0 at #loc{i}))\n" for i in range(900))
    ops = "".join(f"  func.func private @f{i}() loc(#loc900)\n" for i in range(500))
    read(f'module {{\n{ops}}}\n#loc0 = loc("a.py":1:1)\n{frames}')


HOSTILE_TEXTS = {
    "open string": '"' + '\\"' * 500_000,
    "quotes": '"' * 1_000_001,
    "signs": ("-" * 900 + "x") * 2000,
    "aliases": "#a = [\n" * 200_000,
    "names": "#a = " + "#a" * 1_000_000,
    "dimensions": "[" + "b, 1" * 500_000,
    "open lists": "[b, " * 300_000,
    "closing": ">" * 1_000_000 + "\n" * 100_000,
}


@pytest.mark.parametrize("kind", HOSTILE_TEXTS)
def test_looking_over_takes_time_in_proportion_to_the_text(kind):
    begin = time.process_time()
    try:
        look_over(HOSTILE_TEXTS[kind], "", DEFAULT_LIMITS)
    except ParseError:
        pass
    assert time.process_time() - begin < 5


def test_sizes():
    with pytest.raises(ParseError, match=r"has 220 bytes, and at most 100 .*program_bytes"):
        read(PROGRAM[:220], limits=Limits(program_bytes=100))
    with pytest.raises(ParseError, match="program_bytes"):
        read(b"ML\xefR" + bytes(200), limits=Limits(program_bytes=100))


_PAD = """func.func @main(%x: tensor<4xf32>, %z: tensor<f32>) -> tensor<{}xf32> {{
  %0 = stablehlo.pad %x, %z, low = [{}], high = [{}], interior = [{}]
    : (tensor<4xf32>, tensor<f32>) -> tensor<{}xf32>
  return %0 : tensor<{}xf32>
}}"""


def _pad(low, high, interior, size):
    return _PAD.format(size, low, high, interior, size, size)


_WINDOW = """func.func @main(%x: tensor<{0}xf32>, %z: tensor<f32>) -> tensor<{0}xf32> {{
  %0 = "stablehlo.reduce_window"(%x, %z) ({{
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %m = stablehlo.maximum %a, %b : tensor<f32>
    stablehlo.return %m : tensor<f32>
  }}) {{window_dimensions = array<i64: {0}>, padding = dense<[[{1}, 0]]> : tensor<1x2xi64>}}
    : (tensor<{0}xf32>, tensor<f32>) -> tensor<{0}xf32>
  return %0 : tensor<{0}xf32>
}}"""


@pytest.mark.parametrize(
    "text, problem",
    [
        (_pad(2**63 - 1, 1 - 2**63, 0, 4), r"\[pad\] has 9223372036854775807 in edge_padding_"),
        (_pad(-(2**63), 2**63 - 1, 0, 3), r"\[pad\] has 922337203685477580. in edge_padding_"),
        (_pad(0, 0, (2**64 + 2) // 3, 6), "has 6148914691236517206 in interior_padding"),
        (_WINDOW.format(2**57, 2**57 - 1), r"\[reduce_window\] has an array"),
        (f"func.func private @f(tensor<{2**32}x{2**32}xf32>)", None),
        (f"func.func @f(%x: tensor<{2**32}x{2**32}xf32>) {{ return }}", "of 18446744073709551616 elem"),
        (f"func.func @f() {{ %0 = stablehlo.iota dim = 0 : tensor<{2**62}xi64> return }}", r"\[iota\]"),
        (f"func.func @f(%x: tuple<i1, tuple<tensor<{2**57}xi1>>>) {{ return }}", "no addresses"),
        (
            "func.func @f(%x: tensor<8xf32>) {\n"
            f"  %0 = stablehlo.slice %x [0:8:{2**63 - 1}] : (tensor<8xf32>) -> tensor<1xf32> return }}",
            r":2:8: \[slice\] has 9223372036854775807 in strides",
        ),
    ],
)
def test_sizes_beyond_64_bits_are_refused(text, problem):
    if problem is None:  # only what a body computes with
        read(text)
        return
    with pytest.raises(ParseError, match=problem):
        read(text)


def test_large_sizes_are_read():
    read(_WINDOW.format(2**40, 2**40 - 1))
    read(_pad(2**40, 2**40, 2**20, 4 + 3 * 2**20 + 2**41))


# Bytecode


def test_bytecode_comes_through_the_other_process_as_it_is(bytecode):
    text = to_text(parse(PROGRAM))
    with context():
        portable = to_portable_artifact(parse(PROGRAM))
    for source in (bytecode, portable):
        for isolate in (None, True, False):
            assert to_text(read(source, isolate=isolate)) == text
    for source in (PROGRAM, PROGRAM.encode()):
        assert to_text(read(source, isolate=True)) == text


def test_locations_come_with_it():
    module = parse(PROGRAM.replace("tensor<4xf32>\n  }", 'tensor<4xf32> loc("model.py":7:3)\n  }'))
    assert '"model.py":7:3' in to_text(read(to_bytecode(module)), debug_info=True)


def test_errors_of_the_other_process_name_the_place():
    with pytest.raises(ParseError, match=r"^x\.mlir:2:3: .*foo.*\n  stablehlo\.foo\n  \^"):
        read("func.func @f() {\n  stablehlo.foo\n}", name="x.mlir", isolate=True)
    with pytest.raises(ParseError, match="^y: not a readable MLIR bytecode"):
        read(b"ML\xefR\x06MLIR\0garbage", name="y")
    with pytest.raises(ParseError, match="not a readable MLIR portable artifact"):
        read(b"ML\xefR\x06StableHLO_v1.0.0\0garbage")
    with pytest.raises(ParseError, match="not UTF-8"):
        read(b"\xff\xfe", isolate=True)


def test_what_brings_the_other_process_down_is_an_error(bytecode):
    """And the next program is read as if nothing had been."""
    bomb = NESTED["attributes"](200_000)
    with pytest.raises(ParseError, match=r"MLIR's reader was brought down by it \(SIGSEGV\)"):
        read(bomb, isolate=True, limits=Limits(program_depth=10**6))
    process = foreign._kept[0]._process.pid
    read(bytecode)
    assert foreign._kept[0]._process.pid == process


def test_what_takes_too_much_memory_is_an_error():
    large = "dense<[" + ", ".join(["1.5"] * 500_000) + "]> : tensor<500000xf32>"
    text = f"module attributes {{a.b = {large}}} {{}}"
    read(text, isolate=True)
    with pytest.raises(ParseError, match="more than 2000000 bytes of memory .setting reader_bytes"):
        read(text, isolate=True, limits=Limits(reader_bytes=2_000_000))


def test_what_takes_too_long_is_an_error():
    text = "module {\n" + "func.func private @f()\n" * 300_000 + "}"
    with pytest.raises(ParseError, match=r"longer than 0\.05 s \(setting reader_seconds\)"):
        read(text, isolate=True, limits=Limits(reader_seconds=0.05))


def test_a_process_that_was_killed_is_started_again(bytecode):
    read(bytecode)
    before = foreign._kept[0]
    os.kill(before._process.pid, signal.SIGKILL)
    read(bytecode)
    assert foreign._kept[0] is not before
    os.kill(foreign._kept[0]._process.pid, signal.SIGKILL)
    foreign._kept[0]._process.wait()
    read(bytecode)


@pytest.mark.filterwarnings("ignore:os.fork")  # JAX, where a test before this has loaded it
def test_a_forked_process_has_a_reader_of_its_own(bytecode):
    read(bytecode)
    child = os.fork()
    if child == 0:
        read(bytecode)
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    read(bytecode)


def test_an_interrupted_reading_leaves_no_answer_behind(bytecode, monkeypatch):
    read(bytecode)

    def interrupted(*given):
        raise KeyboardInterrupt

    monkeypatch.setattr(foreign.select, "select", interrupted)
    with pytest.raises(KeyboardInterrupt):
        read(bytecode)
    monkeypatch.undo()
    assert "jit_f" in to_text(read(bytecode))
    with pytest.raises(ParseError):
        read(bytecode[:50])


def test_damaged_bytecode_is_an_error_or_a_module(bytecode):
    draw = random.Random(0)
    for _ in range(60):
        damaged = bytearray(bytecode)
        for _ in range(draw.randint(1, 4)):
            damaged[draw.randrange(4, len(damaged))] = draw.randrange(256)
        try:
            read(bytes(damaged))
        except ParseError as error:
            assert str(error).startswith("<input>")


# Messages


def test_errors_quote_a_part_of_a_long_line():
    line = "  %x = stablehlo.constant dense<1> : tensor<i32> " * 3000
    with pytest.raises(ParseError) as caught:
        read(f"func.func @f() {{\n{line} stablehlo.foo\n}}", name="long.mlir")
    assert len(str(caught.value)) < 500
    shown, mark = caught.value.excerpt.splitlines()
    assert shown.startswith("...") and shown[mark.index("^") :].startswith("%x = stablehlo.constant")


def test_excerpts():
    assert excerpt_at("abc", 1, 2) == "abc\n ^"
    assert excerpt_at("abc\r\n\tdef", 2, 2) == " def\n ^"
    assert excerpt_at("abc", 2, 1) == excerpt_at("\n\n", 2, 1) == ""
    assert excerpt_at("x" * 300, 1, 1) == "x" * 100 + "...\n^"
    assert excerpt_at("x" * 300, 1, 300).splitlines() == ["..." + "x" * 100, " " * 102 + "^"]
    assert excerpt_at("éé!", 1, 5) == "éé!\n  ^"
    assert place_of("ab\néc", 4) == (2, 3)


def test_long_diagnostics_are_cut():
    assert len(str(ParseError("f", "x" * 10**6))) < 1100


@pytest.mark.parametrize(
    "text", ['"stablehlo.\\FF"() : () -> ()', "module {} // \ud800", 'module @"\ud800" {}']
)
def test_text_that_is_not_utf8(text):
    try:
        read(text)
    except ParseError:
        pass
