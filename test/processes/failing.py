"""What goes wrong in processes that work together: `python failing.py CASE FOLDER`, started by mpiexec."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import lamina
from lamina import P, lax, runtime

_FOR_EVER = 3600
"""Seconds: longer than the others, and the test, wait."""


def total(mesh, lengths=None):
    """The sum over all devices of what each has."""
    sharding = lamina.sharding.NamedSharding(mesh, P("i"))
    n = mesh.size if lengths is None else lengths
    x = lamina.make_array_from_callback((n,), sharding, lambda at: np.ones(n, np.float32)[at])
    summed = lamina.shard_map(lambda x: lax.psum(x, "i"), mesh=mesh, in_specs=P("i"), out_specs=P())
    return float(lamina.jit(summed)(x)[0])


def main(case: str, folder: Path) -> None:
    if case == "absent" and os.environ.get("PMI_RANK") == "1":
        time.sleep(_FOR_EVER)
    lamina.distributed.initialize(
        initialization_timeout=3 if case == "absent" else 300,
        heartbeat_timeout_seconds=4 if case == "cut" else 100,
    )
    rank, mesh = lamina.process_index(), lamina.make_mesh((lamina.device_count(),), ("i",))
    assert total(mesh) == lamina.device_count()
    if case in ("sleeps", "differ"):
        runtime.set_collective_timeout(2)  # now that all are there
    if case == "cut" and rank == 0:
        subprocess.run(["ip", "link", "set", os.environ["LINK"], "down"], check=True)
    if rank == 1:
        if case == "raises":
            raise ValueError("this one has had enough")
        if case == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if case == "sleeps":
            time.sleep(_FOR_EVER)
        if case == "ends":
            return
    if case == "unreachable":
        from lamina import distributed

        distributed._LAUNCHER_SECONDS = 0.0
        if rank == 1:  # what its kernel does when the link is gone, the others' kernels do after a time-out
            next(iter(distributed._watch.peers.values())).shutdown(socket.SHUT_WR)
            time.sleep(_FOR_EVER)
    if case == "callback":

        def fails(x):
            if rank == 1:
                raise ValueError("the callback has had enough")
            return x

        from lamina import pure_callback

        mapped = lamina.shard_map(
            lambda x: lax.psum(pure_callback(fails, x, x), "i"),
            mesh=mesh,
            in_specs=P("i"),
            out_specs=P("i"),
            check_vma=False,
        )
        sharding = lamina.sharding.NamedSharding(mesh, P("i"))
        x = lamina.make_array_from_callback((8,), sharding, lambda at: np.ones(8, np.float32)[at])
        try:
            lamina.block_until_ready(lamina.jit(mapped)(x))
        except Exception as error:
            print(f"{rank} caught {error}", flush=True)
            (folder / str(rank)).touch()
            while not (folder / "0").exists():  # whoever ends first ends the other
                time.sleep(0.01)
            total(mesh)  # they no longer work together
    if case == "differ":
        total(mesh, 8 if rank == 0 else 16)
    print(total(mesh), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
