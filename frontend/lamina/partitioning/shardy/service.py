"""The program of the process that answers `lamina.partitioning`: programs on whole arrays, to be cut.

Each request is two messages, what is asked and the program's bytes; so is each answer:

    {"devices": 4, "version": "1.13.0", "way": 0}
    {"inputs": [[[2, 1], 2, [0, 1, 2, 3], 1, "", [["x"], []]]], "outputs": [...], "inspected": []}
    {"error": "...", "final": false}
    {"questions": [{"key": "...", "operands": [["tensor<4xf32>", [[4], ...]]], "results": [...]}]}

An array's sharding is the number of parts along each dimension, how many devices have each part, the
devices in the parts' order, how many terms a part has, what combines them, and the mesh axes of each
dimension. Inspected are arrays whose sharding JAX asks for: each has a key of JAX's. Where the program has
calls whose user says how they are partitioned, and the request has no answers, it is answered with questions; it
comes again then, with

    "answers": [{"code": "...", "inputs": [[[4], [0, 1, 2, 3]]], "outputs": [...]}]

Ways:

0  all of Shardy: shardings spread from the annotations, parts move between devices where they must
1  nothing spreads: each device has the whole arrays but for arguments, results, and what is by hand
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys

from lamina.dialects.processes import read_message, write_message

# jaxlib's bindings do without NumPy where there is none, and so does what is here: importing it would be two fifths
# of the time that this process takes to start.
sys.modules["numpy"] = None  # type: ignore[assignment]

from lamina.partitioning.shardy.passes import Refused, partitioned  # noqa: E402


def main() -> None:
    """Answers until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's
    given, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print is no answer
    with contextlib.suppress(EOFError, BrokenPipeError):  # the parent is gone
        while True:
            request = json.loads(read_message(given))
            code = read_message(given)
            made = b""
            try:
                answer, made = partitioned(code, request)
            except Refused as error:
                answer = {"error": str(error), "final": True}
            except Exception as error:
                answer = {"error": f"Shardy does not partition it: {error}", "final": False}
            write_message(answers, json.dumps(answer).encode())
            write_message(answers, made)
