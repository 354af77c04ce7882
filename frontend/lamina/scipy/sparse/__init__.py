"""scipy.sparse: of it, the iterative solvers of linear systems."""

from lamina.scipy.sparse import linalg as linalg
