"""What all tests share: no disk cache but a temporary one, JAX (the oracle) on the CPU, and a
Hypothesis profile whose examples are the same in every run.

LAMINA_TEST_EXAMPLES=500 make pytest draws that many examples per property, at random;
LAMINA_TEST_PLATFORMS=cuda,cpu runs programs on a GPU where they do not say where (LAMINA_PLATFORMS);
LAMINA_TEST_PROCESSOR and LAMINA_TEST_XLA_FLAGS are set by run_as.py, for tests as on another machine.
"""

import atexit
import importlib.metadata
import os
import re
import shutil
import signal
import sys
import tempfile

import hypothesis
import pytest

# Helpers of tests (primitive_samples, random_programs) lie beside this file.
sys.path.insert(0, os.path.dirname(__file__))

# Tests send Ctrl-C, also to processes that they start; what runs in the background may ignore it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

_EXAMPLES = os.environ.get("LAMINA_TEST_EXAMPLES")

# Set before anything imports lamina or jax.
for _name in [n for n in os.environ if n.startswith("LAMINA_")]:
    if not _name.startswith("LAMINA_TEST_"):
        del os.environ[_name]
for _name in ("PLATFORMS", "PROCESSOR"):
    if f"LAMINA_TEST_{_name}" in os.environ:
        os.environ[f"LAMINA_{_name}"] = os.environ[f"LAMINA_TEST_{_name}"]
os.environ["LAMINA_CACHE_DIR"] = tempfile.mkdtemp(prefix="lamina-test-cache-")
os.environ["LAMINA_COMPILE_WORKERS"] = "0"  # pytest's own workers fill the machine
os.environ["LAMINA_VERIFY"] = "1"
os.environ["LAMINA_TRACEBACK_FILTERING"] = "off"  # a failing test shows all frames
# The oracle is JAX's CPU backend; beside it stands lamina as JAX's plugin, where it is installed as one.
_PLUGINS = {plugin.name for plugin in importlib.metadata.entry_points(group="jax_plugins")}
os.environ["JAX_PLATFORMS"] = "cpu,lamina" if "lamina" in _PLUGINS else "cpu"
# JAX compiles several times as fast without its optimisations: most programs run once. Flags come and
# go, and XLA ends the process for one that it does not know.
_FLAGS = "--xla_force_host_platform_device_count=8 --xla_backend_optimization_level=0"
if importlib.metadata.version("jaxlib").startswith("0.10."):
    _FLAGS += " --xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
os.environ["XLA_FLAGS"] = f"{_FLAGS} {os.environ.get('LAMINA_TEST_XLA_FLAGS', '')}"
atexit.register(shutil.rmtree, os.environ["LAMINA_CACHE_DIR"], ignore_errors=True)

from support.oracle.version import leave_out, summary  # noqa: E402 (beside this file: after sys.path)

hypothesis.settings.register_profile(
    "lamina",
    deadline=None,
    derandomize=_EXAMPLES is None,
    max_examples=int(_EXAMPLES or 25),
    suppress_health_check=[hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.filter_too_much],
)
hypothesis.settings.load_profile("lamina")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if line := summary():
        terminalreporter.write_line(line)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    leave_out(config, items)


@pytest.fixture
def attention_of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let few scores be worth a kernel of attention, and of its gradient."""
    from lamina.backends import stages

    fuse = tuple(re.sub(r" ?least-scores=\d+", "", stage).replace("{}", "") for stage in stages.STABLEHLO_FUSE)
    assert fuse != stages.STABLEHLO_FUSE
    monkeypatch.setattr(stages, "STABLEHLO_FUSE", fuse)
