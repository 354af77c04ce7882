"""Linear algebra as in numpy.linalg, on matrices in the last two axes; others are a batch."""

# ruff: noqa: F401
from lamina.numpy.linalg.decompositions import cholesky as cholesky
from lamina.numpy.linalg.decompositions import eig as eig
from lamina.numpy.linalg.decompositions import eigh as eigh
from lamina.numpy.linalg.decompositions import eigvals as eigvals
from lamina.numpy.linalg.decompositions import eigvalsh as eigvalsh
from lamina.numpy.linalg.decompositions import qr as qr
from lamina.numpy.linalg.decompositions import svd as svd
from lamina.numpy.linalg.decompositions import svdvals as svdvals
from lamina.numpy.linalg.determinants import det as det
from lamina.numpy.linalg.determinants import slogdet as slogdet
from lamina.numpy.linalg.norms import cond as cond
from lamina.numpy.linalg.norms import matrix_norm as matrix_norm
from lamina.numpy.linalg.norms import matrix_rank as matrix_rank
from lamina.numpy.linalg.norms import norm as norm
from lamina.numpy.linalg.norms import vector_norm as vector_norm
from lamina.numpy.linalg.products import cross as cross
from lamina.numpy.linalg.products import diagonal as diagonal
from lamina.numpy.linalg.products import matmul as matmul
from lamina.numpy.linalg.products import matrix_power as matrix_power
from lamina.numpy.linalg.products import matrix_transpose as matrix_transpose
from lamina.numpy.linalg.products import multi_dot as multi_dot
from lamina.numpy.linalg.products import outer as outer
from lamina.numpy.linalg.products import tensordot as tensordot
from lamina.numpy.linalg.products import trace as trace
from lamina.numpy.linalg.products import vecdot as vecdot
from lamina.numpy.linalg.solving import inv as inv
from lamina.numpy.linalg.solving import lstsq as lstsq
from lamina.numpy.linalg.solving import pinv as pinv
from lamina.numpy.linalg.solving import solve as solve
from lamina.numpy.linalg.solving import tensorinv as tensorinv
from lamina.numpy.linalg.solving import tensorsolve as tensorsolve
