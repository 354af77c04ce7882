"""Kernels in JAX's Pallas language, as plain programs.

A kernel is a function of refs to blocks of its arguments and results, called for each place of a
grid. Here the grid is a loop, in which blocks are read, the kernel is traced, and blocks are written
back: what JAX calls interpret mode. It is compiled, and transformed, as all other code.

    def add(x_ref, y_ref, o_ref):
        o_ref[...] = x_ref[...] + y_ref[...]

    block = pl.BlockSpec((8,), lambda i: i)
    pl.pallas_call(add, jax.ShapeDtypeStruct((32,), x.dtype), grid=4, in_specs=[block] * 2,
                   out_specs=block)(x, y)
"""

from lamina.experimental.pallas.blocks import Blocked as Blocked
from lamina.experimental.pallas.blocks import BlockSpec as BlockSpec
from lamina.experimental.pallas.blocks import BoundedSlice as BoundedSlice
from lamina.experimental.pallas.blocks import Element as Element
from lamina.experimental.pallas.blocks import GridSpec as GridSpec
from lamina.experimental.pallas.blocks import Squeezed as Squeezed
from lamina.experimental.pallas.blocks import no_block_spec as no_block_spec
from lamina.experimental.pallas.blocks import squeezed as squeezed
from lamina.experimental.pallas.call import pallas_call as pallas_call
from lamina.experimental.pallas.grid import num_programs as num_programs
from lamina.experimental.pallas.grid import program_id as program_id
from lamina.experimental.pallas.memory import ANY as ANY
from lamina.experimental.pallas.memory import MemoryRef as MemoryRef
from lamina.experimental.pallas.memory import MemorySpace as MemorySpace
from lamina.experimental.pallas.memory import empty as empty
from lamina.experimental.pallas.memory import load as load
from lamina.experimental.pallas.memory import run_scoped as run_scoped
from lamina.experimental.pallas.memory import store as store
from lamina.experimental.pallas.memory import with_scoped as with_scoped
from lamina.experimental.pallas.steps import cdiv as cdiv
from lamina.experimental.pallas.steps import debug_print as debug_print
from lamina.experimental.pallas.steps import loop as loop
from lamina.experimental.pallas.steps import next_power_of_2 as next_power_of_2
from lamina.experimental.pallas.steps import when as when
from lamina.numpy.slices import Slice as Slice
from lamina.numpy.slices import ds as ds
from lamina.numpy.slices import dslice as dslice
