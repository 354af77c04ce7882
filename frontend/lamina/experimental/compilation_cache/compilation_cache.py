"""The folder of compiled programs, by the older functions: the setting `cache_dir` is the same."""

from __future__ import annotations

import os

from lamina import config

__all__ = ["reset_cache", "set_cache_dir"]


def set_cache_dir(path: str | os.PathLike[str]) -> None:
    """Keep compiled programs in a folder, and look for them there, from now on: `config.update("cache_dir", path)`.

    path  the folder, made where it is not there. What it holds is run: it must be one that only people you trust can
          write to.

    >>> import tempfile
    >>> from lamina.experimental.compilation_cache import compilation_cache
    >>> compilation_cache.set_cache_dir(tempfile.mkdtemp())
    >>> compilation_cache.reset_cache()
    """
    config.update("cache_dir", os.fspath(path))


def reset_cache() -> None:
    """Back to the folder that compiled programs are kept in where nobody says: see the setting `cache_dir`.

    >>> from lamina.experimental.compilation_cache import compilation_cache
    >>> compilation_cache.reset_cache()
    """
    config.update("cache_dir", None)
