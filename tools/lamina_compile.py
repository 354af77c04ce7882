"""Compile a StableHLO program to an artifact, or show it at a stage on the way there.

    lamina-compile model.mlir -o model.lamina
    lamina-compile model.mlir --emit fused
    lamina-compile model.mlir --emit asm -o model.s --timing

The input may be MLIR text, bytecode or a StableHLO portable artifact; '-' is standard input.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from lamina import config
from lamina.backends.compile import Compilation, compile_module
from lamina.backends.stages import KERNEL_STAGES, stages_of
from lamina.backends.target import Target
from lamina.stablehlo_api import read_module, with_source
from lamina.tools.command import add_isolate, command


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code: 0, or 1 after one clear message on stderr."""
    return command("lamina-compile", lambda given: _run(_parser().parse_args(given)), argv)


def _run(arguments: argparse.Namespace) -> int:
    target = Target.parse(arguments.target)
    source = sys.stdin.buffer.read() if arguments.input == "-" else Path(arguments.input)
    begin = time.perf_counter()
    module = read_module(source, arguments.isolate)
    with with_source(source):
        most = config.program_operations.value
        compilation = compile_module(
            module, target=target, name=arguments.name, most_operations=most
        )
    seconds = time.perf_counter() - begin
    if arguments.emit is not None:
        _write(arguments.output, compilation.text(arguments.emit))
    elif arguments.output is not None:
        Path(arguments.output).write_bytes(compilation.artifact.to_bytes())
    else:
        print(_summary(compilation))
        print("  nothing is written: -o FILE writes the artifact, --emit STAGE shows a stage")
    if arguments.timing:
        how = "found in the store" if compilation.from_cache else "compiled"
        print(f"lamina-compile: {how} in {seconds:.3f} s", file=sys.stderr)
    return 0


def _write(path: str | None, text: str) -> None:
    if path is None:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
    else:
        Path(path).write_text(text)


def _summary(compilation: Compilation) -> str:
    """A program's signature, kernels and memory, for people."""
    manifest = compilation.artifact.manifest
    lines = [f"{manifest['name']}: {_types(manifest['inputs'])} -> {_types(manifest['outputs'])}"]
    for row in manifest["kernels"]:
        lines.append(
            f"  {row['calls']:5d} x {row['name']} ({row.get('kind', '')}): {row['reason']}"
        )
    memory = ", ".join(f"{name} {size}" for name, size in manifest["memory"].items())
    return "\n".join([*lines, f"  bytes: {memory}"])


def _types(rows: list[dict]) -> str:
    return ", ".join(f"{row['dtype']}[{','.join(map(str, row['shape']))}]" for row in rows)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="lamina-compile",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("input", help="the program, or '-'")
    parser.add_argument("-o", "--output", help="where to write the artifact, or the stage's text")
    stages = sorted(set().union(*map(stages_of, KERNEL_STAGES)))
    parser.add_argument("--emit", choices=stages, metavar="STAGE", help=", ".join(stages))
    targets = "cpu (the default: this machine's processor), or such as cpu:x86-64-v3, cuda:sm_90a"
    parser.add_argument("--target", default="cpu", help=targets)
    parser.add_argument("--name", help="the program's name, instead of its module's")
    add_isolate(parser)
    parser.add_argument("--timing", action="store_true", help="say how long it took")
    return parser


if __name__ == "__main__":
    sys.exit(main())
