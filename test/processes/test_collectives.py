"""How devices are spread over processes changes no bits of what they compute together."""

from pathlib import Path

import numpy as np
import pytest
from processes.ranks import check_ranks


def _results(out: Path, count: int) -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = {}
    for rank in range(max(1, count)):
        with np.load(f"{out}.{rank}.npz") as part:
            found |= {name: part[name] for name in part.files}
    return found


@pytest.fixture(scope="module")
def alone(tmp_path_factory) -> dict[str, np.ndarray]:
    out = tmp_path_factory.mktemp("alone") / "out"
    check_ranks(0, "all_collectives.py", str(out), devices=8)
    return _results(out, 1)


@pytest.mark.parametrize(("count", "mpi"), [(2, ""), (4, ""), (4, "mpi4py")])
def test_all_of_them(alone, tmp_path: Path, count: int, mpi: str) -> None:
    environment = {"LAMINA_MPI": mpi} if mpi else {}
    check_ranks(
        count, "all_collectives.py", str(tmp_path / "out"), devices=8 // count, **environment
    )
    found = _results(tmp_path / "out", count)
    assert found.keys() == alone.keys()
    assert len(found) > 400
    for name, bits in alone.items():
        np.testing.assert_array_equal(found[name], bits, name)


def test_more_processes_than_send_straight_to_each_other() -> None:
    alone = check_ranks(0, "many.py", devices=10)
    assert len(alone.splitlines()) == 10
    assert check_ranks(5, "many.py", devices=2) == alone
