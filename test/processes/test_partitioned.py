"""Programs that are partitioned run over processes as over the devices of one."""

import importlib.util

import pytest
from processes.ranks import check_ranks


@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="Shardy comes with JAX")
def test_training_steps() -> None:
    alone = check_ranks(0, "partitioned.py", devices=4)
    assert check_ranks(4, "partitioned.py") == alone
