"""Builds the native runtime with sanitizers, in folders of their own, and runs its tests on them.

    python test/sanitize.py                              # as `make sanitize`: both kinds, test/runtime
    python test/sanitize.py thread test/runtime/test_threads.py -x

`address` finds memory that is used wrongly and undefined behaviour (ASan, UBSan), `thread` data races
(TSan). Python itself is not built with them: their libraries are loaded before it, and what other
libraries do is left out (sanitizers/*.supp). A finding ends the test's process, or is in a report below
build/sanitize, either of which fails the run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent
SUPPRESSIONS = REPO / "test" / "sanitizers"
FLAGS = {
    "address": "-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-sanitize=vptr",
    "thread": "-fsanitize=thread",
}
LIBRARIES = {"address": ("libasan.so", "libubsan.so"), "thread": ("libtsan.so",)}
# How the tests' processes find the module that was built here: it is looked for before all others.
_CUSTOMIZE = """import importlib.util, sys


class Sanitized:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "lamina.runtime._runtime":
            return importlib.util.spec_from_file_location(name, {module!r})


sys.meta_path.insert(0, Sanitized)
"""


def main(arguments: list[str]) -> int:
    """The command; its exit code."""
    kinds = [word for word in arguments if word in FLAGS] or list(FLAGS)
    rest = [word for word in arguments if word not in FLAGS] or ["test/runtime"]
    if shutil.which("g++") is None:
        sys.exit("the sanitizers' libraries are g++'s: on Debian, `apt install g++`")
    return max([_run(kind, rest) for kind in kinds])


def _build(kind: str, folder: Path) -> Path:
    """The module, built with a sanitizer."""
    configured = [
        "cmake", "-S", REPO, "-B", folder, "-G", "Ninja", "-DCMAKE_CXX_COMPILER=g++",
        "-DCMAKE_BUILD_TYPE=RelWithDebInfo", f"-DPython_EXECUTABLE={sys.executable}",
        f"-DCMAKE_CXX_FLAGS={FLAGS[kind]} -fno-omit-frame-pointer",
    ]  # fmt: skip
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # of cmake and ninja
    for command in (configured, ["cmake", "--build", folder]):
        subprocess.run(command, check=True, env=os.environ | {"PATH": path}, stdout=subprocess.DEVNULL)
    (module,) = folder.glob("_runtime*.so")
    return module


def _run(kind: str, tests: list[str]) -> int:
    folder = REPO / "build" / "sanitize" / kind
    print(f"{kind}: building in {folder}", flush=True)
    module = _build(kind, folder)
    (folder / "sitecustomize.py").write_text(_CUSTOMIZE.format(module=str(module)))
    for old in folder.glob("report.*"):
        old.unlink()
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "timeout=1800", *tests]
    left_out = ["page_faults"]  # memory that is given back is not given out again soon
    if kind == "thread":  # which has no room where addresses are drawn from all there are
        command = ["setarch", "-R", *command]
        left_out.append("fork")  # TSan does not follow a process that forks while it has threads
    command += ["-k", " and ".join(f"not {word}" for word in left_out)]
    code = subprocess.run(command, env=_environment(kind, folder), cwd=REPO, check=False).returncode
    reports = sorted(folder.glob("report.*"))
    for report in reports:
        print(report.read_text(errors="replace"))
    print(f"{kind}: exit code {code} of the tests, {len(reports)} reports", flush=True)
    return int(code != 0 or bool(reports))


def _environment(kind: str, folder: Path) -> dict[str, str]:
    def library(name: str) -> str:
        asked = subprocess.run(
            ["g++", f"-print-file-name={name}"], check=True, capture_output=True, text=True
        )
        return str(Path(asked.stdout.strip()).resolve())

    # C++'s library, too: exceptions are watched, and Python does not load it itself.
    libraries = [library(name) for name in (*LIBRARIES[kind], "libstdc++.so.6")]
    report = f"log_path={folder}/report"
    options = {
        "ASAN_OPTIONS": f"{report}:detect_leaks=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": f"{report}:print_stacktrace=1:suppressions={SUPPRESSIONS}/undefined.supp",
        "TSAN_OPTIONS": f"{report}:report_signal_unsafe=0:die_after_fork=0:"
        f"suppressions={SUPPRESSIONS}/thread.supp",
    }
    return os.environ | options | {
        "LD_PRELOAD": " ".join(libraries),
        "PYTHONPATH": os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]),
        "PYTHONMALLOC": "malloc",  # each object is memory of its own to the sanitizer
    }  # fmt: skip


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
