"""Programs over the GPUs of several processes: the driver, and NCCL over files, are made of Python."""

from pathlib import Path

import pytest
from processes.ranks import check_ranks, run_ranks

from lamina.partitioning import missing
from lamina.runtime.processes import Facts, Processes, _dealt


def _found(folder: Path) -> dict[str, str]:
    lines = [line for each in sorted(folder.glob("found-*")) for line in each.read_text().splitlines()]
    return dict(line.split(": ", 1) for line in lines)


@pytest.mark.skipif(missing() is not None, reason="needs lamina[sharding]")
def test_as_in_one_process(tmp_path: Path) -> None:
    """Four GPUs of a machine, in one process, two, and four."""
    found = {}
    for count in (0, 2, 4):
        folder = tmp_path / str(count)
        folder.mkdir()
        printed = check_ranks(count, "gpus.py", str(folder))
        found[count] = _found(folder)
        shares = [eval(line) for line in printed.splitlines()]
        assert shares == {0: [[0, 1, 2, 3]], 2: [[0, 1], [2, 3]], 4: [[0], [1], [2], [3]]}[count]
    losses = {name: value for name, value in found[4].items() if name.startswith("loss")}
    assert len(set(losses.values())) == 1 and len(losses) == 4
    alone = {name: value for name, value in found[0].items() if not name.startswith("loss")}
    assert alone and alone.items() <= found[2].items() and alone.items() <= found[4].items()


def test_gpus_are_dealt_to_processes() -> None:
    """Those of a machine among the processes that see the same; a launcher's or a program's choice stays."""

    def facts(host: str, gpus: int, shown: str = "", own: tuple[int, ...] | None = None) -> Facts:
        return Facts(1, host, (0,), gpus, shown, own)

    assert _dealt([facts("a", 8), facts("b", 2), facts("a", 8), facts("b", 2)]) == (
        (0, 1, 2, 3), (0,), (4, 5, 6, 7), (1,),
    )  # fmt: skip
    assert _dealt([facts("a", 1, str(i)) for i in range(3)]) == ((0,), (0,), (0,))
    assert _dealt([facts("a", 4, own=(3,)), facts("a", 4, own=(0, 1))]) == ((3,), (0, 1))
    assert _dealt([facts("a", 2)] * 1 + [facts("a", 0, "none")]) == ((0, 1), ())
    together = Processes(1, (1, 1), ((0, 1), (2, 3)))
    assert [together.of_gpu(gpu) for gpu in range(4)] == [0, 0, 1, 1]
    assert [together.number_of_gpu(gpu) for gpu in (2, 3)] == [2, 3] and together.gpu_of_number(3) == 3
    assert together.own_gpu() == 2 and Processes(0, ()).own_gpu() == 0
    with pytest.raises(ValueError, match="cuda:1 is a GPU of process 0, and this is process 1"):
        together.number_of_gpu(1)
    with pytest.raises(RuntimeError, match="process 1 has no GPU of its own"):
        Processes(1, (1, 1), ((0, 1), ())).own_gpu()


@pytest.mark.skipif(missing() is not None, reason="needs lamina[sharding]")
def test_a_process_that_fails_is_named(tmp_path: Path) -> None:
    done = run_ranks(2, "gpus.py", str(tmp_path), "fails", LAMINA_COLLECTIVE_TIMEOUT="600")
    assert done.returncode != 0 and "ends after" in done.stderr
    errors = {path.name: path.read_text() for path in tmp_path.glob("error-*")}
    assert "ncclAllReduce failed" in errors["error-0-1"] and "in process 1: unhandled system" in errors["error-0-1"]
    assert "process 1 failed" in errors["error-0-0"] and "ncclAllReduce failed" in errors["error-0-0"]
    for rank in (0, 1):
        assert "no longer work together" in errors[f"error-1-{rank}"]


@pytest.mark.skipif(missing() is not None, reason="needs lamina[sharding]")
def test_a_process_that_does_not_come_is_named(tmp_path: Path) -> None:
    run_ranks(2, "gpus.py", str(tmp_path), "late")
    told = (tmp_path / "told").read_text()
    assert "has been waited for 2000 ms: process 1 of 2 (which does not wait for its end) has not come to" in told
