"""JAX's own tests on lamina as JAX's backend, beside JAX's CPU backend.

    make jax-check CHECKOUT=~/jax TESTS="lax_test nn_test"          # a checkout of the JAX that is installed
    make jax-check CHECKOUT=~/jax TESTS="pmap_test pjit_test" DEVICES=8
    .venv/bin/python test/jax_check.py ~/jax lax_test --cases 10 --json out/jax.json

Each file of `CHECKOUT/tests` (by default all but those for other hardware) runs twice, with JAX_PLATFORMS
"cpu" and "lamina", on as many processes as there are CPUs. The table says of each how many tests passed on
JAX's CPU backend, how many of those on lamina, and which did not.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

_OTHER_HARDWARE = re.compile(
    r"tpu|gpu|mosaic|pallas|multiprocess|cuda|rocm|triton|distributed|fused_attention|cross_host|ragged"
)
CRASHED = "(the process ended)"
"""The test that stands for a process that ended, or was ended, before all were done."""


def run(
    checkout: Path, name: str, platform: str, cases: int, seconds: float, *options: str
) -> dict[str, tuple[str, str]]:
    """{test: (outcome, first line of why)} of one file on one platform. The options are pytest's."""
    environment = {
        **os.environ,
        "JAX_PLATFORMS": platform,
        "JAX_TEST_DUT": "cpu",
        "JAX_NUM_GENERATED_CASES": str(cases),
        "JAX_SKIP_SLOW_TESTS": "1",
        "PYTHONPATH": os.pathsep.join((str(checkout / "tests"), str(Path(__file__).parent))),
        "PYTHONSAFEPATH": "1",  # the installed jax, not the checkout's, which may need another jaxlib
    }
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [
            sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short",
            "--import-mode=append", "--noconftest", f"--junitxml={report}", *options, f"tests/{name}.py",
        ]  # fmt: skip
        running = subprocess.Popen(
            command, cwd=checkout, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        late = {}
        try:
            errors = running.communicate(timeout=seconds)[1]
        except subprocess.TimeoutExpired:
            late = {CRASHED: ("failed", f"took longer than {seconds:g} s")}
            errors = _interrupted(running)
        if not report.exists():
            return late or {CRASHED: ("failed", f"exit status {running.returncode}: {errors[-300:]}")}
        return dict(map(_outcome, ElementTree.parse(report).iter("testcase"))) | late


def _interrupted(running: subprocess.Popen[str]) -> str:
    """What a run says that is told to end: pytest reports then of the tests that it has done."""
    running.send_signal(signal.SIGINT)
    try:
        return running.communicate(timeout=20)[1]
    except subprocess.TimeoutExpired:  # it hangs outside of Python
        running.kill()
        return running.communicate()[1]


def _outcome(case: ElementTree.Element) -> tuple[str, tuple[str, str]]:
    name = f"{case.get('classname')}.{case.get('name')}"
    for outcome, tag in (("skipped", "skipped"), ("failed", "failure"), ("failed", "error")):
        found = case.find(tag)
        if found is not None:
            return name, (outcome, (found.get("message") or "").split("\n")[0][:200])
    return name, ("passed", "")


def files(checkout: Path) -> list[str]:
    """The names of JAX's tests that are for every machine."""
    names = (path.stem for path in (checkout / "tests").glob("*_test.py"))
    return sorted(name for name in names if not _OTHER_HARDWARE.search(name))


def main() -> None:
    """Prints the table; exits with 1 where a test that JAX's CPU backend passes fails on lamina."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("checkout", type=Path, help="a checkout of JAX's repository")
    parser.add_argument("tests", nargs="*", help="names of files in tests/, without .py")
    parser.add_argument("--cases", type=int, default=1, help="of each product of parameters")
    parser.add_argument("--devices", type=int, help="of this machine's CPU; default: those a file asks for")
    parser.add_argument("--seconds", type=float, default=1800, help="the longest that a file may take")
    parser.add_argument("--json", type=Path, help="where to write all outcomes")
    given = parser.parse_args()
    if not (given.checkout / "tests").is_dir():
        parser.error(f"{given.checkout} is no checkout of JAX: it has no folder tests")
    if given.devices:
        os.environ["JAX_NUM_CPU_DEVICES"] = str(given.devices)
    names = given.tests or files(given.checkout)
    jobs = [(name, platform) for name in names for platform in ("cpu", "lamina")]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = dict(
            zip(
                jobs,
                pool.map(lambda job: run(given.checkout, *job, given.cases, given.seconds), jobs),
            )
        )
    everything, lost = 0, 0
    for name in names:
        on_cpu, here = found[name, "cpu"], found[name, "lamina"]
        passing = [test for test, (outcome, _) in on_cpu.items() if outcome == "passed"]
        missing = [test for test in passing if here.get(test, ("failed",))[0] != "passed"]
        everything, lost = everything + len(passing), lost + len(missing)
        print(f"{name:40} {len(passing) - len(missing):6} of {len(passing):6}", flush=True)
        for test in missing:
            print("   ", test, "|", *here.get(test, ("did not run", here.get(CRASHED, ("", ""))[1])))
    share = 100 * (everything - lost) / max(everything, 1)
    print(f"\n{everything - lost} of {everything} that pass on JAX's CPU backend pass here: {share:.1f} %")
    if given.json:
        rows = {f"{name} {platform}": outcomes for (name, platform), outcomes in found.items()}
        given.json.write_text(json.dumps(rows, indent=1))
    sys.exit(lost > 0)


if __name__ == "__main__":
    main()
