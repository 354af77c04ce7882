"""An emulator of PTX: kernels as text run on NumPy arrays, and what a GPU would not forgive is an error."""

from support.ptx.bulk import TensorMap
from support.ptx.errors import PtxError, UnknownPtx
from support.ptx.launch import Pointer, Program
from support.ptx.machine import CONFLICTS, SECTORS, WARPS
