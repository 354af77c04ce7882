"""Feeds damaged programs, artifacts and store entries to lamina: no input may end the process or keep it
for longer than a limit, and each error is one that is documented.

    python test/fuzz/fuzz.py --seconds 60              # as `make fuzz` does: a quarter for each target
    python test/fuzz/fuzz.py --cases 5000 text bytecode
    python test/fuzz/fuzz.py --seed 7 --first 120 --cases 1 text       # one case again

A process of its own runs the cases of a target, so that one that dies is seen. What was wrong is written
to out/fuzz, with the command that runs it again; the exit code is 1 then.
"""

from __future__ import annotations

import argparse
import os
import random
import select
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

_TARGETS = ("text", "bytecode", "artifact", "store")
_FOUND = Path("out/fuzz")


def main() -> int:
    """The command; its exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("targets", nargs="*", default=_TARGETS, metavar="target", help=", ".join(_TARGETS))
    parser.add_argument("--seconds", type=float, help="how long all targets together take")
    parser.add_argument("--cases", type=int, help="how many cases of each target")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="the number of the first case that is run")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds that a case may take")
    parser.add_argument("--run", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.run:
        return _run(given.targets[0], given.seed, given.first, given.cases)
    if given.seconds is None and given.cases is None:
        given.seconds = 60.0
    return max([_watch(target, given) for target in given.targets])


def _watch(target: str, given: argparse.Namespace) -> int:
    """Run the cases of a target in a process, and another from the next case on where it ended."""
    number, wrong, ends = given.first, 0, Counter[str]()
    last = None if given.cases is None else given.first + given.cases
    budget = None if given.seconds is None else given.seconds / len(given.targets)
    until = None if budget is None else time.monotonic() + budget
    while (last is None or number < last) and (until is None or time.monotonic() < until):
        with tempfile.TemporaryDirectory() as folder:
            count = "" if last is None else str(last - number)
            begun = number
            number, problem = _process(target, given, number, count, until, folder, ends)
            if problem is None:
                break
            wrong += 1
            _FOUND.mkdir(parents=True, exist_ok=True)
            kept = _FOUND / f"{target}-{given.seed}-{number}"
            case = Path(folder, "case")
            kept.write_bytes(case.read_bytes() if case.exists() else b"")
            command = f"--seed {given.seed} --first {number} --cases 1 {target}"
            print(f"{target} case {number}: {problem}\n  kept as {kept}; again: {command}", flush=True)
            number += 1
            if number == begun + 1 and not ends:
                return 1  # it is not the case that is wrong
    listed = ", ".join(f"{count} {end}" for end, count in ends.most_common())
    print(f"{target}: {sum(ends.values())} cases: {listed}; {wrong} wrong", flush=True)
    return int(wrong > 0)


def _process(
    target: str, given: argparse.Namespace, first: int, count: str, until: float | None, folder: str,
    ends: Counter[str],
) -> tuple[int, str | None]:  # fmt: skip
    """(the number of the last case, what was wrong with it or None)."""
    command = [sys.executable, __file__, "--run", "--seed", str(given.seed), "--first", str(first)]
    command += ["--cases", count] if count else []
    environment = os.environ | {
        "LAMINA_CACHE": "0",
        "LAMINA_CACHE_DIR": os.path.join(folder, "cache"),
        "LAMINA_COMPILE_WORKERS": "0",
        "LAMINA_READER_SECONDS": str(given.limit / 3),
        "FUZZ_CASE": os.path.join(folder, "case"),
        "TMPDIR": folder,
    }
    process = subprocess.Popen(
        [*command, target], stdout=subprocess.PIPE, env=environment, text=True, bufsize=1
    )
    assert process.stdout is not None
    number = first
    try:
        while True:
            left = given.limit if until is None else min(given.limit, until - time.monotonic())
            if not select.select([process.stdout], [], [], max(0.0, left))[0]:
                if until is not None and time.monotonic() >= until:
                    return number, None
                return number, f"takes longer than {given.limit:g} s"
            line = process.stdout.readline()
            if not line:
                code = process.wait()
                return number, None if code == 0 else f"the process ended with {code}"
            word, _, rest = line.rstrip("\n").partition(" ")
            if word == "begin":
                number = int(rest)
            elif word == "end":
                ends[rest] += 1
            elif word == "wrong":
                return number, rest
    finally:
        process.kill()
        process.wait()


def _run(target: str, seed: int, first: int, cases: int | None) -> int:
    """The process that runs cases: says when one begins and how it ended."""
    # What a compilation prints must not be read as an answer.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    from targets import TARGETS  # beside this file

    make = TARGETS[target]()
    number = first
    while cases is None or number < first + cases:
        draw = random.Random(f"{target} {seed} {number}")  # so that a case is the same alone
        answers.write(f"begin {number}\n")
        shown, case = make(draw)
        Path(os.environ["FUZZ_CASE"]).write_bytes(shown)
        try:
            end = case()
        except Exception as error:
            said = str(error).replace("\n", " ")[:300]
            answers.write(f"wrong {type(error).__name__}: {said}\n")
            return 0
        answers.write(f"end {end}\n")
        number += 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
