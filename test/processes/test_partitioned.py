"""Programs that are partitioned run over processes as over the devices of one."""

import pytest
from processes.ranks import check_ranks

from lamina.partitioning import missing


@pytest.mark.skipif(missing() is not None, reason="needs lamina[sharding]")
def test_training_steps() -> None:
    alone = check_ranks(0, "partitioned.py", devices=4)
    assert check_ranks(4, "partitioned.py") == alone
