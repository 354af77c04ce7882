"""Sparse arrays (BCOO, BCSR; COO, CSR and CSC of matrices), functions on them, and what makes functions of arrays
take them."""

from lamina.experimental.sparse.base import CuSparseEfficiencyWarning as CuSparseEfficiencyWarning
from lamina.experimental.sparse.base import JAXSparse as JAXSparse
from lamina.experimental.sparse.base import SparseEfficiencyError as SparseEfficiencyError
from lamina.experimental.sparse.base import SparseEfficiencyWarning as SparseEfficiencyWarning
from lamina.experimental.sparse.bcoo import BCOO as BCOO
from lamina.experimental.sparse.bcoo import bcoo_eliminate_zeros as bcoo_eliminate_zeros
from lamina.experimental.sparse.bcoo import bcoo_fromdense as bcoo_fromdense
from lamina.experimental.sparse.bcoo import bcoo_reduce_sum as bcoo_reduce_sum
from lamina.experimental.sparse.bcoo import bcoo_sort_indices as bcoo_sort_indices
from lamina.experimental.sparse.bcoo import bcoo_sum_duplicates as bcoo_sum_duplicates
from lamina.experimental.sparse.bcoo import bcoo_todense as bcoo_todense
from lamina.experimental.sparse.bcoo import bcoo_transpose as bcoo_transpose
from lamina.experimental.sparse.bcsr import BCSR as BCSR
from lamina.experimental.sparse.bcsr import bcsr_broadcast_in_dim as bcsr_broadcast_in_dim
from lamina.experimental.sparse.bcsr import bcsr_concatenate as bcsr_concatenate
from lamina.experimental.sparse.bcsr import bcsr_dot_general as bcsr_dot_general
from lamina.experimental.sparse.bcsr import bcsr_extract as bcsr_extract
from lamina.experimental.sparse.bcsr import bcsr_fromdense as bcsr_fromdense
from lamina.experimental.sparse.bcsr import bcsr_sum_duplicates as bcsr_sum_duplicates
from lamina.experimental.sparse.bcsr import bcsr_todense as bcsr_todense
from lamina.experimental.sparse.convolution import (
    bcoo_conv_general_dilated as bcoo_conv_general_dilated,
)
from lamina.experimental.sparse.coo import COO as COO
from lamina.experimental.sparse.coo import coo_fromdense as coo_fromdense
from lamina.experimental.sparse.coo import coo_matmat as coo_matmat
from lamina.experimental.sparse.coo import coo_matvec as coo_matvec
from lamina.experimental.sparse.coo import coo_todense as coo_todense
from lamina.experimental.sparse.creation import empty as empty
from lamina.experimental.sparse.creation import eye as eye
from lamina.experimental.sparse.csr import CSC as CSC
from lamina.experimental.sparse.csr import CSR as CSR
from lamina.experimental.sparse.csr import csr_fromdense as csr_fromdense
from lamina.experimental.sparse.csr import csr_matmat as csr_matmat
from lamina.experimental.sparse.csr import csr_matvec as csr_matvec
from lamina.experimental.sparse.csr import csr_todense as csr_todense
from lamina.experimental.sparse.densify import todense as todense
from lamina.experimental.sparse.derivatives import grad as grad
from lamina.experimental.sparse.derivatives import jacfwd as jacfwd
from lamina.experimental.sparse.derivatives import jacobian as jacobian
from lamina.experimental.sparse.derivatives import jacrev as jacrev
from lamina.experimental.sparse.derivatives import value_and_grad as value_and_grad
from lamina.experimental.sparse.layouts import bcoo_update_layout as bcoo_update_layout
from lamina.experimental.sparse.operations import bcoo_broadcast_in_dim as bcoo_broadcast_in_dim
from lamina.experimental.sparse.operations import bcoo_concatenate as bcoo_concatenate
from lamina.experimental.sparse.operations import bcoo_dot_general as bcoo_dot_general
from lamina.experimental.sparse.operations import (
    bcoo_dot_general_sampled as bcoo_dot_general_sampled,
)
from lamina.experimental.sparse.operations import bcoo_dynamic_slice as bcoo_dynamic_slice
from lamina.experimental.sparse.operations import bcoo_extract as bcoo_extract
from lamina.experimental.sparse.operations import bcoo_multiply_dense as bcoo_multiply_dense
from lamina.experimental.sparse.operations import bcoo_multiply_sparse as bcoo_multiply_sparse
from lamina.experimental.sparse.operations import bcoo_reshape as bcoo_reshape
from lamina.experimental.sparse.operations import bcoo_rev as bcoo_rev
from lamina.experimental.sparse.operations import bcoo_slice as bcoo_slice
from lamina.experimental.sparse.operations import bcoo_squeeze as bcoo_squeeze
from lamina.experimental.sparse.operations import random_bcoo as random_bcoo
from lamina.experimental.sparse.parts import bcoo_gather as bcoo_gather
from lamina.experimental.sparse.sparsify import sparsify as sparsify
