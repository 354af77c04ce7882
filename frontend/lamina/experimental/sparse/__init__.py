"""Sparse arrays (BCOO, BCSR), functions on them, and what makes functions of arrays take them."""

from lamina.experimental.sparse.base import JAXSparse as JAXSparse
from lamina.experimental.sparse.bcoo import BCOO as BCOO
from lamina.experimental.sparse.bcoo import bcoo_fromdense as bcoo_fromdense
from lamina.experimental.sparse.bcoo import bcoo_reduce_sum as bcoo_reduce_sum
from lamina.experimental.sparse.bcoo import bcoo_sort_indices as bcoo_sort_indices
from lamina.experimental.sparse.bcoo import bcoo_sum_duplicates as bcoo_sum_duplicates
from lamina.experimental.sparse.bcoo import bcoo_todense as bcoo_todense
from lamina.experimental.sparse.bcoo import bcoo_transpose as bcoo_transpose
from lamina.experimental.sparse.bcoo import empty as empty
from lamina.experimental.sparse.bcoo import eye as eye
from lamina.experimental.sparse.bcoo import todense as todense
from lamina.experimental.sparse.bcsr import BCSR as BCSR
from lamina.experimental.sparse.bcsr import bcsr_fromdense as bcsr_fromdense
from lamina.experimental.sparse.bcsr import bcsr_sum_duplicates as bcsr_sum_duplicates
from lamina.experimental.sparse.bcsr import bcsr_todense as bcsr_todense
from lamina.experimental.sparse.sparsify import sparsify as sparsify
