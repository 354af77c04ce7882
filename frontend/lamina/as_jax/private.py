"""The names below `jax._src` that libraries are known to use, and what they are here."""

from __future__ import annotations

import importlib
from types import ModuleType

_NAMES: dict[str, dict[str, str]] = {
    "jax.version": {
        "__version__": "lamina.as_jax.jax:__version__",
        "__version_info__": "lamina.as_jax.jax:__version_info__",
    },
    "jax.lib": {"__version__": "lamina.as_jax.jax:__version__"},
    "jax._src": {},
    "jax._src.ad_util": {"stop_gradient_p": "lamina.lax:stop_gradient_p"},
    "jax._src.checkify": {},  # and all of lamina.experimental.checkify
    "jax._src.compiler": {},  # chex looks what there is to restrict
    "jax._src.core": {  # and all of lamina.core
        "Primitive": "lamina.extend.core:Primitive",
        "trace_state_clean": "lamina.core.trace:is_evaluating",
    },
    "jax._src.dispatch": {"wait_for_tokens": "lamina:effects_barrier"},
    "jax._src.dtypes": {
        "DType": "numpy:dtype",
        "ExtendedDType": "lamina.core.dtypes:ExtendedDType",
        "to_complex_dtype": "lamina.core.dtypes:complex_dtype",
    },
    "jax._src.flatten_util": {"ravel_pytree": "lamina.flatten_util:ravel_pytree"},
    "jax._src.literals": {},
    "jax._src.state": {},
    "jax._src.state.types": {"AbstractRef": "lamina.core.refs:AbstractRef"},
    "jax._src.traceback_util": {
        "api_boundary": "lamina.core.tracebacks:api_boundary",
        "include_frame": "lamina.core.source_info:is_user_frame",
        "register_exclusion": "lamina.core.source_info:leave_out_file",
    },
    "jax._src.tree_util": {"_registry": "lamina.core.tree_nodes:node_types"},
}
_WHOLE = {
    "jax._src.checkify": "lamina.experimental.checkify",
    "jax._src.core": "lamina.core",
    "jax._src.dtypes": "lamina.dtypes",
    "jax._src.tree_util": "lamina.tree_util",
}


def module(name: str) -> ModuleType | None:
    """A new module with such names, found when first used; None for a module not known here."""
    names = _NAMES.get(name)
    if names is None:
        return None
    made = ModuleType(name, f"What lamina has of {name}.")
    made.__path__ = []  # type: ignore[attr-defined]

    def find(attribute: str) -> object:
        if attribute in names:
            home, _, there = names[attribute].partition(":")
        elif name in _WHOLE and not attribute.startswith("__"):
            home, there = _WHOLE[name], attribute
        else:
            raise AttributeError(f"module {name!r} has no attribute {attribute!r} in lamina")
        value = getattr(importlib.import_module(home), there)
        setattr(made, attribute, value)
        return value

    made.__getattr__ = find  # type: ignore[method-assign]
    return made


