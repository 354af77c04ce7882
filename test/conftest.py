"""What all tests share: no disk cache but a temporary one, JAX (the oracle) on the CPU, and a
Hypothesis profile whose examples are the same in every run."""

import os
import tempfile

import hypothesis

# Set before anything imports lamina or jax.
os.environ["LAMINA_CACHE_DIR"] = tempfile.mkdtemp(prefix="lamina-test-cache-")
os.environ["JAX_PLATFORMS"] = "cpu"
for _name in [n for n in os.environ if n.startswith("LAMINA_") and n != "LAMINA_CACHE_DIR"]:
    del os.environ[_name]

hypothesis.settings.register_profile(
    "lamina",
    deadline=None,
    derandomize=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.filter_too_much],
)
hypothesis.settings.load_profile("lamina")
