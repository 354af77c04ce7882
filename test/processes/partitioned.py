"""Training steps that are partitioned over four devices, by data and by weights, in one process or in four:

    mpiexec -n 4 python partitioned.py

prints what process 0 got, bit by bit.
"""

import numpy as np

import lamina
import lamina.numpy as jnp
from lamina import P
from lamina.sharding import AxisType, NamedSharding


def main() -> None:
    lamina.distributed.initialize()
    mesh = lamina.make_mesh((2, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    random = np.random.default_rng(0)

    def made(shape: tuple[int, ...], *spec: str | None) -> lamina.Array:
        data = random.standard_normal(shape).astype(np.float32)
        return lamina.make_array_from_callback(
            shape, NamedSharding(mesh, P(*spec)), lambda at: data[at]
        )

    weights = [made((16, 32), None, "model"), made((32, 16), "model", None)]
    x = made((8, 16), "data", None)

    def loss(weights, x):
        return jnp.mean((jnp.tanh(x @ weights[0]) @ weights[1] - x) ** 2)

    @lamina.jit
    def step(weights, x):
        value, gradient = lamina.value_and_grad(loss)(weights, x)
        return value, lamina.tree.map(lambda w, g: w - 0.1 * g, weights, gradient)

    lines = []
    for _ in range(5):
        value, weights = step(weights, x)
        lines.append(float(value).hex())
    lines.append(str([w.sharding.spec for w in weights]))
    scaled = x * 2 + 1  # outside of jit
    lines.append(f"{scaled.sharding.spec} {float((scaled**2).sum()).hex()}")
    if lamina.process_index() == 0:
        print("\n".join(lines))


if __name__ == "__main__":
    main()
