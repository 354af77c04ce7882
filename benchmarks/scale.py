"""How far a training step would scale: a model of its time over 1 to 4,096 processes, checked where it can be.

    python -m benchmarks.scale [--latency 2e-6] [--bandwidth 12.5e9] [--out results.json]

Three things are measured on this machine: one process's step without its collectives, what a message between
two processes takes (latency, and bytes a second), and the step itself in 1, 2 and 4 processes. The
collectives are those of the compiled program; what each takes is what the runtime does for it
(runtime/src/cpu/collective_exchange.cpp): so many messages one after the other, so many bytes. By default the
large machines of the table have this one's messages; --latency and --bandwidth are those of a network.

Each process has the same part of the batch and a core of its own (weak scaling). Where processes share
cores, as four do on two here, they compute in turns.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

RANKS = tuple(4**k for k in range(7))  # 1 to 4,096
CHECKED = (1, 2, 4)
WIDTH, LAYERS, BATCH = 512, 4, 64
REPEATS = 15
HANDED_ON = 5
"""Processes from which on small operands are handed on (kStraightProcesses)."""
WHOLE_BYTES = 8192
"""Bytes of an operand up to which all get all of them (kWholeBytes)."""
ELEMENT = {"f32": 4, "bf16": 2, "f16": 2, "f64": 8, "i32": 4}


class Messages(NamedTuple):
    """What messages take: seconds each, and bytes a second."""

    latency: float
    bandwidth: float

    def seconds(self, messages: float, size: float) -> float:
        """Of so many messages, one after the other, of so many bytes together."""
        return messages * self.latency + size / self.bandwidth


class Collective(NamedTuple):
    """One of a program: what it is, and the bytes of a device's operand."""

    kind: str
    size: int

    def seconds(self, ranks: int, messages: Messages) -> float:
        """Among so many processes, as the runtime does it."""
        others = ranks - 1
        if not others:
            return 0.0
        if self.kind == "all_reduce":
            if self.size <= WHOLE_BYTES and ranks >= HANDED_ON:
                return messages.seconds(math.ceil(math.log2(ranks)), others * self.size)
            if self.size <= WHOLE_BYTES or ranks == 2:
                return messages.seconds(others, others * self.size)
            return 2 * messages.seconds(others, others * self.size / ranks)
        if self.kind in ("reduce_scatter", "all_to_all"):
            return messages.seconds(others, others * self.size / ranks)
        if self.kind == "all_gather":
            return messages.seconds(others, others * self.size)
        return messages.seconds(1, self.size)  # a permutation, a broadcast


def collectives_of(text: str) -> list[Collective]:
    """Those of a compiled program (as_text("optimized")), outside of loops."""
    names = (
        "all_reduce|all_gather|reduce_scatter|all_to_all|collective_permute|collective_broadcast"
    )
    form = rf'stablehlo\.({names})"(?:(?!stablehlo\.(?:{names})).|\n)*?: \(tensor<([^>]*)>\) ->'
    found = []
    for kind, of in re.findall(form, text):
        *sizes, element = of.split("x")
        found.append(Collective(kind, ELEMENT[element] * math.prod(map(int, sizes))))
    return found


def step_seconds(
    compute: float,
    parts: list[Collective],
    ranks: int,
    messages: Messages,
    cores: int | None = None,
) -> float:
    """Of a step in so many processes, which compute in turns where there are fewer cores."""
    turns = 1.0 if cores is None else max(1.0, ranks / cores)
    return compute * turns + sum(each.seconds(ranks, messages) for each in parts)


def half_efficient(compute: float, parts: list[Collective], messages: Messages) -> int | None:
    """The processes from which on half of a step goes into collectives; None up to the last of RANKS."""
    for ranks in range(2, RANKS[-1] + 1):
        if step_seconds(compute, parts, ranks, messages) > 2 * compute:
            return ranks
    return None


# --- What is measured -----------------------------------------------------------------------------


def _median(run: Callable[[], object], repeats: int = REPEATS) -> float:
    run()
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def _network(library: Any, ranks: int, sums: bool) -> tuple[Any, tuple[Any, ...]]:
    """A step of a network whose layers are the same everywhere, and its arguments."""
    import numpy as np

    jnp, lax, spec = library.numpy, library.lax, library.P("i")
    mesh = library.make_mesh((ranks,), ("i",))

    def loss(weights: Any, x: Any) -> Any:
        for w in weights:
            x = x + jnp.tanh(x @ w)
        return (x * x).mean()

    def step(weights: Any, x: Any) -> Any:
        grads = library.grad(loss)(weights, x)
        if sums:
            grads = [lax.pmean(g, "i") for g in grads]
        return [w - np.float32(0.01) * g for w, g in zip(weights, grads)]

    whole = library.P()
    mapped = library.shard_map(
        step, mesh=mesh, in_specs=(whole, spec), out_specs=whole, check_vma=False
    )
    random = np.random.default_rng(0)
    weights = [
        0.02 * random.standard_normal((WIDTH, WIDTH)).astype(np.float32) for _ in range(LAYERS)
    ]
    x = random.standard_normal((BATCH * ranks, WIDTH)).astype(np.float32)
    put = library.device_put
    arguments = (
        put(weights, library.NamedSharding(mesh, whole)),
        put(x, library.NamedSharding(mesh, spec)),
    )
    return library.jit(mapped), arguments


def _measured() -> dict[str, Any]:
    """In each of the processes: the step with and without collectives, and messages of two sizes."""
    import numpy as np

    import lamina

    lamina.distributed.initialize()
    ranks = lamina.process_count()
    found: dict[str, Any] = {}
    for name, sums in (("step", True), ("compute", False)):
        program, arguments = _network(lamina, ranks, sums)
        found[name] = _median(lambda p=program, a=arguments: lamina.block_until_ready(p(*a)))
        if sums:
            text = program.lower(*arguments).compile().as_text("optimized")
            found["collectives"] = collectives_of(text)
    if ranks == 2:
        mesh = lamina.make_mesh((2,), ("i",))
        spec, hops = lamina.P("i"), 40

        def around(x: Any) -> Any:
            def hop(_: int, x: Any) -> Any:
                return lamina.lax.ppermute(x, "i", [(0, 1), (1, 0)])

            return lamina.lax.fori_loop(0, hops, hop, x)

        for name, size in (("small", 4), ("large", WIDTH * WIDTH * 4)):
            mapped = lamina.shard_map(
                around, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False
            )
            x = lamina.device_put(
                np.zeros(size // 4 * 2, np.float32), lamina.NamedSharding(mesh, spec)
            )
            program = lamina.jit(mapped)
            found[name] = _median(lambda p=program, x=x: p(x).block_until_ready()) / hops
    return found


def _in_processes(ranks: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.scale", "--measure"]
    if ranks > 1:
        command = [str(Path(sys.executable).parent / "mpiexec"), "-n", str(ranks), *command]
    env = os.environ | {"LAMINA_NUM_THREADS": "1"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=600, check=True)
    return json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))


def main(arguments: list[str] | None = None) -> None:
    """Prints what is measured, how far the model is from it, and the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--latency", type=float, help="seconds of a message between large machines")
    parser.add_argument("--bandwidth", type=float, help="bytes a second between them")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.measure:
        found = _measured()
        if os.environ.get("PMI_RANK", "0") == "0":
            print(json.dumps(found), flush=True)
        return
    measured = {ranks: _in_processes(ranks) for ranks in CHECKED}
    compute, two = measured[1]["compute"], measured[2]
    parts = [Collective(*each) for each in two["collectives"]]
    here = Messages(two["small"], parts[0].size / max(two["large"] - two["small"], 1e-9))
    cores = len(os.sched_getaffinity(0))
    megabytes = sum(each.size for each in parts) / 1e6
    print(f"a step computes {compute * 1e3:.1f} ms; {len(parts)} collectives of {megabytes:.1f} MB")
    print(f"a message takes {here.latency * 1e6:.1f} us and {here.bandwidth / 1e9:.1f} GB/s\n")
    print("ranks   measured    modelled     off")
    rows: list[dict[str, Any]] = []
    for ranks in CHECKED:
        said = step_seconds(compute, parts, ranks, here, cores)
        was = measured[ranks]["step"]
        rows.append({"ranks": ranks, "measured": was, "modelled": said})
        print(f"{ranks:5}  {was * 1e3:6.2f} ms   {said * 1e3:6.2f} ms   {said / was - 1:+5.0%}")
    far = Messages(given.latency or here.latency, given.bandwidth or here.bandwidth)
    print("\nranks       step   efficiency   latency   bytes")
    for ranks in RANKS:
        total = step_seconds(compute, parts, ranks, far)
        waits = step_seconds(0, parts, ranks, Messages(far.latency, math.inf))
        moves = step_seconds(0, parts, ranks, Messages(0, far.bandwidth))
        rows.append({"ranks": ranks, "step": total, "latency": waits, "bytes": moves})
        shares = f"{waits / total:8.0%}  {moves / total:6.0%}"
        print(f"{ranks:5}  {total * 1e3:6.2f} ms   {compute / total:10.0%}  {shares}")
    half = half_efficient(compute, parts, far)
    print(
        f"\nhalf of the step goes into collectives from {half or 'more than all of these'} processes on"
    )
    if given.out:
        about = {"cores": cores, "latency": here.latency, "bandwidth": here.bandwidth}
        given.out.write_text(
            json.dumps({**about, "compute": compute, "rows": rows}, indent=1) + "\n"
        )


if __name__ == "__main__":
    main()
