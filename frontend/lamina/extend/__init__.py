"""What libraries that define primitives of their own build on. Modules are loaded when first named."""

from __future__ import annotations

import typing as _typing

from lamina.core.lazy_names import lazy_names as _lazy_names

if _typing.TYPE_CHECKING:
    from lamina.extend import backend as backend
    from lamina.extend import core as core
    from lamina.extend import ifrt_programs as ifrt_programs
    from lamina.extend import linear_util as linear_util
    from lamina.extend import random as random
    from lamina.extend import source_info_util as source_info_util

_MODULES = frozenset({"backend", "core", "ifrt_programs", "linear_util", "random", "source_info_util"})

if not _typing.TYPE_CHECKING:  # which knows the names
    __getattr__, __dir__ = _lazy_names(__name__, _MODULES, {})
