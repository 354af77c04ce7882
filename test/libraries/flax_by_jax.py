"""examples/flax_by_jax.py, by whichever backend JAX_PLATFORMS names."""

import contextlib
import io
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
import flax_by_jax

with contextlib.redirect_stdout(io.StringIO()):
    found = flax_by_jax.main()
print(json.dumps(found))
