"""Settings on a program's command line, as flags of absl: `train.py --jax_enable_x64 --jax_debug_nans`."""

from __future__ import annotations

import itertools
import sys
from typing import Any

from lamina.core.option import Option, options, update

_PREFIX = "jax_"  # programs written for JAX are started with its spelling

_made: dict[str, Any] = {}
"""The flag of each setting."""


def config_with_absl() -> None:
    """Makes each setting a flag of absl, which is read when `absl.app.run` reads a program's own.

    Flags are named as JAX's: `--jax_enable_x64`, `--nojax_enable_x64`, `--jax_platforms=cpu`. A second call
    does nothing. Raises ModuleNotFoundError where absl is missing (`pip install absl-py`); reading raises
    absl's IllegalFlagValueError for a value that a setting does not take.

    >>> lamina.config.config_with_absl()
    """
    from absl import app, flags

    if _made:
        return
    for name, option in options().items():
        flag = _PREFIX + name
        if option.is_setting and flag not in flags.FLAGS:  # else JAX in this process has it
            if isinstance(option.default, bool):
                flags.DEFINE_bool(flag, option.get_global(), option.doc)
            else:
                flags.DEFINE(_parser(option), flag, None, option.doc)
            _made[name] = flags.FLAGS[flag]
    app.call_after_init(_take)


def parse_flags_with_absl() -> None:
    """Reads settings from the command line now, in a program that does not go through `absl.app.run`.

    Looks at arguments that begin with `--jax` or `--nojax`, up to a `--`. Flags and errors are those of
    `config_with_absl`.

    >>> lamina.config.parse_flags_with_absl()
    """
    config_with_absl()
    from absl import flags

    ours = [
        argument
        for argument in itertools.takewhile(lambda a: a != "--", sys.argv[1:])
        if argument.startswith((f"--{_PREFIX}", f"--no{_PREFIX}"))
    ]
    flags.FLAGS([*sys.argv[:1], *ours], known_only=True)
    _take()


def _take() -> None:
    for name, flag in _made.items():
        if flag.present:
            update(name, flag.value)


def _parser(option: Option[Any]) -> Any:
    from absl import flags

    class Parser(flags.ArgumentParser):
        def parse(self, argument: Any) -> Any:
            return option.checked(option.parse(argument)) if isinstance(argument, str) else argument

    return Parser()
