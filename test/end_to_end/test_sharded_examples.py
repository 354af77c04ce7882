"""Examples of training over devices give the losses of one device, and move what their scheme needs."""

import re
import runpy
from typing import Any

import numpy as np
import pytest
from support.devices import auto_mesh
from support.devices import eight_devices as eight_devices
from support.example_results import EXAMPLES

import lamina
import lamina.numpy as jnp
import lamina.partitioning
from lamina import P
from lamina.sharding import NamedSharding

pytestmark = [
    pytest.mark.usefixtures("eight_devices"),
    pytest.mark.skipif(lamina.partitioning.missing() is not None, reason="needs lamina[sharding]"),
]


@pytest.mark.parametrize(
    "name",
    [
        "data_parallel",
        "sharded_batch",
        "sharded_layers",
        "sharded_weights",
        "ring_attention",
        "pipeline",
    ],
)
def test_fifty_steps_on_four_devices_are_those_of_one(name: str) -> None:
    train = runpy.run_path(str(EXAMPLES / f"{name}.py"))["train"]
    one, four = train(lamina.devices()[:1]), train(lamina.devices()[:4])
    assert len(one) == 50 and one[-1] < 0.5 * one[0]
    np.testing.assert_allclose(four, one, rtol=1e-3)


_NAMES = "all_reduce|all_gather|reduce_scatter|all_to_all|collective_permute|collective_broadcast"


def _collectives(f: Any, *args: Any) -> list[tuple[str, str]]:
    """Name and operand of each in the program of one device."""
    text = lamina.jit(f).lower(*args).compile().as_text("partitioned")
    return re.findall(rf'stablehlo\.({_NAMES})"(?:.|\n)*?: \(tensor<([^>]*)>\)', text)


def _bytes_sent(text: str, devices: int) -> dict[str, int]:
    """What each device sends, by the collective, where every part is sent no more often than it must be."""
    sent: dict[str, int] = {}
    forms = rf'stablehlo\.({_NAMES})"(?:.|\n)*?: \(tensor<([^>]*)f32>\) -> tensor<([^>]*)f32>'
    for name, *types in re.findall(forms, text):
        part = min(int(np.prod([int(n) for n in of.split("x") if n])) for of in types)
        whole = 2 * (devices - 1) / devices if name == "all_reduce" else devices - 1
        sent[name] = sent.get(name, 0) + int(4 * part * whole)
    return sent


def test_two_layers_of_megatron_move_one_all_reduce_each_way() -> None:
    mesh = auto_mesh((2,), ("model",))

    def on(shape: tuple[int, ...], *spec: Any) -> Any:
        return lamina.device_put(jnp.ones(shape), NamedSharding(mesh, P(*spec)))

    def network(x: Any, first: Any, second: Any) -> Any:
        return lamina.nn.gelu(x @ first) @ second

    args = on((8, 16)), on((16, 64), None, "model"), on((64, 16), "model")
    assert _collectives(network, *args) == [("all_reduce", "8x16xf32")]
    both = lamina.value_and_grad(lambda *a: (network(*a) ** 2).sum(), argnums=(0, 1, 2))
    assert _collectives(both, *args) == [("all_reduce", "8x16xf32")] * 2


def test_fully_sharded_weights_are_sent_twice_and_gradients_in_parts() -> None:
    """Weights are gathered forwards and backwards, gradients scattered: no gradient is sent whole."""
    example = runpy.run_path(str(EXAMPLES / "sharded_weights.py"))
    mesh = auto_mesh((4,), ("data",))
    parts = NamedSharding(mesh, P("data"))
    layers = lamina.device_put([jnp.ones((64, 64))] * 3, parts)
    x = lamina.device_put(jnp.ones((64, 64)), parts)
    step = example["step"].lower(mesh, layers, [(w, w) for w in layers], x, x, jnp.float32(1))
    others = 3 * 3 * (16 * 64) * 4  # three weights, for three other devices each a part
    assert _bytes_sent(step.compile().as_text("optimized"), 4) == {
        "all_gather": 2 * others,
        "reduce_scatter": others,
        "all_reduce": 6,  # the loss, a number
    }


def test_parts_of_sums_have_the_bits_of_sums() -> None:
    mesh = lamina.make_mesh((2, 4), ("a", "b"))
    x = np.random.default_rng(0).standard_normal((8, 8, 12)).astype(np.float32)

    def both(axis: str, order: tuple[int, ...]) -> Any:
        """The parts of a sum, taken where it is summed and, for comparison, of one that is kept whole."""

        def body(x: Any) -> Any:
            total = lamina.lax.psum(x[0], axis).transpose(order) * 0.1
            size = total.shape[0] // lamina.lax.axis_size(axis)
            start = lamina.lax.axis_index(axis) * size
            kept = lamina.lax.optimization_barrier(lamina.lax.psum(x[0] * 1.0, axis))
            whole = kept.transpose(order) * 0.1
            cut = [lamina.lax.dynamic_slice_in_dim(t, start, size) for t in (total, whole)]
            return jnp.stack(cut)[None]

        spec = P(("a", "b"))
        return lamina.jit(lamina.shard_map(body, mesh=mesh, in_specs=spec, out_specs=spec))

    for axis, order in (("a", (0, 1)), ("b", (0, 1)), ("b", (1, 0))):
        f = both(axis, order)
        assert "reduce_scatter" in f.lower(x).compile().as_text("optimized")
        out = np.asarray(f(x))
        np.testing.assert_array_equal(out[:, 0].view(np.uint32), out[:, 1].view(np.uint32))


def test_random_numbers_do_not_depend_on_the_mesh() -> None:
    key = lamina.random.key(7)
    wanted = np.asarray(lamina.jit(lambda: lamina.random.normal(key, (8, 12)))())
    for sizes, spec in (((2,), ("x",)), ((4, 2), ("y", "x")), ((8,), ("x",))):
        mesh = lamina.make_mesh(sizes, tuple("xy"[: len(sizes)]))
        f = lamina.jit(
            lambda k: lamina.random.normal(k, (8, 12)), out_shardings=NamedSharding(mesh, P(*spec))
        )
        np.testing.assert_array_equal(f(key).view(jnp.uint32), wanted.view(np.uint32))
