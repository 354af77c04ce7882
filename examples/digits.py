"""Trains a classifier of handwritten digits and shows what lamina made of it.

An MLP with two hidden layers on scikit-learn's 8x8 digits, softmax cross-entropy, mini-batches, and
Adam written with pytrees; one jitted step with donated state. Writes the loss curve and every stage
of the step's program to out/digits/.

    python examples/digits.py [--epochs 30] [--out out/digits]
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from tqdm import tqdm

import lamina
import lamina.numpy as jnp

STAGES = (
    "jaxpr",
    "stablehlo",
    "optimized",
    "fused",
    "planned",
    "linalg",
    "llvm",
    "asm",
    "hlo",
    "manifest",
)
FILE_ENDING = {"jaxpr": "txt", "asm": "s", "hlo": "txt", "manifest": "json", "llvm": "ll"}


def init_params(key: Any, sizes: tuple[int, ...]) -> list[dict[str, Any]]:
    """Weights with He's initial scale, biases zero; one dict per layer."""
    keys = lamina.random.split(key, len(sizes) - 1)
    return [
        {"w": lamina.random.normal(k, (n_in, n_out)) * np.sqrt(2 / n_in), "b": jnp.zeros(n_out)}
        for k, n_in, n_out in zip(keys, sizes[:-1], sizes[1:])
    ]


def logits(params: list[dict[str, Any]], x: Any) -> Any:
    """Scores of the classes; x is (batch, pixels)."""
    for layer in params[:-1]:
        x = lamina.nn.relu(x @ layer["w"] + layer["b"])
    return x @ params[-1]["w"] + params[-1]["b"]


def loss(params: list[dict[str, Any]], x: Any, y: Any) -> Any:
    """Mean softmax cross-entropy; y holds class numbers."""
    scores = lamina.nn.log_softmax(logits(params, x))
    return -jnp.mean(jnp.sum(scores * lamina.nn.one_hot(y, 10), axis=1))


def adam(params: Any, grads: Any, m: Any, v: Any, t: Any, rate: float = 1e-3) -> Any:
    """One step of Adam (Kingma and Ba, 2015)."""
    m = lamina.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
    v = lamina.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, grads)
    scale = rate * jnp.sqrt(1 - 0.999**t) / (1 - 0.9**t)
    params = lamina.tree.map(lambda p, m, v: p - scale * m / (jnp.sqrt(v) + 1e-8), params, m, v)
    return params, m, v


def train_step(state: Any, x: Any, y: Any) -> Any:
    """(params, first moments, second moments, step count) -> the same, and the loss."""
    params, m, v, t = state
    value, grads = lamina.value_and_grad(loss)(params, x, y)
    t = t + 1
    params, m, v = adam(params, grads, m, v, t)
    return (params, m, v, t), value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--out", type=Path, default=Path("out/digits"))
    args = parser.parse_args()

    images, labels = load_digits(return_X_y=True)
    x_train, x_test, y_train, y_test = train_test_split(
        (images / 16).astype(np.float32), labels.astype(np.int32), test_size=0.2, random_state=0
    )
    params = init_params(lamina.random.key(0), (64, 128, 64, 10))
    zeros = lamina.tree.map(jnp.zeros_like, params)
    state = (params, zeros, lamina.tree.map(jnp.zeros_like, params), jnp.float32(0))

    start = time.perf_counter()
    lowered = lamina.jit(train_step, donate_argnums=0).lower(
        state, x_train[: args.batch], y_train[: args.batch]
    )
    lower_s = time.perf_counter() - start
    start = time.perf_counter()
    step = lowered.compile()
    compile_s = time.perf_counter() - start

    rng = np.random.default_rng(0)
    batches = len(x_train) // args.batch
    losses: list[float] = []
    start = time.perf_counter()
    with tqdm(total=args.epochs * batches, desc="training", unit="step") as bar:
        for _ in range(args.epochs):
            order = rng.permutation(len(x_train))
            values = []
            for i in range(batches):
                pick = order[i * args.batch : (i + 1) * args.batch]
                state, value = step(state, x_train[pick], y_train[pick])
                values.append(value)
            losses += [float(v) for v in values]
            bar.update(batches)
            bar.set_postfix(loss=f"{np.mean(losses[-batches:]):.4f}")
    train_s = time.perf_counter() - start
    predict = lamina.jit(lambda params, x: jnp.argmax(logits(params, x), axis=1))
    accuracy = float(np.mean(np.asarray(predict(state[0], x_test)) == y_test))

    report(step, lower_s, compile_s, train_s / len(losses))
    print(f"\ntest accuracy {100 * accuracy:.2f} % of {len(x_test)} digits")
    write(args.out, step, losses)
    if accuracy < 0.97:
        raise SystemExit("the accuracy is below 97 %: something is wrong")


def report(step: Any, lower_s: float, compile_s: float, step_s: float) -> None:
    """Times, kernels with what was fused, and the memory plan of the training step."""
    manifest = step.artifact.manifest
    origin = (
        "found in the disk cache" if step.from_cache else "compiled; the next run finds it cached"
    )
    print(f"\ntrace and lower {1e3 * lower_s:.0f} ms, compile {1e3 * compile_s:.0f} ms ({origin})")
    print(f"step {1e6 * step_s:.0f} us with its batch; {manifest['cost']['flops'] / 1e6:.1f} Mflop")
    print(f"\n{len(manifest['kernels'])} kernels:")
    for kernel in manifest["kernels"]:
        ops = " ".join(op for op in kernel["ops"] if op not in ("broadcast_in_dim", "reshape"))
        print(f"  {kernel['kind']:8s} {ops or 'broadcast'}")
        print(f"           {kernel['reason']}")
    memory = step.memory_analysis()
    print(
        "\nmemory:"
        f" arguments {memory.argument_size_in_bytes:,} B, results {memory.output_size_in_bytes:,} B,"
        f" of them updated in place {memory.alias_size_in_bytes:,} B,"
        f" temporaries in one arena {memory.temp_size_in_bytes:,} B,"
        f" code {memory.generated_code_size_in_bytes:,} B"
    )


def write(folder: Path, step: Any, losses: list[float]) -> None:
    """The loss curve as a picture, and the program at every stage."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    for number, stage in enumerate(STAGES):
        ending = FILE_ENDING.get(stage, "mlir")
        (folder / f"{number}_{stage}.{ending}").write_text(step.as_text(stage))
    figure, axes = plt.subplots(figsize=(6, 4))
    axes.plot(losses, linewidth=0.8)
    axes.set(xlabel="step", ylabel="cross-entropy", yscale="log", title="digits, MLP 64-128-64-10")
    figure.tight_layout()
    figure.savefig(folder / "loss.png", dpi=120)
    print(f"wrote {folder}/loss.png and the program at {len(STAGES)} stages")


if __name__ == "__main__":
    main()
