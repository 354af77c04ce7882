"""Collectives that go on while their devices compute: the same bits, and none waits for ever."""

import pytest
from processes.ranks import check_ranks, run_ranks

from lamina.partitioning import missing

pytestmark = pytest.mark.skipif(missing() is not None, reason="needs lamina[sharding]")


def test_gradients_are_sent_while_the_next_are_computed() -> None:
    alone = check_ranks(0, "begun.py", devices=4)
    assert check_ranks(4, "begun.py") == alone
    assert check_ranks(2, "begun.py", devices=2) == alone


def test_a_process_that_never_comes_is_named() -> None:
    done = run_ranks(4, "begun.py", "sleeps")
    assert done.returncode != 0
    assert "[all_reduce] of jit_step waited 5000 ms for process 1 of 4, which never came to it" in done.stderr
