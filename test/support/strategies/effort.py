"""How much random testing a run does."""

import os


def examples(default: int) -> int:
    """How many examples a property draws: `default`, or what LAMINA_TEST_EXAMPLES asks for."""
    return int(os.environ.get("LAMINA_TEST_EXAMPLES") or default)
