"""Where compiled programs are kept on disk."""

from lamina.experimental.compilation_cache import compilation_cache as compilation_cache
