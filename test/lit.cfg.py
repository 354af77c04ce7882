"""lit: `lit test` runs every .mlir and .filecheck.py file under test/ by its RUN lines."""

import os
import sys
from pathlib import Path

import lit.formats

repo = Path(__file__).resolve().parent.parent
bin_dir = Path(sys.executable).parent

config.name = "lamina"  # noqa: F821 (lit gives us `config`)
config.test_format = lit.formats.ShTest(execute_external=False)  # noqa: F821
config.suffixes = [".mlir", ".filecheck.py"]  # noqa: F821
config.excludes = ["lit.cfg.py", "Inputs"]  # noqa: F821
config.test_source_root = str(repo / "test")  # noqa: F821
config.test_exec_root = str(repo / "build" / "lit")  # noqa: F821

config.substitutions += [  # noqa: F821
    ("%lamina-opt", f"{sys.executable} -m lamina.tools.lamina_opt"),
    ("%PYTHON", sys.executable),
    ("%python", sys.executable),
    ("FileCheck", str(bin_dir / "filecheck")),
]
# The tests must not depend on how the caller has set lamina up.
for name, value in os.environ.items():
    if name in ("PATH", "HOME", "VIRTUAL_ENV", "LD_LIBRARY_PATH"):
        config.environment[name] = value  # noqa: F821
config.environment["PYTHONPATH"] = os.environ.get("PYTHONPATH", "")  # noqa: F821
config.environment["LAMINA_CACHE"] = "0"  # noqa: F821
config.environment["LAMINA_PROCESSOR"] = os.environ.get("LAMINA_TEST_PROCESSOR", "")  # noqa: F821
