"""A program over the GPUs of several processes, made of Python: prints what each process finds."""

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from support.fake_cuda import driver as fake_driver
from support.fake_cuda.driver import FakeDriver
from support.fake_cuda.nccl import SYSTEM_ERROR
from support.fake_cuda.nccl_of_processes import FakeNcclOfProcesses

import lamina
import lamina.numpy as jnp
from lamina import lax, runtime
from lamina.errors import JaxRuntimeError
from lamina.runtime import processes
from lamina.sharding import Mesh, NamedSharding
from lamina.sharding import PartitionSpec as P


def body(x):
    """All collectives, over all devices and along one axis."""
    row = x[0]
    return [
        lax.psum(x, ("a", "b")),
        lax.psum(x, "a"),
        lax.pmax(x, "b"),
        lax.all_gather(x, "b", axis=1),
        lax.psum_scatter(row, ("a", "b"), tiled=True)[None],
        lax.all_to_all(row, ("a", "b"), 0, 0, tiled=True)[None],
        lax.ppermute(x, "a", [(0, 1)]),
        x + lax.axis_index(("a", "b")),
    ]


def step(w, x, y):
    value, g = lamina.value_and_grad(lambda w: ((jnp.tanh(x @ w) - y) ** 2).mean())(w)
    return value, w - 0.5 * g


def main(folder: Path) -> None:
    nccl = FakeNcclOfProcesses(folder)
    with fake_driver.installed(FakeDriver(gpus=4, libraries=nccl.calls())) as cuda:
        lamina.distributed.initialize()
        rank = lamina.process_index()
        gpus = lamina.devices("cuda")
        mesh = Mesh(np.array(gpus[:4]).reshape(2, 2), ("a", "b"))
        x = np.arange(16, dtype=np.float32).reshape(4, 4)
        rows = lamina.device_put(x, NamedSharding(mesh, P(("a", "b"))))
        spec = P(("a", "b"))
        run = lamina.jit(lamina.shard_map(body, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False))
        for _ in range(3):
            found = run(rows)
        w = lamina.device_put(np.full((4, 4), 0.1, np.float32), NamedSharding(mesh, P(None, "b")))
        batch = [lamina.device_put(v / 16, NamedSharding(mesh, P("a"))) for v in (x, x[::-1].copy())]
        train = lamina.jit(step)
        for _ in range(3):
            value, w = train(w, *batch)
        lines = []
        for number, array in enumerate([*found, w]):
            for shard in array.addressable_shards:
                data = np.round(np.asarray(shard.data), 4).tolist()
                lines.append(f"{number} of {shard.device}: {data}")
        lines.append(f"loss of {rank}: {float(value):.5f}")
        own = [d.gpu_number for d in lamina.local_devices(backend="cuda")]
        ahead = lamina.jit(lambda x: x + 1).lower(x).compile(target="cuda:sm_90a")  # loaded when it is called
        assert ahead(x).device == lamina.local_devices(backend="cuda")[0] and np.array_equal(ahead(x), x + 1)
        print("\n".join(lines), file=open(folder / f"found-{rank}", "w"))
        for each in processes.tell_all("the GPUs", own):
            print(each) if rank == 0 else None
        assert not nccl.refused, nccl.refused
        if "late" in sys.argv:
            wait_for_the_other(run, rows, rank, folder)
        if "fails" in sys.argv:
            fail(cuda, run, rows, rank, folder)
        lamina.distributed.shutdown()


def wait_for_the_other(run, rows, rank: int, folder: Path) -> None:
    """Process 1 does not come to a program that process 0 waits for, which writes what it is told."""
    told = folder / "told"
    while rank == 1 and not told.exists():
        time.sleep(0.01)
    if rank == 0:
        runtime.set_collective_timeout(2)
        try:
            np.asarray(run(rows)[0].addressable_shards[0].data)
        except JaxRuntimeError as error:
            told.write_text(str(error))


def fail(cuda: FakeDriver, run, rows, rank: int, folder: Path) -> None:
    """NCCL fails in process 1. Both write what they are told, now and at the next call."""
    if rank == 1:
        cuda.fail("ncclAllReduce", SYSTEM_ERROR)
    for number in range(2):
        try:
            np.asarray(run(rows)[0].addressable_shards[0].data)
        except JaxRuntimeError as error:
            (folder / f"error-{number}-{rank}").write_text(str(error))
    while len(list(folder.glob("error-1-*"))) < 2:  # whoever ends first would end the other
        time.sleep(0.01)


main(Path(sys.argv[1]))
