"""Programs written for JAX, on lamina: `import jax` gives lamina.

    import lamina.as_jax     # first, before anything imports jax
    import jax.numpy as jnp
    import optax

or, without a change to the program, `python -m lamina.as_jax program.py arguments ...`. It holds for
the process. Names that lamina has not raise ImportError or AttributeError as they would anywhere;
modules of JAX's own inside (`jax._src`) exist as far as libraries are known to reach into them.
"""

from __future__ import annotations

import sys

from lamina.as_jax import names
from lamina.as_jax.finder import Finder
from lamina.config import options
from lamina.core.library import library


def install() -> None:
    """Makes `import jax` give lamina from now on.

    Raises ImportError where the real JAX has been imported: its arrays and ours do not mix.
    """
    if any(isinstance(finder, Finder) for finder in sys.meta_path):
        return
    if "jax" in sys.modules:
        raise ImportError(
            "jax has been imported already: import lamina.as_jax before anything that imports jax"
        )
    library.call(module="jax", name="JAX", prefix="JAX_")
    for option in options().values():
        option.read_also(library.variable(option.name))
    names.give()
    sys.meta_path.insert(0, Finder())


install()
