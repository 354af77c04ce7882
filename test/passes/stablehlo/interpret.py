"""Runs modules in StableHLO's reference interpreter: `python interpret.py FOLDER`.

It is a script of its own because the interpreter ends the process on what it can't do. Reads each
`*.mlir` of the folder, runs it on the arguments in `arguments.npz`, writes `<name>.npz`.
"""

import sys
from pathlib import Path

import numpy as np

from lamina.dialects.context import make_context, parse
from lamina.dialects.vendors import ir, stablehlo_ext


def main(folder: Path) -> None:
    arguments = np.load(folder / "arguments.npz")
    with make_context(), ir.Location.unknown():
        values = [ir.DenseElementsAttr.get(arguments[name]) for name in sorted(arguments.files)]
        for path in sorted(folder.glob("*.mlir")):
            results = stablehlo_ext.eval_module(parse(path.read_text()), values)
            np.savez(path.with_suffix(".npz"), *[np.asarray(result) for result in results])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
