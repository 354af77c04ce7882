"""Arrays over several processes."""

from processes.ranks import check_ranks


def test_made_moved_and_told_to_all() -> None:
    assert check_ranks(4, "arrays.py", devices=2).count("all right") == 4
