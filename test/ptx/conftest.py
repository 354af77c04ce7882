"""The programs of other compilers lie beside their tests, our kernels in those of backends."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "backends")]
