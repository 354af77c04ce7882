"""How far a training step would scale: a model of its time over 1 to 4,096 processes, checked where it can be.

    python -m benchmarks.scale [--latency 2e-6] [--bandwidth 12.5e9] [--out results.json]

Three things are measured on this machine: one process's step without its collectives, what a message between
two processes takes (latency, and bytes a second), and the step itself in 1, 2 and 4 processes. The
collectives, and what is computed beside each, are those of the compiled program's plan, which begins some
early (passes/planning/overlap.py); what each takes is what the runtime does for it
(runtime/src/cpu/collective_exchange.cpp): so many messages one after the other, so many bytes. By default the
large machines of the table have this one's messages; --latency and --bandwidth are those of a network.

Each process has the same part of the batch and a core of its own (weak scaling). Where processes share
cores, as four do on two here, they compute in turns. Between processes of one machine messages are work of the
same cores, so that nothing is hidden beside what they compute; a network carries them by itself.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
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
    """One of a program: what it is, the bytes of a device's operand, and the share of what a step computes that is
    computed between its beginning and its end."""

    kind: str
    size: int
    beside: float = 0.0

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
    """Those of a text of StableHLO."""
    names = (
        "all_reduce|all_gather|reduce_scatter|all_to_all|collective_permute|collective_broadcast"
    )
    form = rf'stablehlo\.({names})"(?:(?!stablehlo\.(?:{names})).|\n)*?: \(tensor<([^>]*)>\) ->'
    found = []
    for kind, of in re.findall(form, text):
        *sizes, element = of.split("x")
        found.append(Collective(kind, ELEMENT[element] * math.prod(map(int, sizes))))
    return found


def planned_collectives(planned: str) -> list[Collective]:
    """Those of a compiled program (as_text("planned")) outside of loops, and what its plan computes beside each."""
    from lamina.backends.cost import Counter
    from lamina.dialects.context import parse
    from lamina.runtime.executable import estimated_seconds

    begin = planned.index("module @kernels")
    kernels = planned[begin : planned.index("\n  }\n", begin) + len("\n  }\n")]
    bodies = {body.partition("(")[0]: body for body in kernels.split("func.func private @")[1:]}
    main = planned[planned.index("@main") : begin]
    calls = [
        (name, "lamina.begun" in attributes)
        for name, attributes in re.findall(r"call @(\w+)\([^)]*\)( \{[^}]*\})? :", main)
    ]
    module = parse(kernels)
    counter = Counter(module)
    seconds = {
        name: estimated_seconds(counter.kernel(name).as_dict()) for name in counter.functions
    }
    found: list[Collective] = []
    total, begun = 0.0, None
    for name, is_begun in calls:
        if name == "lamina_collective_end":
            begun = None
        elif said := collectives_of(bodies.get(name, "")):
            found += said
            begun = len(found) - 1 if is_begun else None
        else:
            took = seconds.get(name, 0.0)
            total += took
            if begun is not None:
                found[begun] = found[begun]._replace(beside=found[begun].beside + took)
    return [each._replace(beside=each.beside / total) if total else each for each in found]


def step_seconds(
    compute: float,
    parts: list[Collective],
    ranks: int,
    messages: Messages,
    cores: int | None = None,
) -> float:
    """Of a step in so many processes of this machine, which compute in turns where there are fewer cores; or (None) of
    machines with a network, where what is computed beside a collective hides it."""
    if cores is not None:
        turns = max(1.0, ranks / cores)
        return compute * turns + sum(each.seconds(ranks, messages) for each in parts)
    return compute + sum(_not_hidden(each, compute, ranks, messages) for each in parts)


def _not_hidden(each: Collective, compute: float, ranks: int, messages: Messages) -> float:
    return max(0.0, each.seconds(ranks, messages) - each.beside * compute)


def half_efficient(compute: float, parts: list[Collective], messages: Messages) -> int | None:
    """The processes from which on a step waits for collectives half of its time; None up to the last of RANKS."""
    for ranks in range(2, RANKS[-1] + 1):
        if step_seconds(compute, parts, ranks, messages) > 2 * compute:
            return ranks
    return None


# --- What is measured -----------------------------------------------------------------------------


def _least(run: Callable[[], object], repeats: int = REPEATS) -> float:
    """Seconds of the fastest run: what others do on the machine is not of the model."""
    run()
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return min(times)


def _network(library: Any, ranks: int, shared: bool) -> tuple[Any, tuple[Any, ...]]:
    """A step of a network whose layers are the same everywhere, and its arguments: the batch is spread over the
    processes or (not shared) each has one of its own."""
    import numpy as np

    jnp = library.numpy

    def loss(weights: Any, x: Any) -> Any:
        for w in weights:
            x = x + jnp.tanh(x @ w)
        return (x * x).mean()

    def step(weights: Any, x: Any) -> Any:
        grads = library.grad(loss)(weights, x)
        return [w - np.float32(0.01) * g for w, g in zip(weights, grads)]

    random = np.random.default_rng(0)
    weights = [
        0.02 * random.standard_normal((WIDTH, WIDTH)).astype(np.float32) for _ in range(LAYERS)
    ]
    x = random.standard_normal((BATCH * (ranks if shared else 1), WIDTH)).astype(np.float32)
    if not shared:
        return library.jit(step), (list(map(jnp.asarray, weights)), jnp.asarray(x))
    mesh = library.make_mesh((ranks,), ("i",), axis_types=(library.sharding.AxisType.Auto,))
    put = library.device_put
    arguments = (
        put(weights, library.NamedSharding(mesh, library.P())),
        put(x, library.NamedSharding(mesh, library.P("i"))),
    )
    return library.jit(step), arguments


def _measured() -> dict[str, Any]:
    """In each of the processes: the step with and without collectives, and messages of two sizes."""
    import numpy as np

    import lamina

    lamina.distributed.initialize()
    ranks = lamina.process_count()
    found: dict[str, Any] = {}
    for name, shared in (("step", True), ("compute", False)):
        program, arguments = _network(lamina, ranks, shared)
        found[name] = _least(lambda p=program, a=arguments: lamina.block_until_ready(p(*a)))
        if shared and ranks > 1:
            compiled = program.lower(*arguments).compile()
            found["collectives"] = planned_collectives(compiled.as_text("planned"))
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
            found[name] = _least(lambda p=program, x=x: p(x).block_until_ready()) / hops
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
    early = [each for each in parts if each.beside]
    print(
        f"{len(early)} of them are begun early, beside {sum(e.beside for e in early):.0%} of what is computed"
    )
    print(f"a message takes {here.latency * 1e6:.1f} us and {here.bandwidth / 1e9:.1f} GB/s\n")
    print("ranks   measured    modelled     off")
    rows: list[dict[str, Any]] = []
    for ranks in CHECKED:
        said = step_seconds(compute, parts, ranks, here, cores)
        was = measured[ranks]["step"]
        rows.append({"ranks": ranks, "measured": was, "modelled": said})
        print(f"{ranks:5}  {was * 1e3:6.2f} ms   {said * 1e3:6.2f} ms   {said / was - 1:+5.0%}")
    far = Messages(given.latency or here.latency, given.bandwidth or here.bandwidth)
    print("\nranks       step   efficiency   latency   bytes   hidden")
    for ranks in RANKS:
        total = step_seconds(compute, parts, ranks, far)
        waits = step_seconds(0, parts, ranks, Messages(far.latency, math.inf))
        moves = step_seconds(0, parts, ranks, Messages(0, far.bandwidth))
        hidden = compute + waits + moves - total
        rows.append(
            {"ranks": ranks, "step": total, "latency": waits, "bytes": moves, "hidden": hidden}
        )
        shares = f"{waits / total:8.0%}  {moves / total:6.0%}  {hidden / total:7.0%}"
        print(f"{ranks:5}  {total * 1e3:6.2f} ms   {compute / total:10.0%}  {shares}")
    half = half_efficient(compute, parts, far)
    print(
        f"\na step waits for collectives half of its time from {half or 'more than all of these'} processes on"
    )
    if given.out:
        about = {"cores": cores, "latency": here.latency, "bandwidth": here.bandwidth}
        given.out.write_text(
            json.dumps({**about, "compute": compute, "rows": rows}, indent=1) + "\n"
        )


if __name__ == "__main__":
    main()
