"""Every collective on eight devices, which are in one process or in several:

    mpiexec -n 4 python all_collectives.py OUT

writes what the devices of process p got to OUT.p.npz.
"""

import sys

import numpy as np

import lamina
import lamina.numpy as jnp
from lamina import P, lax

TYPES = (
    "float32",
    "float64",
    "bfloat16",
    "float16",
    "float8_e4m3fn",
    "float8_e5m2",
    "int8",
    "int32",
    "uint16",
    "bool",
    "complex64",
)
GROUPS = {
    "all": None,
    "far": [[0, 5, 2, 7], [1, 4, 3, 6]],
    "near": [[1, 0], [2, 3], [5, 4], [7, 6]],
}
SIZES = (3, 4096)  # a message in one step, and in two


def values(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    numbers = np.random.default_rng(7).standard_normal(shape) * 3
    if dtype == "complex64":
        numbers = numbers + 1j * numbers[::-1]
    return numbers.astype(jnp.dtype(dtype)) if dtype != "bool" else numbers > 0


def collectives(groups: list[list[int]] | None, size: int) -> dict:
    n = 8 if groups is None else len(groups[0])
    over = {"axis_index_groups": groups}
    ring = [(i, (i + 3) % 8) for i in range(8) if i != 2]
    cycle = {
        "sum": lambda x: lax.psum(x, "i", **over),
        "gather": lambda x: lax.all_gather(x, "i", **over),
        "scatter": lambda x: (
            lax.psum_scatter(x[: size // n * n or n], "i", tiled=True, **over)
            if x.shape[0] >= n
            else x
        ),
        "exchange": lambda x: lax.all_to_all(
            jnp.stack([x + k for k in range(n)]), "i", 0, 0, **over
        ),
    }
    if groups is None:
        cycle |= {
            "max": lambda x: lax.pmax(x, "i"),
            "permute": lambda x: lax.ppermute(x, "i", ring),
            "turn": lambda x: lax.fori_loop(
                0, 5, lambda _, x: lax.ppermute(x, "i", [(i, (i + 1) % 8) for i in range(8)]), x
            ),
        }
    return cycle


def main(out: str) -> None:
    lamina.config.update("enable_x64", True)
    lamina.distributed.initialize()
    mesh = lamina.make_mesh((8,), ("i",))
    sharding = lamina.sharding.NamedSharding(mesh, P("i"))
    results: dict[str, np.ndarray] = {}
    for dtype in TYPES:
        for size in SIZES if dtype in ("float32", "bfloat16", "int32") else SIZES[:1]:
            data = values((8 * size,), dtype)
            x = lamina.make_array_from_callback(
                data.shape, sharding, lambda at, data=data: data[at]
            )
            for name, groups in GROUPS.items():
                if name != "all" and dtype not in ("float32", "bfloat16"):
                    continue
                cases = collectives(groups, size)
                if dtype == "complex64":
                    cases.pop("max")

                def body(x, cases=cases):
                    return {key: f(x)[None] for key, f in cases.items()}

                mapped = lamina.shard_map(
                    body, mesh=mesh, in_specs=P("i"), out_specs=P("i"), check_vma=False
                )
                for key, value in lamina.jit(mapped)(x).items():
                    for shard in value.addressable_shards:
                        bits = np.asarray(shard.data)
                        results[f"{key} {dtype} {size} {name} {shard.device.id}"] = bits.view(
                            np.uint8
                        )
    np.savez(f"{out}.{lamina.process_index()}.npz", **results)


if __name__ == "__main__":
    main(sys.argv[1])
