"""Examples of training over devices give the losses of one device, and move what their scheme needs."""

import re
import runpy
from typing import Any

import numpy as np
import pytest
from devices import eight_devices as eight_devices
from example_results import EXAMPLES

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


def _collectives(f: Any, *args: Any) -> list[tuple[str, str]]:
    """Name and operand of each in the program of one device."""
    text = lamina.jit(f).lower(*args).compile().as_text("partitioned")
    names = "all_reduce|all_gather|reduce_scatter|all_to_all|collective_permute|collective_broadcast"
    return re.findall(rf'stablehlo\.({names})"(?:.|\n)*?: \(tensor<([^>]*)>\)', text)


def test_two_layers_of_megatron_move_one_all_reduce_each_way() -> None:
    mesh = lamina.make_mesh((2,), ("model",))

    def on(shape: tuple[int, ...], *spec: Any) -> Any:
        return lamina.device_put(jnp.ones(shape), NamedSharding(mesh, P(*spec)))

    def network(x: Any, first: Any, second: Any) -> Any:
        return lamina.nn.gelu(x @ first) @ second

    args = on((8, 16)), on((16, 64), None, "model"), on((64, 16), "model")
    assert _collectives(network, *args) == [("all_reduce", "8x16xf32")]
    both = lamina.value_and_grad(lambda *a: (network(*a) ** 2).sum(), argnums=(0, 1, 2))
    assert _collectives(both, *args) == [("all_reduce", "8x16xf32")] * 2


def test_random_numbers_do_not_depend_on_the_mesh() -> None:
    key = lamina.random.key(7)
    wanted = np.asarray(lamina.jit(lambda: lamina.random.normal(key, (8, 12)))())
    for sizes, spec in (((2,), ("x",)), ((4, 2), ("y", "x")), ((8,), ("x",))):
        mesh = lamina.make_mesh(sizes, tuple("xy"[: len(sizes)]))
        f = lamina.jit(
            lambda k: lamina.random.normal(k, (8, 12)), out_shardings=NamedSharding(mesh, P(*spec))
        )
        np.testing.assert_array_equal(f(key).view(jnp.uint32), wanted.view(np.uint32))
