"""The program of a process that compiles kernels for another (`lamina.backends.workers`)."""

from __future__ import annotations

import json
import os
import select
import signal
import sys

_IDLE_SECONDS = 60.0  # memory: that a worker without work holds
_FIRST = """func.func private @kernel(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>)
    -> tensor<64x64xf32> attributes {lamina.kind = "output"} {
  %c = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %d = stablehlo.tanh %c : tensor<64x64xf32>
  return %d : tensor<64x64xf32>
}"""


def main() -> None:
    """Compile what comes in until nothing has for a minute, or the other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's
    given, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # a library that prints must not be read as an answer
    from lamina.backends.cpu.kernel import emit_kernel, lower_kernel
    from lamina.backends.kernels import to_bytes
    from lamina.backends.target import Target
    from lamina.dialects.context import context_for_program, parse
    from lamina.dialects.processes import read_message, write_message

    def compiled(symbol: str, source: str, target: Target) -> bytes:
        try:
            context_for_program(len(source))
            module = parse(source)  # held: its ops go with it
            kernel = module.body.operations[0].operation
            return to_bytes(emit_kernel(lower_kernel(kernel, symbol, source, target), target))
        except Exception:  # the parent fails the same way, and knows the user's line
            return b""

    try:
        compiled("first", _FIRST, Target.host())  # imports, patterns: the next takes a tenth
        write_message(answers, b"ready")
        while select.select([given], [], [], _IDLE_SECONDS)[0]:
            job = json.loads(read_message(given))
            target = Target.described(job["target"])
            write_message(answers, compiled(job["symbol"], job["source"], target))
    except (EOFError, BrokenPipeError):  # the parent is gone
        return
