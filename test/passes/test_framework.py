"""Pipelines as text, options, dumps, failures: the pass framework without any particular pass."""

import os
import pickle
import shlex
import tempfile
from collections import Counter
from typing import Literal

import pytest

from lamina.dialects import stablehlo as hlo
from lamina.dialects.context import make_context, parse
from lamina.dialects.vendors import ir
from lamina.passes.framework import instrumentation, options, registry
from lamina.passes.framework.base import CompileError, Pass, PassError, source_frames
from lamina.passes.framework.find import find_ops
from lamina.passes.framework.pipeline import Pipeline, checked_if_it_fails

TEXT = """
module @jit_f {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.sine %x : tensor<4xf32>
    %1 = stablehlo.sine %x : tensor<4xf32>
    %2 = stablehlo.add %0, %1 : tensor<4xf32>
    return %2 : tensor<4xf32>
  }
}
"""


@pytest.fixture
def module():
    with make_context(), ir.Location.unknown():
        yield parse(TEXT)


class Optional(Pass):
    """A pass with an option of every kind."""

    size: int = 3
    rate: float = 0.5
    eager: bool = False
    mode: Literal["fast", "small"] = "fast"
    dims: tuple[int, ...] = ()
    limit: int | None = None
    label: str = ""

    def run(self, module):
        pass


def made(*pairs):
    return options.make(Optional, list(pairs))


def test_options_are_read_by_their_types():
    found = made(("size", "7"), ("rate", "1e-3"), ("eager", ""), ("mode", "small"),
                 ("dims", "1,2"), ("limit", "9"), ("label", "x"))  # fmt: skip
    assert found == Optional(7, 1e-3, True, "small", (1, 2), 9, "x")
    assert made(("limit", "none"), ("eager", "false")) == Optional()


def test_a_pass_is_made_once():
    assert (Optional(7).size, Optional(7, label="x").but(size=8)) == (7, Optional(8, label="x"))
    assert len({Optional(7), Optional(size=7), Optional(), Spoil()}) == 3
    assert Optional(7) != Spoil() and "size=7" in repr(Optional(7))
    with pytest.raises(AttributeError, match="made once; size can't be set"):
        Optional().size = 8
    for wrong in (lambda: Optional(sise=7), lambda: Optional(7, size=7), lambda: Spoil(7)):
        with pytest.raises(TypeError, match="it takes (size, rate, eager|no options)"):
            wrong()
    with pytest.raises(TypeError, match="option size of Lacking has no default"):

        class Lacking(Pass):
            size: int


@pytest.mark.parametrize(
    "pair, message",
    [
        (("sise", "7"), r"has no option 'sise'; it takes size=3 \(an integer\), rate=0.5"),
        (("size", "x"), "size=x}: expected an integer, got 'x'"),
        (("eager", "perhaps"), "expected true or false, got 'perhaps'"),
        (("mode", "slow"), "expected one of fast, small, got 'slow'"),
        (("dims", "1,a"), "expected an integer, got 'a'"),
    ],
)
def test_wrong_options_say_what_is_expected(pair, message):
    with pytest.raises(ValueError, match=message):
        made(pair)


def test_a_pipeline_prints_as_it_is_read():
    text = "stablehlo-cse,canonicalize{max-iterations=3},func.func(cse,canonicalize)"
    pipeline = Pipeline.parse(f"{text}, stablehlo-fuse{{max-ops=8}}")
    assert str(pipeline) == f"{text},stablehlo-fuse{{max-ops=8}}"
    assert Pipeline.parse(f"builtin.module({pipeline})") == pipeline
    assert Pipeline.of(text, registry.find("stablehlo-fuse")(max_ops=8)) == pipeline
    assert Pipeline.parse("") == Pipeline(())


@pytest.mark.parametrize(
    "text, message",
    [
        ("cse)", "unexpected '\\)' at column 4"),
        ("cse{", "ends inside brackets"),
        ("no-such-pass", "no pass named 'no-such-pass'"),
        ("stablehlo-cse:3", "expected options in braces"),
        ("canonicalize{colour=red}", "no such option colour"),
        ("func.func(cse,stablehlo-dce)", "stablehlo-dce runs on the whole module"),
        ("=", "expected a pass name"),
    ],
)
def test_a_wrong_pipeline_says_where(text, message):
    with pytest.raises(ValueError, match=message):
        Pipeline.parse(text)


def test_every_pass_is_found_by_its_name_and_documented():
    found = registry.all_passes()
    assert "stablehlo-fuse" in found
    for name, cls in found.items():
        assert registry.find(name) is cls
        assert len(registry.documentation(cls).splitlines()[0]) > 10, name


def test_dumps_are_numbered_files_that_parse(module, tmp_path, monkeypatch):
    monkeypatch.setenv("LAMINA_DUMP", str(tmp_path))
    monkeypatch.setenv("LAMINA_DUMP_PASSES", "changed")
    with instrumentation.compiling("jit_f") as watch:
        Pipeline.parse("canonicalize,stablehlo-cse,stablehlo-dce").run(module)
        Pipeline.parse("stablehlo-fuse").run(module)
        watch.dump.write("done.txt", "x")
    (folder,) = (path for path in tmp_path.iterdir() if path.is_dir())
    names = sorted(path.name for path in folder.iterdir())
    written = ["0000_after_stablehlo-cse.mlir", "0001_after_stablehlo-fuse.mlir", "0002_done.txt"]
    assert names == [*written, "index.txt"]
    with make_context(), ir.Location.unknown():
        assert "fused_add_0" in str(parse((folder / names[1]).read_text()))


def test_all_passes_are_dumped_if_asked(module, tmp_path, monkeypatch):
    monkeypatch.setenv("LAMINA_DUMP", str(tmp_path))
    monkeypatch.setenv("LAMINA_DUMP_PASSES", "all")
    Pipeline.parse("canonicalize,cse").run(module)
    (folder,) = (path for path in tmp_path.iterdir() if path.is_dir())
    assert len(list(folder.glob("*.mlir"))) == 2


def test_dumps_sort_as_they_were_written_and_have_an_index(tmp_path):
    seconds = iter(range(1000))
    for name in ("0000_f", "0001_g"):
        dump = instrumentation.Dump(tmp_path / name, clock=lambda: float(next(seconds)))
        paths = [dump.write(f"{i}.txt", "x" * i) for i in range(120)]
        assert sorted(paths) == paths
        head, *lines = (tmp_path / name / "index.txt").read_text().splitlines()
        assert head.split() == ["ms", "bytes", "file"]
        assert [line.split()[1:] for line in lines] == [[str(i), p.name] for i, p in enumerate(paths)]
        assert lines[2].split()[0] == "3000.0"
    head, *lines = (tmp_path / "index.txt").read_text().splitlines()
    assert head.split() == ["date", "time", "compilation"]
    assert [line.split()[2] for line in lines] == ["0000_f", "0001_g"]


def test_timing_reports_passes_and_statistics(module, capsys, monkeypatch):
    monkeypatch.setenv("LAMINA_TIMING", "1")
    with instrumentation.compiling("jit_f"):
        Pipeline.parse("stablehlo-fuse,cse").run(module)
    shown = capsys.readouterr().err
    assert "jit_f" in shown and "stablehlo-fuse  1 kernels" in shown


def test_timing_is_sorted_summed_and_leaves_out_what_took_nothing():
    run = instrumentation.PassRun
    watch = instrumentation.Instrumentation(runs=[
        run("short", 0.000_001, Counter()),
        run("idle", 0.0, Counter()),
        run("counted", 0.0, Counter(ops=2)),
        run("long", 0.2, Counter(ops=1)),
        run("middle", 0.1, Counter()),
        run("long", 0.1, Counter(ops=3)),
    ])  # fmt: skip
    lines = [line.split(maxsplit=3) for line in watch.report().splitlines()]
    assert [line[3] for line in lines] == [
        "long x2  4 ops", "middle", "counted  2 ops", "2 others, below 0.1% each",
        "in 6 runs of 5 passes",
    ]  # fmt: skip
    assert [float(line[0]) for line in lines] == [300.0, 100.0, 0.0, 0.001, 400.001]
    assert lines[0][2] == "75.0%"


class Spoil(Pass):
    """Leaves an invalid module."""

    def run(self, module):
        block = module.body.operations[0].operation.regions[0].blocks[0]
        first, *_, last, _ = [op.operation for op in block.operations]
        first.move_after(last)


class Refuse(Pass):
    """Refuses every program."""

    def run(self, module):
        block = module.body.operations[0].operation.regions[0].blocks[0]
        raise CompileError.at(block.operations[0].operation, "not this one", hint="another one")


def test_an_invalid_module_names_the_pass_and_keeps_the_input(module, tmp_path, monkeypatch):
    monkeypatch.setenv("LAMINA_DUMP", str(tmp_path))
    with pytest.raises(PassError, match="does not dominate") as caught:
        Pipeline.of("stablehlo-cse", Spoil()).run(module)
    assert "lamina-opt" in caught.value.reproducer
    (kept,) = tmp_path.rglob("*.mlir")
    assert str(kept) in caught.value.reproducer
    assert kept.read_text().count("stablehlo.sine") == 1  # after the passes before the failing one


def test_the_last_few_failures_are_kept(module, tmp_path, monkeypatch):
    monkeypatch.delenv("LAMINA_DUMP", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "another").mkdir()
    kept = []
    for _ in range(8):
        with pytest.raises(PassError) as caught:
            Pipeline.of(Spoil()).run(parse(str(module)))
        kept.append(shlex.split(caught.value.reproducer)[1])
    assert sum(os.path.exists(path) for path in kept) == 5 == len(list(tmp_path.rglob("*.mlir")))
    assert all(map(os.path.exists, kept[-5:])) and (tmp_path / "another").exists()


def test_what_fails_unchecked_is_explained(module, tmp_path, monkeypatch):
    monkeypatch.setenv("LAMINA_DUMP", str(tmp_path))
    monkeypatch.setenv("LAMINA_VERIFY", "0")
    text = str(module)

    def lower() -> None:
        again = parse(text)
        Pipeline.of("stablehlo-cse", Spoil()).run(again)
        lowered.append(again)
        again.operation.verify()  # as before LLVM

    lowered = []
    with pytest.raises(PassError, match="does not dominate") as caught:
        checked_if_it_fails(lower)
    assert len(lowered) == 1  # the pipeline itself did not look the first time
    assert "lamina-opt" in caught.value.reproducer


def test_the_failing_one_of_upstream_passes_is_found(module, tmp_path, monkeypatch):
    monkeypatch.setenv("LAMINA_DUMP", str(tmp_path))
    with pytest.raises(PassError) as caught:
        Pipeline.parse("canonicalize,one-shot-bufferize,cse").run(module)
    assert caught.value.pass_name == "one-shot-bufferize"


def test_a_refusal_is_about_the_program(module):
    with pytest.raises(CompileError) as caught:
        Pipeline.of(Refuse()).run(module)
    assert not isinstance(caught.value, PassError)
    assert str(caught.value).startswith("[sine] not this one")
    assert "hint: another one" in str(caught.value)
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)


def test_an_error_shows_the_users_line(tmp_path):
    source = tmp_path / "model.py"
    source.write_text("def f(x):\n    return x @ w\n")
    with make_context(), ir.Location.unknown():
        user = ir.Location.name("f", ir.Location.file(str(source), 2, 12))
        caller = ir.Location.name("g", ir.Location.file("train.py", 9, 1))
        location = ir.Location.name("jit(f)/dot", ir.Location.callsite(user, [caller]))
        error = CompileError("stablehlo.dot_general", location, "sizes differ", "transpose w")
        assert str(error).splitlines() == [
            "[dot_general] sizes differ",
            f"  at {source}:2:12 in f",
            "    return x @ w",
            "           ^",
            "  hint: transpose w",
        ]
        assert [str(frame) for frame in source_frames(location)][1] == "train.py:9:1 in g"


def test_verification_can_be_switched_off(module):
    Pipeline.of(Spoil()).run(module, verify="never")


class OnlyWithDivision(Pass):
    """Counts how often it runs, on modules that have a division."""

    only_with = frozenset(("stablehlo.divide",))

    def run(self, module):
        runs.append(module)


class DivideSums(Pass):
    """Makes a division of the one sum."""

    def run(self, module):
        (total,) = find_ops(module, "stablehlo.add")
        with ir.InsertionPoint(total), total.location:
            total.results[0].replace_all_uses_with(hlo.divide(*total.operands))
        total.erase()


runs: list[ir.Module] = []


def test_a_pass_is_left_out_where_its_ops_are_not(module):
    runs.clear()
    Pipeline((OnlyWithDivision(),)).run(module)
    assert not runs
    Pipeline((OnlyWithDivision(), DivideSums(), OnlyWithDivision())).run(module)
    assert len(runs) == 1  # names are looked up again after a pass that ran


def test_passes_find_nothing_to_do_without_the_ops_that_they_name(module):
    names = {op.name for op in find_ops(module, "stablehlo.sine", "stablehlo.add")}
    before = module.operation.get_asm()
    found = [cls for cls in registry.all_passes().values() if cls.only_with]
    assert found
    for cls in found:
        assert names.isdisjoint(cls.only_with)
        cls().run(module)
        assert module.operation.get_asm() == before, cls.name
