"""Random programs compute the same before and after passes, in the reference interpreter."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from lamina.dialects.context import make_context, parse
from lamina.dialects.vendors import ir
from lamina.passes.pipeline import Pipeline

HERE = Path(__file__).parent
OPTIMIZE = (
    "stablehlo-simplify,stablehlo-fold,stablehlo-simplify,stablehlo-cse,stablehlo-dce,"
    "stablehlo-raise-views,stablehlo-cse"
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
    done = subprocess.run(script, capture_output=True, text=True, timeout=200)
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
