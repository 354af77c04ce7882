"""Whole programs: a transformer's training step."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.suite import Library, Workload
from benchmarks.workloads.products import attention
from benchmarks.workloads.reductions import layernorm

WIDTH, LAYERS, HEADS, LENGTH, BATCH, VOCABULARY = 128, 12, 4, 64, 4, 256


def transformer_parameters() -> Any:
    rng = np.random.default_rng(0)

    def normal(*shape: int) -> np.ndarray:
        return (rng.standard_normal(shape) * 0.05).astype(np.float32)

    ones, zeros = np.ones(WIDTH, np.float32), np.zeros(WIDTH, np.float32)
    layer = lambda: {  # noqa: E731
        "norm1": (ones, zeros), "norm2": (ones, zeros), "qkv": normal(WIDTH, 3 * WIDTH),
        "out": normal(WIDTH, WIDTH), "up": normal(WIDTH, 4 * WIDTH),
        "down": normal(4 * WIDTH, WIDTH),
    }  # fmt: skip
    return {
        "embedding": normal(VOCABULARY, WIDTH), "position": normal(LENGTH, WIDTH),
        "layers": [layer() for _ in range(LAYERS)], "norm": (ones, zeros),
    }  # fmt: skip


def _heads(x: Any) -> Any:
    return x.reshape(BATCH, LENGTH, HEADS, WIDTH // HEADS).transpose(0, 2, 1, 3)


def transformer_loss(m: Library) -> Any:
    norm, attend = layernorm(m), attention(m)

    def f(parameters: Any, tokens: Any) -> Any:
        x = parameters["embedding"][tokens] + parameters["position"]
        for layer in parameters["layers"]:
            q, k, v = m.np.split(norm(x, *layer["norm1"]) @ layer["qkv"], 3, -1)
            mixed = attend(_heads(q), _heads(k), _heads(v)).transpose(0, 2, 1, 3)
            x = x + mixed.reshape(BATCH, LENGTH, WIDTH) @ layer["out"]
            x = x + m.nn.gelu(norm(x, *layer["norm2"]) @ layer["up"]) @ layer["down"]
        logits = norm(x, *parameters["norm"]) @ parameters["embedding"].T
        scores = m.nn.log_softmax(logits[:, :-1])
        return -m.np.mean(m.np.take_along_axis(scores, tokens[:, 1:, None], -1))

    return f


def transformer_step(m: Library) -> Any:
    """Loss, gradient and one step of Adam."""

    def f(state: Any, tokens: Any) -> Any:
        parameters, first, second, count = state
        loss, gradient = m.value_and_grad(transformer_loss(m))(parameters, tokens)
        count = count + 1
        map_ = m.tree.tree_map
        first = map_(lambda a, g: 0.9 * a + 0.1 * g, first, gradient)
        second = map_(lambda a, g: 0.999 * a + 0.001 * g * g, second, gradient)
        rate = 1e-3 * m.np.sqrt(1 - 0.999**count) / (1 - 0.9**count)
        parameters = map_(
            lambda p, a, b: p - rate * a / (m.np.sqrt(b) + 1e-8), parameters, first, second
        )
        return (parameters, first, second, count), loss

    return f


def transformer_inputs() -> tuple[Any, ...]:
    import lamina

    parameters = transformer_parameters()
    zeros = lamina.tree_util.tree_map(np.zeros_like, parameters)
    tokens = np.random.default_rng(1).integers(0, VOCABULARY, (BATCH, LENGTH)).astype(np.int32)
    return (parameters, zeros, zeros, np.float32(0)), tokens


WORKLOADS = [
    Workload("transformer, 12 layers, Adam step", "programs", transformer_step, transformer_inputs,
             1.3),
]  # fmt: skip
