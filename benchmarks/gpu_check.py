"""What this machine's GPU does with lamina: the samples, the demo, and rates beside the limits.

    python benchmarks/gpu_check.py out/gpu.json [exchange] [rates] [demo] [samples] [--small]

Exchanges memory and streams with other libraries (`gpu_exchange.py`), times programs, runs the digits
demo, and test/end_to_end with the GPU as default device; by default all four. Rates are of the same
run: bytes a second beside those of a plain copy, products beside cuBLAS and attention beside torch's,
where they are there. What fails is in the JSON with its error, and the next goes on; the JSON is
written after each. Ends with an error where there is no GPU: nothing is written then. --small is for
trying it out. `benchmarks/pack_for_gpu.py` is for a machine without a network.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import os
import re
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import lamina
import lamina.numpy as jnp
from lamina import lax, random


@dataclass(frozen=True)
class Sizes:
    """Of what is timed, and how often it is."""

    elements: int = 64 << 20  # f32: 256 MiB
    side: int = 8192  # of square matrices
    attention: tuple[int, int, int, int] = (4, 4096, 16, 128)  # batch, length, heads, width
    repeats: int = 20
    steps: int = 10_000  # of loops


_SMALL = Sizes(4096, 64, (1, 64, 1, 32), 1, 3)


def _seconds(run: Callable[[], Any], repeats: int) -> float:
    """The least time of a run, of several in a row each."""
    best = float("inf")
    for _ in range(3):
        lamina.block_until_ready(run())
        began = time.perf_counter()
        for _ in range(repeats):
            result = run()
        lamina.block_until_ready(result)
        best = min(best, (time.perf_counter() - began) / repeats)
    return best


# ---- rates ---------------------------------------------------------------------------------------
def _traffic(of: Sizes, name: str) -> dict[str, Any]:
    """Bytes that a program must move, a second."""
    x = jnp.arange(of.elements, dtype=jnp.float32).reshape(-1, 1024) % 1000 - 500
    run, traffic = {
        "copy": (lambda x: x.copy(), 2),
        "elementwise": (lamina.jit(lambda x: jnp.tanh(x) * 2 + x), 2),
        "softmax": (lamina.jit(lambda x: lamina.nn.softmax(x, axis=1)), 2),
        "layernorm": (
            lamina.jit(lambda x: (x - x.mean(1, keepdims=True)) / (x.std(1, keepdims=True) + 1e-5)), 2),
        "transpose": (lamina.jit(lambda x: x.T), 2),
        "sum of rows": (lamina.jit(lambda x: x.sum(1)), 1),
        "sum of columns": (lamina.jit(lambda x: x.sum(0)), 1),
        "sum": (lamina.jit(jnp.sum), 1),
        "cumulative sum": (lamina.jit(lambda x: jnp.cumsum(x.reshape(-1))), 2),
        "sort": (lamina.jit(lambda x: jnp.sort(x.reshape(-1))), 2),
    }[name]  # fmt: skip
    seconds = _seconds(lambda: run(x), of.repeats if name != "sort" else 1)
    return {"seconds": seconds, "bytes_per_second": traffic * x.nbytes / seconds}


_MOVED = ("copy", "elementwise", "softmax", "layernorm", "transpose", "sum of rows", "sum of columns",
          "sum", "cumulative sum", "sort")  # fmt: skip


def _launch(of: Sizes) -> dict[str, Any]:
    """A call of a program that does next to nothing."""
    small = jnp.ones(4)
    add = lamina.jit(lambda x: x + 1)
    return {"seconds": _seconds(lambda: add(small), 50 * of.repeats)}


def _loop(of: Sizes, name: str) -> dict[str, Any]:
    """A loop of small steps: what one thread, a thread a lane, or a block does (widths of up to some 256),
    and one whose kernels are launched for each step."""

    def recurrent(width: int) -> tuple[Any, ...]:
        def step(h: Any, _: Any) -> tuple[Any, None]:
            return jnp.tanh(w @ h + h), None

        w = random.normal(random.key(2), (width, width)) / width
        return lambda h: lax.scan(step, h, length=of.steps)[0], jnp.ones(width)

    def lane(c: Any) -> Any:
        def inside(s: Any) -> Any:
            return (s[1] < of.steps) & (abs(s[0]) < 2)

        return lax.while_loop(inside, lambda s: (s[0] * s[0] + c, s[1] + 1), (c * 0, 0))[1]

    run, x = {
        "scalars": lambda: (
            lambda x: lax.fori_loop(0, of.steps, lambda i, x: jnp.sin(x) + 1, x), jnp.float32(0)),
        "lanes": lambda: (lamina.vmap(lane), jnp.linspace(-2, 0.5, of.elements >> 6)),
        **{f"recurrent {n}": functools.partial(recurrent, n) for n in _WIDTHS},
    }[name]()  # fmt: skip
    jitted = lamina.jit(run)
    seconds = _seconds(lambda: jitted(x), 1)
    return {"seconds": seconds, "seconds_per_step": seconds / of.steps}


_WIDTHS = (64, 256, 512)


def _matmul(of: Sizes, dtype: Any, by: str, precision: str | None = None) -> dict[str, Any]:
    """A large product by our own kernel, by cuBLASLt in its place, or by what the runtime chooses."""
    lamina.config.update("matrix_products", by)  # which the program's key has

    def product(a, b):
        return lax.dot(a, b, precision=precision)

    product.__name__ = f"product_by_{by}"  # programs that differ in nothing are loaded once
    # Random: a GPU is faster on zeros and ones.
    keys = random.split(random.key(0))
    a, b = (random.normal(key, (of.side, of.side), jnp.float32).astype(dtype) for key in keys)
    jitted = lamina.jit(product)
    tiling = _tiling(jitted, a, b)
    seconds = _seconds(lambda: jitted(a, b), max(of.repeats // 4, 1))
    return {"seconds": seconds, "flops_per_second": 2 * of.side**3 / seconds,
            "tiling": tiling}  # fmt: skip


def _tiling(run: Any, *arguments: Any) -> str | None:
    """How the kernels of a product or of attention do it."""
    kernels = run.lower(*arguments).compile().as_text("gpu")
    found = re.search(r'lamina.tiling = "([^"]*)', kernels)
    return found and found[1]


def _convolution(of: Sizes) -> dict[str, Any]:
    """A convolution of windows of 3 x 3 over as many elements as the matrices have, 128 channels each way."""
    lamina.config.update("matrix_products", "kernel")
    width, channels = max(8, math.isqrt(of.side**2 // (8 * 128))), 128
    keys = random.split(random.key(3))
    shapes = (8, width, width, channels), (3, 3, channels, channels)
    x, w = (random.normal(key, s, jnp.float32).astype(jnp.bfloat16) for key, s in zip(keys, shapes))
    layouts = ("NHWC", "HWIO", "NHWC")
    run = lamina.jit(lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=layouts))
    tiling = _tiling(run, x, w)
    seconds = _seconds(lambda: run(x, w), max(of.repeats // 4, 1))
    work = 2 * 9 * channels * x.size
    return {"seconds": seconds, "flops_per_second": work / seconds, "tiling": tiling}


def _attention(of: Sizes) -> dict[str, Any]:
    """Causal attention forward."""
    keys = random.split(random.key(1), 3)
    q, k, v = (random.normal(key, of.attention, jnp.float32).astype(jnp.bfloat16) for key in keys)
    attend = lamina.jit(lambda *x: lamina.nn.dot_product_attention(*x, is_causal=True))
    tiling = _tiling(attend, q, k, v)
    seconds = _seconds(lambda: attend(q, k, v), max(of.repeats // 4, 1))
    return {"seconds": seconds, "flops_per_second": _attention_work(of) / seconds,
            "tiling": tiling}  # fmt: skip


def _attention_work(of: Sizes) -> float:
    batch, length, heads, width = of.attention
    return 2 * batch * heads * length * length * width


def _torch_products(of: Sizes) -> dict[str, Any]:
    """The same product by cuBLAS, and the same attention, as torch has them."""
    product = _by_torch((of.side, of.side), 2, lambda torch, a, b: a @ b)

    def attend(torch: Any, *x: Any) -> Any:
        x = tuple(each.transpose(1, 2) for each in x)
        return torch.nn.functional.scaled_dot_product_attention(*x, is_causal=True)

    attention = _by_torch(of.attention, 3, attend)
    return {"matmul_bf16_flops_per_second": 2 * of.side**3 / product,
            "attention_flops_per_second": _attention_work(of) / attention}  # fmt: skip


def _by_torch(shape: tuple[int, ...], count: int, run: Callable[..., Any]) -> float:
    """Seconds of a program of torch's on random arrays. Raises ImportError where it is not there."""
    import torch

    arrays = [torch.randn(shape, dtype=torch.bfloat16, device="cuda") for _ in range(count)]
    best = float("inf")
    for _ in range(4):
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(5):
            run(torch, *arrays)
        torch.cuda.synchronize()
        best = min(best, (time.perf_counter() - began) / 5)
    return best


def _rates(of: Sizes) -> dict[str, Callable[[], dict[str, Any]]]:
    """What is timed, by name."""
    found: dict[str, Callable[[], dict[str, Any]]] = {
        name: functools.partial(_traffic, of, name) for name in _MOVED
    }
    found["launch"] = functools.partial(_launch, of)
    for name in ("scalars", "lanes", *(f"recurrent {width}" for width in _WIDTHS)):
        found[f"loop of {name}"] = functools.partial(_loop, of, name)
    for by in ("kernel", "library", "auto"):
        found[f"matmul bf16 by {by}"] = functools.partial(_matmul, of, jnp.bfloat16, by)
    for by in ("kernel", "library"):
        found[f"matmul tf32 by {by}"] = functools.partial(_matmul, of, jnp.float32, by, "tensorfloat32")
    found["matmul f8"] = functools.partial(_matmul, of, jnp.float8_e4m3fn, "kernel")
    found["matmul f32"] = functools.partial(_matmul, of, jnp.float32, "kernel")
    found["convolution bf16"] = functools.partial(_convolution, of)
    found["attention bf16"] = functools.partial(_attention, of)
    found["torch"] = functools.partial(_torch_products, of)
    return found


def _with_ratios(rates: dict[str, Any]) -> dict[str, Any]:
    """What was timed, with each rate over its limit where both are there."""

    def rate(name: str, key: str) -> float | None:
        return rates.get(name, {}).get(key)

    ratios = {}
    for name in _MOVED[1:]:
        ratios[f"{name} of copy"] = rate(name, "bytes_per_second"), rate("copy", "bytes_per_second")
    ours = "matmul bf16 by kernel"
    flops = "flops_per_second"
    for kind in ("bf16", "tf32"):
        mine, theirs = (rate(f"matmul {kind} by {by}", flops) for by in ("kernel", "library"))
        ratios[f"matmul {kind} by kernel of cuBLASLt"] = mine, theirs
    ratios[f"{ours} of torch"] = rate(ours, flops), rate("torch", f"matmul_bf16_{flops}")
    ratios["attention bf16 of torch"] = rate("attention bf16", flops), rate("torch", f"attention_{flops}")
    return rates | {"ratios": {name: a / b for name, (a, b) in ratios.items() if a and b}}


# ---- samples and demo ----------------------------------------------------------------------------
def _samples(log: Path) -> dict[str, Any]:
    """What of test/end_to_end passes with the GPU as default device; names what does not. Where the
    time is over, what was done by then."""
    workers = min(8, os.cpu_count() or 1)
    words = ["-m", "pytest", "-v", "-n", workers, "-p", "no:cacheprovider", "test/end_to_end"]
    code = _run(words, log, {"LAMINA_TEST_PLATFORMS": "cuda,cpu"})
    ended = dict(
        line[::-1] for line in re.findall(r"(PASSED|FAILED|ERROR) (test/\S+)", log.read_text())
    )
    names = {word: sorted(n for n, w in ended.items() if w == word) for word in ("FAILED", "ERROR")}
    return {"passed": len(ended) - sum(map(len, names.values())), "failed": len(names["FAILED"]),
            "exit": code, "failures": names["FAILED"] + names["ERROR"]}  # fmt: skip


def _demo(log: Path) -> dict[str, Any]:
    """The digits demo, unchanged but for the device."""
    code = _run(["examples/digits.py", "--device", "cuda", "--epochs", "5"], log, {})
    return {"exit": code, "output": log.read_text()[-2000:]}


def _run(words: list[Any], log: Path, environment: dict[str, str]) -> int | None:
    """The exit code of a Python program, None where it took too long; what it printed is in `log`."""
    with log.open("w") as file:
        try:
            return subprocess.run(
                [sys.executable, *map(str, words)], env=os.environ | environment, check=False,
                stdout=file, stderr=subprocess.STDOUT, timeout=_MOST_SECONDS,
            ).returncode  # fmt: skip
        except subprocess.TimeoutExpired:
            return None


_MOST_SECONDS = 540  # of a stage: lent machines end commands after ten minutes
_STAGES = ("exchange", "rates", "demo", "samples")


class Report:
    """The results so far, in a file that is written after each."""

    def __init__(self, path: Path, found: dict[str, Any]) -> None:
        self.path, self.found = path, found

    def add(self, stage: str, name: str, measure: Callable[[], dict[str, Any]]) -> None:
        """One result, or what its failure says."""
        began = time.perf_counter()
        try:
            result = measure()
        except Exception as error:
            text = "".join(traceback.format_exception(error))
            result = {"error": f"{type(error).__name__}: {error}", "traceback": text[-3000:]}
        print(f"{stage} {name} ({time.perf_counter() - began:.1f} s): "
              f"{json.dumps({k: v for k, v in result.items() if k != 'traceback'})}", flush=True)  # fmt: skip
        self.found.setdefault(stage, {})[name] = result
        self.write()

    def write(self) -> None:
        self.path.write_text(json.dumps(self.found, indent=2))


def main(arguments: list[str] | None = None) -> None:
    """Checks and measures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("path", type=Path)
    parser.add_argument("stages", nargs="*", metavar="stage", help=", ".join(_STAGES))
    parser.add_argument("--small", action="store_true", help="sizes for trying it out")
    given = parser.parse_args(arguments)
    wanted = given.stages or _STAGES
    if unknown := set(wanted) - set(_STAGES):
        parser.error(f"no stage {', '.join(unknown)}; there are {', '.join(_STAGES)}")
    gpu = lamina.devices("cuda")[0]  # raises, and says what is missing
    report = Report(given.path, {
        "date": time.strftime("%Y-%m-%d"), "device": gpu.device_kind,
        "capability": gpu.compute_capability, "numpy": np.__version__,
    })  # fmt: skip
    sizes = _SMALL if given.small else Sizes()
    with lamina.default_device(gpu):
        for stage in wanted:
            if stage == "exchange":
                from gpu_exchange import checks  # beside this file

                for name, check in checks(sizes.elements).items():
                    report.add(stage, name, check)
            elif stage == "rates":
                for name, measure in _rates(sizes).items():
                    report.add(stage, name, measure)
                report.found[stage] = _with_ratios(report.found[stage])
                report.write()
                print(json.dumps(report.found[stage]["ratios"], indent=2))
            else:
                log = given.path.with_suffix(f".{stage}.txt")
                report.add(stage, "result", functools.partial(_demo if stage == "demo" else _samples, log))


if __name__ == "__main__":
    main()
