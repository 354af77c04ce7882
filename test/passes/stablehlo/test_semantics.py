"""Random programs compute the same before and after passes, in the reference interpreter."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lamina.dialects.context import make_context, parse
from lamina.dialects.vendors import ir
from lamina.passes.framework.pipeline import Pipeline

HERE = Path(__file__).parent
OPTIMIZE = (
    "stablehlo-simplify{fold=true},stablehlo-fold,stablehlo-cse,stablehlo-dce,"
    "stablehlo-hoist-invariants,stablehlo-compute-steps-together,stablehlo-hoist-gathers,"
    "stablehlo-raise-views,"
    "stablehlo-branch-on-scalars{least-ns=0},"
    "stablehlo-slice-first,stablehlo-cse,"
    "stablehlo-reduce-further,"
    "stablehlo-keep-products-small{min-size=8 min-growth=2},"
    "stablehlo-recompute-residuals{least-peak=1 least-bytes=16},"
    "stablehlo-recompute-products{least-bytes=16}"
)
UNFUSE = "inline{default-pipeline=},symbol-dce"


def _load(name):
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


Program = _load("random_programs").Program


def run_all(texts, folder):
    """The results of each module on fixed arguments, from one interpreter process."""
    values = np.random.RandomState(0)
    shapes = [(4, 3), (3,), (4,), (), (3, 4), (40, 3)]
    np.savez(
        folder / "arguments.npz",
        **{f"a{i}": np.asarray(values.randn(*s), np.float32) for i, s in enumerate(shapes)},
    )
    for name, text in texts.items():
        (folder / f"{name}.mlir").write_text(text)
    script = [sys.executable, str(HERE / "interpret.py"), str(folder)]
    done = subprocess.run(script, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    return {name: list(np.load(folder / f"{name}.npz").values()) for name in texts}


def transformed(text, pipeline):
    with make_context(), ir.Location.unknown():
        module = parse(text)
        Pipeline.parse(pipeline).run(module)
        return str(module)


def programs(seeds, size):
    found = {}
    for seed in seeds:
        with make_context(), ir.Location.unknown():
            found[f"p{seed:04d}"] = str(Program(seed, size).module())
    return found


@pytest.mark.parametrize("size", [5, 15, 60])
def test_fusion_changes_no_bit(size, tmp_path):
    texts = programs(range(25), size)
    fused = {f"{n}_fused": transformed(t, f"stablehlo-fuse,{UNFUSE}") for n, t in texts.items()}
    small = {
        f"{n}_small": transformed(t, f"stablehlo-fuse{{max-ops=4}},{UNFUSE}")
        for n, t in texts.items()
    }
    results = run_all(texts | fused | small, tmp_path)
    for name in texts:
        for other in ("fused", "small"):
            for before, after in zip(results[name], results[f"{name}_{other}"], strict=True):
                np.testing.assert_array_equal(before, after, err_msg=f"{name} {other}")


@pytest.mark.parametrize("size", [5, 30])
def test_optimized_programs_compute_the_same(size, tmp_path):
    texts = programs(range(100, 125), size)
    optimized = {f"{n}_o": transformed(t, OPTIMIZE) for n, t in texts.items()}
    whole = {f"{n}_w": transformed(t, f"{OPTIMIZE},stablehlo-fuse") for n, t in texts.items()}
    unfused = {name: transformed(t, UNFUSE) for name, t in whole.items()}
    results = run_all(texts | optimized | unfused, tmp_path)
    for name in texts:
        for other in ("o", "w"):
            for before, after in zip(results[name], results[f"{name}_{other}"], strict=True):
                np.testing.assert_allclose(after, before, rtol=1e-5, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("size", [20, 80])
def test_no_costly_op_is_computed_twice(size):
    """Counted over the calls of @main and of regions: as many as there are in the program."""
    for text in programs(range(200, 230), size).values():
        before = transformed(text, "stablehlo-dce")
        after = transformed(text, "stablehlo-dce,stablehlo-fuse")
        with make_context(), ir.Location.unknown():
            assert _executed(parse(after)) == _executed(parse(before)), text


@pytest.mark.parametrize("size", [20, 80])
def test_the_fused_form_is_what_is_promised(size):
    """@main and regions hold calls, control flow, views and constants; kernels are single blocks
    of known kinds without control flow or calls."""
    for text in programs(range(300, 320), size).values():
        with make_context(), ir.Location.unknown():
            module = parse(transformed(text, f"{OPTIMIZE},stablehlo-fuse"))
            for function in (op.operation for op in module.body.operations):
                names = [op.name for op in _walk(function, into_kernels=False)]
                if function.attributes["sym_name"].value == "main":
                    assert set(names) <= MAIN_OPS
                    continue
                kind = function.attributes["lamina.kind"].value
                assert kind in ("scalar", "loop", "input", "rows", "output", "library", "update")
                assert function.attributes["lamina.reason"].value
                assert not {"func.call", *CONTROL} & set(names)
                shapes = [str(t) for t in function.attributes["function_type"].value.results]
                if kind == "scalar":
                    assert all("x" not in shape for shape in shapes)
                if kind == "loop":
                    assert len({s[: s.rindex("x") if "x" in s else 0] for s in shapes}) == 1
                if kind == "update":
                    assert "lamina.inout" in str(function.attributes["arg_attrs"])


CONTROL = {"stablehlo.while", "stablehlo.if", "stablehlo.case"}
MAIN_OPS = CONTROL | {
    "func.call", "func.return", "stablehlo.return", "stablehlo.reshape", "stablehlo.constant",
}  # fmt: skip
COSTLY = ("exponential", "tanh", "sine", "logistic", "divide", "reduce", "dot_general")


def _executed(module):
    """How many ops of each costly name are there, a kernel's for each call of it."""
    functions = {
        f.operation.attributes["sym_name"].value: f.operation for f in module.body.operations
    }
    counts = dict.fromkeys(COSTLY, 0)

    def visit(root):
        for op in _walk(root, into_kernels=True):
            if op.name == "func.call":
                visit(functions[op.attributes["callee"].value])
            elif op.name.removeprefix("stablehlo.") in counts:
                counts[op.name.removeprefix("stablehlo.")] += 1

    visit(functions["main"])
    return counts


def _walk(root, into_kernels):
    for region in root.regions:
        for block in region.blocks:
            for op in block.operations:
                op = op.operation
                yield op
                if into_kernels or op.name in CONTROL:
                    yield from _walk(op, into_kernels)
