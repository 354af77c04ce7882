"""Sums among more processes than send each other everything straight: `mpiexec -n 5 python many.py`.

Prints what the devices got, bit by bit, device by device.
"""

import numpy as np

import lamina
import lamina.numpy as jnp
from lamina import P, lax
from lamina.experimental.multihost_utils import process_allgather

GROUPS = ([[0, 3, 4, 7, 9], [1, 2, 5, 6, 8]], [[9, 8, 7, 6, 5, 4, 3, 2, 1, 0]])


def main() -> None:
    lamina.distributed.initialize()
    mesh = lamina.make_mesh((10,), ("i",))
    sharding = lamina.NamedSharding(mesh, P("i"))
    random = np.random.default_rng(3)
    values = random.standard_normal((10, 7)).astype(np.float32)
    numbers = random.integers(-9, 9, (10, 1)).astype(np.int8)

    def body(x, n):
        sums = [lax.psum(x, "i", axis_index_groups=groups) for groups in GROUPS]
        half = lax.psum(x.astype(jnp.bfloat16), "i").astype(jnp.float32)
        most = lax.pmax(n, "i").astype(jnp.float32)
        return jnp.concatenate([*sums, jnp.broadcast_to(half, x.shape), most + 0 * x], 1)

    spec = P("i")
    mapped = lamina.shard_map(body, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)
    x, n = lamina.device_put((values, numbers), sharding)
    found = np.asarray(process_allgather(lamina.jit(mapped)(x, n), tiled=True))
    if lamina.process_index() == 0:
        print("\n".join(row.tobytes().hex() for row in found))


if __name__ == "__main__":
    main()
