"""Trains a classifier of handwritten digits, and shows what lamina made of its training step.

    python examples/digits.py [--epochs N] [--out DIR] [--device cuda]

An MLP (64 inputs, two hidden layers) learns scikit-learn's 1,797 digits with softmax cross-entropy,
mini-batches and Adam. The whole update (loss, gradient, Adam) is one jitted function whose state is
donated, so that the parameters are updated in place. Written to out/digits: the loss curve and the
step in every form between Python and machine code. A second run finds the machine code on disk.
With --device cuda it trains on a GPU; where there is none, the step is compiled to the cubins.
"""

from __future__ import annotations

import argparse
import functools
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

import lamina
from lamina import nn, random
from lamina import numpy as jnp
from lamina.tree_util import tree_leaves, tree_map

SIZES = (64, 256, 128, 10)
BATCH = 32
LEARNING_RATE = 1e-3
WEIGHT_DECAY = 0.3
STAGES = ("jaxpr", "stablehlo", "optimized", "fused", "planned", "linalg", "llvm", "asm", "hlo",
          "manifest")  # fmt: skip

Params = list[dict[str, Any]]


class State(NamedTuple):
    """All that training changes."""

    params: Params
    momentum: Params
    spread: Params
    step: Any


# ---- the model ---------------------------------------------------------------------------------
def init_params(key: Any) -> Params:
    """Weights and biases of each layer."""
    he = nn.initializers.he_normal()
    keys = random.split(key, len(SIZES) - 1)
    return [
        {"w": he(k, (m, n)), "b": jnp.zeros(n)}
        for k, m, n in zip(keys, SIZES, SIZES[1:], strict=False)
    ]


def logits_of(params: Params, x: Any) -> Any:
    """The scores of the ten digits for each image."""
    *hidden, last = params
    for layer in hidden:
        x = nn.relu(x @ layer["w"] + layer["b"])
    return x @ last["w"] + last["b"]


def loss_of(params: Params, x: Any, y: Any) -> Any:
    """Mean cross-entropy."""
    log_probabilities = nn.log_softmax(logits_of(params, x))
    return -jnp.mean(jnp.sum(nn.one_hot(y, SIZES[-1]) * log_probabilities, axis=1))


# ---- training ----------------------------------------------------------------------------------
def init_state(key: Any) -> State:
    """Fresh parameters and Adam's zeros."""
    params = init_params(key)
    zeros = functools.partial(tree_map, jnp.zeros_like)
    return State(params, zeros(params), zeros(params), jnp.zeros((), jnp.int32))


def adam(state: State, grads: Params) -> State:
    """Adam (Kingma and Ba, 2014) over pytrees, with decoupled weight decay."""
    step = state.step + 1
    t = step.astype(jnp.float32)
    momentum = tree_map(lambda m, g: 0.9 * m + 0.1 * g, state.momentum, grads)
    spread = tree_map(lambda v, g: 0.999 * v + 0.001 * g * g, state.spread, grads)
    rate = LEARNING_RATE * jnp.sqrt(1 - 0.999**t) / (1 - 0.9**t)
    kept = 1 - LEARNING_RATE * WEIGHT_DECAY
    params = tree_map(
        lambda p, m, v: kept * p - rate * m / (jnp.sqrt(v) + 1e-8), state.params, momentum, spread
    )
    return State(params, momentum, spread, step)


@functools.partial(lamina.jit, donate_argnums=0)
def train_step(state: State, x: Any, y: Any) -> tuple[State, Any]:
    """The state after one batch, and the loss before it."""
    loss, grads = lamina.value_and_grad(loss_of)(state.params, x, y)
    return adam(state, grads), loss


@lamina.jit
def accuracy_of(params: Params, x: Any, y: Any) -> Any:
    """The share of images whose best score is their digit's."""
    return jnp.mean(jnp.argmax(logits_of(params, x), axis=1) == y)


class Data(NamedTuple):
    """Images as rows of 64 numbers in [0, 1], and their digits."""

    train_x: np.ndarray
    train_y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray


def load_data() -> Data:
    """scikit-learn's digits, a fifth of them for the test."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    images, digits = load_digits(return_X_y=True)
    images, digits = (images / 16).astype(np.float32), digits.astype(np.int32)
    train_x, test_x, train_y, test_y = train_test_split(
        images, digits, test_size=0.2, random_state=0, stratify=digits
    )
    return Data(train_x, train_y, test_x, test_y)


class Run(NamedTuple):
    """What training left behind."""

    params: Params
    losses: list[float]
    seconds_per_step: float


def train(data: Data, epochs: int) -> Run:
    """Trains from scratch; the seed is fixed, so that every run gives the same numbers."""
    key = random.key(0)
    state = init_state(key)
    count = len(data.train_x) // BATCH
    losses: list[Any] = []
    epoch_ends = []
    with tqdm(total=epochs * count, desc="training", unit="step") as bar:
        for epoch in range(epochs):
            order = np.asarray(random.permutation(random.fold_in(key, epoch), len(data.train_x)))
            for i in range(count):
                rows = order[i * BATCH : (i + 1) * BATCH]
                state, loss = train_step(state, data.train_x[rows], data.train_y[rows])
                losses.append(loss)
            bar.update(count)
            bar.set_postfix(loss=f"{float(loss):.4f}")
            epoch_ends.append(time.perf_counter())
    # The first epoch loads the programs, so it is not timed.
    seconds = (epoch_ends[-1] - epoch_ends[0]) / max(1, (epochs - 1) * count)
    return Run(state.params, [float(x) for x in losses], seconds)


# ---- the report --------------------------------------------------------------------------------
def compile_step(data: Data) -> tuple[Any, Any, float]:
    """The training step, compiled ahead of time, and the seconds that took."""
    state = init_state(random.key(0))
    began = time.perf_counter()
    traced = train_step.trace(state, data.train_x[:BATCH], data.train_y[:BATCH])
    compiled = traced.lower().compile()
    return traced, compiled, time.perf_counter() - began


def report_kernels(compiled: Any) -> str:
    """One line for each kernel: its kind, how often it is called, what is fused in it and why."""
    kernels = compiled.artifact.manifest["kernels"]
    calls = sum(k["calls"] for k in kernels)
    ops = sum(len(k["ops"]) * k["calls"] for k in kernels)
    lines = [f"  {ops} operations in {calls} kernel calls, {len(kernels)} distinct kernels:"]
    for k in kernels:
        shown = " ".join(k["ops"][:9]) + (
            f" ... {len(k['ops']) - 9} more" if len(k["ops"]) > 9 else ""
        )
        lines.append(f"  {k['calls']}x {k['kind']:8}{k['name']}: {shown}")
        lines.append(f"     {k['reason']}")
    return "\n".join(lines)


def report_memory(compiled: Any) -> str:
    """What one step needs beside its arguments."""
    m = compiled.memory_analysis()
    return (
        f"  arguments {_size(m.argument_size_in_bytes)}, results {_size(m.output_size_in_bytes)}, of "
        f"which {_size(m.alias_size_in_bytes)} in place of donated arguments,\n"
        f"  temporaries {_size(m.temp_size_in_bytes)} in one arena, machine code "
        f"{_size(m.generated_code_size_in_bytes)}"
    )


def _size(n: int) -> str:
    return f"{n / 1024:.1f} KiB" if n < 1 << 20 else f"{n / (1 << 20):.2f} MiB"


def write_stages(compiled: Any, folder: Path) -> None:
    """The step in each form that it takes on the way to machine code."""
    suffix = {"asm": "s", "llvm": "ll", "hlo": "txt", "jaxpr": "txt", "manifest": "json"}
    for i, stage in enumerate(STAGES):
        name = f"{i:02}_{stage}.{suffix.get(stage, 'mlir')}"
        (folder / name).write_text(compiled.as_text(stage))


def write_curve(losses: list[float], folder: Path) -> None:
    """The loss of every step, and its running mean, as a picture."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    width = 20
    smooth = np.convolve(losses, np.ones(width) / width, mode="valid")
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    axes.plot(losses, color="0.75", linewidth=0.8, label="each step")
    axes.plot(np.arange(len(smooth)) + width - 1, smooth, label=f"mean of {width} steps")
    axes.set(yscale="log", xlabel="step", ylabel="cross-entropy", title="Handwritten digits")
    axes.legend()
    figure.savefig(folder / "loss.png", dpi=150)


def compile_to_cubins(data: Data, folder: Path, why: str) -> None:
    """The training step for a GPU that is not here: its machine code, as files."""
    state = init_state(random.key(0))
    lowered = train_step.lower(state, data.train_x[:BATCH], data.train_y[:BATCH])
    compiled = lowered.compile(target="cuda")
    cubins = {k: v for k, v in compiled.artifact.objects.items() if k.endswith(".cubin")}
    for name, code in cubins.items():
        (folder / name).write_bytes(code)
    print(f"not trained: {why}")
    print(f"the training step for sm_90a: {len(cubins)} kernels, {_size(sum(map(len, cubins.values())))} of "
          f"machine code, written to {folder}")  # fmt: skip


def main() -> None:
    """Trains, reports, writes the files."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--out", type=Path, default=Path("out/digits"))
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)

    data = load_data()
    if options.device == "cuda":
        try:
            lamina.config.update("default_device", lamina.devices("cuda")[0])
        except RuntimeError as missing:
            return compile_to_cubins(data, options.out, str(missing))
    traced, compiled, compile_seconds = compile_step(data)
    run = train(data, options.epochs)
    test = float(accuracy_of(run.params, data.test_x, data.test_y))
    weights = sum(x.size for x in tree_leaves(run.params))

    source = "machine code found in the disk cache" if compiled.from_cache else "compiled afresh"
    print(f"\ntest accuracy  {test:.2%} of {len(data.test_x)} digits ({weights} weights)")
    print(f"training step  {len(traced.jaxpr.eqns)} equations, ready after {compile_seconds:.2f} s "
          f"({source})")  # fmt: skip
    print(f"               {run.seconds_per_step * 1e6:.0f} us a step, batches of {BATCH}, "
          f"{compiled.cost_analysis()['flops'] / 1e6:.1f} Mflop each")  # fmt: skip
    print(f"kernels\n{report_kernels(compiled)}")
    print(f"memory of a step\n{report_memory(compiled)}")
    write_stages(compiled, options.out)
    write_curve(run.losses, options.out)
    print(f"written to {options.out}: loss.png, and the step as {', '.join(STAGES)}")
    if not compiled.from_cache:
        print("run it again: it will start from the disk cache")


if __name__ == "__main__":
    main()
