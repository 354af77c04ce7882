"""Saves and restores what several processes hold:

mpiexec -n 2 python checkpoints.py save FOLDER      # or resave, which one process does not survive
python checkpoints.py load FOLDER                   # in any number of processes, over any mesh
"""

import os
import signal
import sys

import numpy as np

import lamina
import lamina.numpy as jnp
from lamina import P
from lamina.experimental.array_serialization import pytree_serialization
from lamina.sharding import NamedSharding

DATA = np.arange(16 * 24, dtype=np.float32).reshape(16, 24)


def state(mesh: lamina.sharding.Mesh, scale: int) -> dict:
    def made(spec: P) -> lamina.Array:
        return lamina.make_array_from_callback(
            DATA.shape, NamedSharding(mesh, spec), lambda at: scale * DATA[at]
        )

    first, second = mesh.axis_names
    return {
        "rows": made(P(first)),
        "blocks": made(P(second, first)),
        "whole": made(P()),
        "local": jnp.full(3, float(scale)),
        "host": np.array([scale], np.int32),
    }


def main(what: str, folder: str) -> None:
    lamina.distributed.initialize()
    devices = lamina.device_count()
    if what == "load":  # the axes the other way round
        mesh = lamina.make_mesh((devices // 2, 2), ("a", "b"))
        here = NamedSharding(
            lamina.make_mesh((1,), ("a",), devices=lamina.local_devices()[:1]), P()
        )
        places = {
            "rows": NamedSharding(mesh, P(None, ("b", "a"))),
            "blocks": NamedSharding(mesh, P("a")),
            "whole": NamedSharding(mesh, P("b", "a")),
            "local": here,
            "host": here,
        }
        found = pytree_serialization.load(folder, places)
        scale = int(found["host"][0])
        assert np.asarray(found["local"]).tolist() == [scale] * 3
        for name in ("rows", "blocks", "whole"):
            assert found[name].sharding == places[name]
            for shard in found[name].addressable_shards:
                np.testing.assert_array_equal(np.asarray(shard.data), scale * DATA[shard.index])
        print(f"restored {scale}", flush=True)
        return
    mesh = lamina.make_mesh((2, devices // 2), ("x", "y"))
    if what == "differ":
        folder = f"{folder}{lamina.process_index()}"
    if what == "resave" and lamina.process_index() == 1:
        real = np.save

        def save_and_die(file: object, x: np.ndarray, **options: bool) -> None:
            real(file, x, **options)
            os.kill(os.getpid(), signal.SIGKILL)

        np.save = save_and_die
    pytree_serialization.save(state(mesh, 1 if what == "save" else 2), folder)
    print("saved", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
