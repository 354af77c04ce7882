"""Measure this machine once, so that programs compiled from then on go by it.

    lamina-calibrate
    lamina-calibrate --dry-run

Products of matrices are timed as code generated for their shape, by the packed product that all of a type share, and
by OpenBLAS, at several sizes: that takes some seconds of processor time. The rates are kept in the disk cache, and
are part of the key of all that is compiled: programs compiled before are compiled again. Without this, lamina goes by
what is known of the processor that is most like this one; sizes of caches are always this machine's.
"""

from __future__ import annotations

import argparse
import inspect
import json
import sys
from collections.abc import Sequence

from lamina.backends.machine.calibrate import product_rates
from lamina.backends.machine.choice import keep_rates, nearest
from lamina.backends.target import Target
from lamina.tools.command import command


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code: 0, or 1 after one clear message on stderr."""
    return command("lamina-calibrate", lambda given: _run(_parser().parse_args(given)), argv)


def _run(arguments: argparse.Namespace) -> int:
    target = Target.host()
    features = [name[1:] for name in target.features.split(",") if name.startswith("+")]
    print(f"{target.cpu}, until now taken for {nearest(target.cpu, features)}", file=sys.stderr)
    rates = product_rates(lambda line: print(line, file=sys.stderr, flush=True))
    print(json.dumps(rates, indent=2))
    if not arguments.dry_run and not keep_rates(target.cpu, rates):
        raise OSError("the rates could not be kept: there is no disk cache (see LAMINA_CACHE and LAMINA_CACHE_DIR)")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="lamina-calibrate",
        description=inspect.cleandoc(__doc__ or ""),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--dry-run", action="store_true", help="print the rates, keep nothing")
    return parser
