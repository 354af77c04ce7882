"""What the commands have in common: an error is one message and an exit code."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence

from lamina.dialects.parse_error import ParseError
from lamina.passes.framework.base import CompileError


def command(
    name: str, run: Callable[[list[str]], int], argv: Sequence[str] | None = None
) -> int:
    """Runs a command on its arguments; returns its exit code: its own, or 1 after one clear message on
    stderr, 130 where it was interrupted, 141 where nobody reads what it writes any more."""
    try:
        code = run(sys.argv[1:] if argv is None else list(argv))
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at the end
        return 141
    except (CompileError, ParseError, ValueError, OSError) as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def add_isolate(parser: argparse.ArgumentParser) -> None:
    """Adds the option `--isolate` of commands that read programs, None where it is not given."""
    parser.add_argument(
        "--isolate",
        action=argparse.BooleanOptionalAction,
        help="let a process of its own read the program first; by default for bytecode only",
    )
