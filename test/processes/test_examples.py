"""The examples of training over devices do the same in four processes as on four devices of one."""

import pytest
from processes.ranks import check_ranks
from support.example_results import EXAMPLES

from lamina.partitioning import missing

PARTITIONED = ("sharded_batch", "sharded_layers", "sharded_weights")


@pytest.mark.parametrize("name", [*PARTITIONED, "data_parallel", "ring_attention", "pipeline"])
def test_in_four_processes(name: str) -> None:
    if name in PARTITIONED and missing() is not None:
        pytest.skip("needs lamina[sharding]")
    alone = check_ranks(0, str(EXAMPLES / f"{name}.py"), devices=4)
    assert "on 4 devices" in alone
    assert check_ranks(4, str(EXAMPLES / f"{name}.py")) == alone
