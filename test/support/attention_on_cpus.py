"""Machines that multiply bf16 in different ways, for tests of attention's kernels for CPUs."""

from __future__ import annotations

from dataclasses import replace

from lamina.backends import target as targets

_HOST = targets.Target.host()


def _without(*names: str) -> targets.Target:
    """This machine as one that lacks some features."""
    features = _HOST.features
    for name in names:
        features = features.replace(f"+{name}", f"-{name}")
    return replace(_HOST, features=features)


TARGETS = {
    "host": _HOST,
    "rounds in integers": _without("avx512bf16"),
    "f32": _without("amx-bf16"),
}
