"""What lamina-opt and lamina-compile do when something goes wrong around them."""

import os
import subprocess
import sys

import pytest

PROGRAM = """func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = stablehlo.add %x, %x : tensor<3xf32>
  return %0 : tensor<3xf32>
}
"""


@pytest.mark.parametrize(
    "command", (["lamina.tools.lamina_opt"], ["lamina.tools.lamina_compile", "--emit", "fused"])
)
def test_a_reader_that_goes_away_is_no_error(command, tmp_path):
    file = tmp_path / "program.mlir"
    file.write_text(PROGRAM)
    reading, writing = os.pipe()
    os.close(reading)
    program = f"import sys; from {command[0]} import main; sys.exit(main())"
    try:
        done = subprocess.run(
            [sys.executable, "-c", program, *command[1:], str(file)],
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")
