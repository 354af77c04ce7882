"""Python control flow on traced values: if, while, for and the like become cond, while_loop, scan.

A function is rewritten once, as a syntax tree (source.py finds it, jumps.py takes out return, break
and continue, statements.py replaces statements by calls of runtime.py, convert.py compiles). Lines
and columns stay the user's.
"""

from lamina.python_control.convert import autograph as autograph
from lamina.python_control.convert import do_not_convert as do_not_convert
