"""The programs of other compilers lie beside their tests."""

import os
import sys

sys.path.insert(0, os.path.dirname(__file__))
