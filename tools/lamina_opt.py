"""Run passes on MLIR files: any of ours or MLIR's, alone or as a pipeline.

    lamina-opt f.mlir --pass-pipeline='stablehlo-cse,canonicalize,stablehlo-fuse{max-ops=32}'
    lamina-opt f.mlir --stablehlo-simplify --stablehlo-fuse=max-ops=32 --print-ir-after-change

Passes named as options run in the order given. The input may be text, bytecode or a StableHLO
portable artifact; '-' is standard input.
"""

from __future__ import annotations

import argparse
import inspect
import linecache
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from lamina.backends.machine.choice import named
from lamina.dialects.attributes import MACHINE, SCHEDULE
from lamina.dialects.context import make_context
from lamina.dialects.foreign import read
from lamina.dialects.parse_error import ParseError
from lamina.dialects.serialize import to_text
from lamina.dialects.vendors import ir
from lamina.interpreters.foreign_programs import limits
from lamina.passes.framework import instrumentation, options, registry
from lamina.passes.framework.base import CompileError
from lamina.passes.framework.find import functions_of
from lamina.passes.framework.machine_attribute import write_machine
from lamina.passes.framework.pipeline import Pipeline
from lamina.tools.command import add_isolate, command
from lamina.tools.expected_diagnostics import Diagnostic, check

_SEPARATOR = "// -----"


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code: 0, or 1 after one clear message on stderr."""
    return command("lamina-opt", _run, argv)


def _run(argv: list[str]) -> int:
    arguments, pass_options = _parser().parse_known_args(argv)
    for path in arguments.load:
        registry.load_file(path)
    if arguments.list_passes:
        print(_list_of_passes())
        return 0
    pipeline = _pipeline(arguments.pass_pipeline, pass_options)
    name, data = _read(arguments.input)
    chunks = _chunks(data) if arguments.split_input_file else [data]
    watch = instrumentation.Instrumentation(
        print_after=_print_after(arguments),
        timing=arguments.timing,
        debug_info=arguments.mlir_print_debuginfo,
    )
    outputs, problems = [], []
    for chunk in chunks:
        # A context of its own, so that one chunk's failure leaves nothing behind for the next.
        with make_context() as context, ir.Location.unknown(), instrumentation.use(watch):
            context.allow_unregistered_dialects = arguments.allow_unregistered_dialect
            if arguments.verify_diagnostics:
                problems += check(_text_of(chunk), _diagnostics(chunk, name, pipeline, arguments))
            else:
                module = _compile(chunk, name, pipeline, arguments)
                outputs.append(to_text(module, debug_info=arguments.mlir_print_debuginfo))
    if arguments.timing:
        print(watch.report(), file=sys.stderr)
    if problems:
        raise ValueError("\n".join(f"{name}:{problem}" for problem in problems))
    _write(arguments.output, f"{_SEPARATOR}\n".join(outputs))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="lamina-opt",
        description=inspect.cleandoc(__doc__ or ""),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="and --<pass-name>[=options] for each pass of --list-passes, or of MLIR's",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("input", nargs="?", default="-", help="file to read, '-' for standard input")
    add("-o", dest="output", default="-", metavar="FILE", help="where to write the result")
    add("--pass-pipeline", metavar="PASSES", help="passes as text, with options in braces")
    add("--load", action="append", default=[], metavar="FILE.py", help="a file with one more pass")
    add("--machine", metavar="NAME", help="what modules are for that don't say so, such as znver5")
    add(
        "--schedule-override",
        metavar="FILE",
        help="schedules to take instead of choosing: lines such as '@f s0: j i; s1: i' (see docs/schedules.md)",
    )
    add("--list-passes", action="store_true", help="print our passes with their options")
    add("--print-ir-after-all", action="store_true", help="print the module after each pass")
    add("--print-ir-after-change", action="store_true", help="the same, if the pass changed it")
    add("--timing", action="store_true", help="print each pass's time and statistics")
    add("--split-input-file", action="store_true", help="treat parts between // ----- alone")
    add("--verify-diagnostics", action="store_true", help="compare errors with expected-error {{}}")
    add("--no-verify", dest="verify", action="store_false", help="don't verify after each pass")
    add("--mlir-print-debuginfo", action="store_true", help="print source locations")
    add("--allow-unregistered-dialect", action="store_true", help="accept ops nobody defines")
    add_isolate(parser)
    return parser


def _pipeline(text: str | None, pass_options: list[str]) -> Pipeline:
    if text is not None and pass_options:
        raise ValueError(f"--pass-pipeline can't be mixed with {pass_options[0]}")
    if text is not None:
        return Pipeline.parse(text)
    stages = []
    for option in pass_options:
        match = re.fullmatch(r"--?([\w.\-]+)(?:=(.*))?", option, re.DOTALL)
        if match is None:
            raise ValueError(f"unexpected argument {option!r}")
        stages.append(match[1] + (f"{{{match[2]}}}" if match[2] else ""))
    return Pipeline.of(*stages)


def _list_of_passes() -> str:
    lines = []
    for name, cls in registry.all_passes().items():
        lines.append(f"{name}\n    {registry.documentation(cls).splitlines()[0]}")
        if described := options.describe(cls):
            lines.append(f"    options: {described}")
    return "\n".join(lines)


def _read(path: str) -> tuple[str, bytes]:
    if path != "-":
        return path, Path(path).read_bytes()
    data = sys.stdin.buffer.read()
    lines = data.decode(errors="replace").splitlines(keepends=True)
    linecache.cache["<stdin>"] = (len(data), None, lines, "<stdin>")
    return "<stdin>", data


def _write(path: str, text: str) -> None:
    if path == "-":
        sys.stdout.write(text)
    else:
        Path(path).write_text(text)


def _chunks(data: bytes) -> list[bytes]:
    """The parts of a file, each after as many empty lines as keep its line numbers the file's."""
    found, line = [], 0
    for part in re.split(r"^// -----.*\n?", _text_of(data), flags=re.MULTILINE):
        found.append(("\n" * line + part).encode())
        line += part.count("\n") + 1
    return found


def _text_of(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ValueError("only text can be split or checked for diagnostics") from None


def _compile(
    data: bytes, name: str, pipeline: Pipeline, arguments: argparse.Namespace
) -> ir.Module:
    module = read(
        data,
        name=name,
        isolate=arguments.isolate,
        limits=limits(),
        allow_unregistered_dialects=arguments.allow_unregistered_dialect,
        keeps_marks=True,
    )
    if arguments.machine is not None and MACHINE not in module.operation.attributes:
        write_machine(module, named(arguments.machine))
    if arguments.schedule_override is not None:
        _override_schedules(module, Path(arguments.schedule_override))
    try:
        pipeline.run(module, verify="each" if arguments.verify else "never")
    except CompileError as error:
        raise error.in_file("-", name) from error.__cause__
    return module


def _override_schedules(module: ir.Module, path: Path) -> None:
    """Write the schedules of a file on the functions that they are for."""
    functions = functions_of(module)
    for number, line in enumerate(path.read_text().splitlines(), 1):
        name, _, schedule = line.partition("#")[0].strip().partition(" ")
        if not name:
            continue
        if not name.startswith("@") or name[1:] not in functions:
            listed = ", ".join(f"@{known}" for known in functions) or "none"
            raise ValueError(f"{path}:{number}: no function is called {name}; there are {listed}")
        functions[name[1:]].attributes[SCHEDULE] = ir.StringAttr.get(schedule.strip(), module.context)


def _diagnostics(
    data: bytes, name: str, pipeline: Pipeline, arguments: argparse.Namespace
) -> list[Diagnostic]:
    """What the passes say about a part that may be wrong."""
    try:
        _compile(data, name, pipeline, arguments)
    except ParseError as error:
        return [Diagnostic(error.line or None, error.problem)]
    except CompileError as error:
        places = [frame.line for frame in error.frames if frame.file == name]
        text = f"[{error.op_name}] {error.message}" if error.op_name else error.message
        hint = f" hint: {error.hint}" if error.hint else ""
        return [Diagnostic(places[0] if places else None, text + hint)]
    return []


def _print_after(arguments: argparse.Namespace) -> instrumentation.Which | None:
    if arguments.print_ir_after_all:
        return "all"
    return "changed" if arguments.print_ir_after_change else None


if __name__ == "__main__":
    sys.exit(main())
