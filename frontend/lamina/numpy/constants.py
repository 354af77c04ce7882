"""NumPy's constants."""

import numpy as np

e = np.e
euler_gamma = np.euler_gamma
inf = np.inf
nan = np.nan
newaxis = None
pi = np.pi
