"""All-reduces of float32 between processes of this machine: in a program of lamina's, as a call of MPI, and in a
program of JAX's (gloo), turn by turn:

    python -m benchmarks.processes [--processes 2] [--turns 5] [--out results.json]

A program does fifty in a loop, each of the last one's result divided by the number of processes; what is
printed is the median time of one, over turns. MPI's time is that of the bare call on the same bytes.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

BYTES = (4, 64 << 10, 1 << 20)
STEPS = 50
REPEATS = 20
PEERS = ("lamina", "mpi", "jax")


def _timed(run: Callable[[], object]) -> float:
    run()
    times = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return statistics.median(times) / STEPS


def _by_program(library: Any) -> dict[int, float]:
    """In a program of lamina's, or of JAX's: their names are the same."""
    import numpy as np

    n, lax, spec = library.device_count(), library.lax, library.P("i")
    mesh = library.make_mesh((n,), ("i",))
    sharding = library.sharding.NamedSharding(mesh, spec)
    found = {}
    for size in BYTES:
        shape = (size // 4 * n,)
        x = library.make_array_from_callback(
            shape, sharding, lambda at, s=shape: np.ones(s, "f4")[at]
        )

        def steps(x):
            return lax.fori_loop(0, STEPS, lambda _, x: lax.psum(x, "i") * np.float32(1 / n), x)

        program = library.jit(
            library.shard_map(steps, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)
        )
        found[size] = _timed(lambda p=program, x=x: p(x).block_until_ready())
    return found


def _by_lamina() -> dict[int, float]:
    import lamina

    lamina.distributed.initialize()
    return _by_program(lamina)


def _by_mpi() -> dict[int, float]:
    import numpy as np
    from mpi4py import MPI

    found = {}
    for size in BYTES:
        given, total = np.ones(size // 4, "f4"), np.zeros(size // 4, "f4")

        def steps(given=given, total=total):
            for _ in range(STEPS):
                MPI.COMM_WORLD.Allreduce(given, total)

        found[size] = _timed(steps)
    return found


def _by_jax() -> dict[int, float]:
    import jax

    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(
        os.environ["COORDINATOR"], int(os.environ["PROCESSES"]), int(os.environ["RANK"])
    )
    return _by_program(jax)


def _turn(peer: str, processes: int) -> dict[str, float]:
    """The times that process 0 has found."""
    command = [sys.executable, "-m", "benchmarks.processes", "--as", peer]
    env = {k: v for k, v in os.environ.items() if not k.startswith(("OPENBLAS_", "LAMINA_"))}
    env["JAX_PLATFORMS"] = "cpu"
    if peer != "jax":
        launcher = Path(sys.executable).parent / "mpiexec"
        ranks = [
            subprocess.Popen([str(launcher), "-n", str(processes), *command], env=env, stdout=-1)
        ]
    else:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            env |= {
                "COORDINATOR": f"127.0.0.1:{free.getsockname()[1]}",
                "PROCESSES": str(processes),
            }
        ranks = [
            subprocess.Popen(command, env=env | {"RANK": str(rank)}, stdout=-1)
            for rank in range(processes)
        ]
    texts = [rank.communicate(timeout=300)[0].decode() for rank in ranks]
    if any(rank.returncode for rank in ranks):
        raise RuntimeError(f"{peer} failed: {texts}")
    lines = [line for line in "\n".join(texts).splitlines() if line.startswith("{")]
    return json.loads(lines[0])


def _print_own(peer: str) -> None:
    found = {"lamina": _by_lamina, "mpi": _by_mpi, "jax": _by_jax}[peer]()
    if os.environ.get("PMI_RANK", os.environ.get("RANK")) == "0":
        print(json.dumps(found), flush=True)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--as", dest="peer", choices=PEERS, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.peer:
        _print_own(given.peer)
        return
    turns = [{peer: _turn(peer, given.processes) for peer in PEERS} for _ in range(given.turns)]
    rows = {}
    for size in BYTES:
        rows[size] = {
            peer: statistics.median(turn[peer][str(size)] for turn in turns) for peer in PEERS
        }
        shown = ", ".join(f"{peer} {seconds * 1e6:8.1f} us" for peer, seconds in rows[size].items())
        ratios = [rows[size][peer] / rows[size]["lamina"] for peer in ("mpi", "jax")]
        print(f"{size:8} bytes: {shown}; as fast as MPI {ratios[0]:.2f}, as JAX {ratios[1]:.1f}")
    if given.out:
        about = {
            "processes": given.processes,
            "machine": platform.processor(),
            "cpus": os.cpu_count(),
        }
        given.out.write_text(json.dumps({**about, "seconds": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
