"""Answers requests on its standard input until that ends: programs on whole arrays, to be cut.

    {"devices": 4, "version": "1.13.0", "way": 0, "bytes": 812}     then the program's bytes
    {"inputs": [[[2, 1], 2, [0, 1, 2, 3], 1, ""]], "outputs": [...], "bytes": 640}     then those of the result
    {"error": "...", "final": false, "bytes": 0}

An array's sharding is the number of parts along each dimension, how many devices have each part, the
devices in the parts' order, how many terms a part has, and what combines them. Ways:

0  all of Shardy: shardings spread from the annotations, parts move between devices where they must
1  nothing spreads: each device has the whole arrays but for arguments, results, and what is by hand
"""

from __future__ import annotations

import json
import os
import sys

from .passes import Refused, partitioned


def main() -> None:
    """Answers until the input ends."""
    back = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print is no answer
    while head := sys.stdin.buffer.readline():
        request = json.loads(head)
        code = sys.stdin.buffer.read(request["bytes"])
        made = b""
        try:
            answer, made = partitioned(code, request)
        except Refused as error:
            answer = {"error": str(error), "final": True}
        except Exception as error:
            answer = {"error": f"Shardy does not partition it: {error}", "final": False}
        back.write(json.dumps({**answer, "bytes": len(made)}).encode() + b"\n" + made)
        back.flush()


main()
