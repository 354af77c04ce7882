"""Effects: what an equation does besides giving results, such as printing.

An equation with an effect is kept though nobody reads its results, and stays where it is between
others with effects. An ordered effect happens once, in program order; an unordered one may be
repeated where a transformation copies the equation (one for each lane of a batch).
"""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Effect:
    """A kind of effect. `per_lane`: it must happen for each lane of a batch, and for no other."""

    name: str = "effect"
    ordered: bool = False
    per_lane: bool = False

    def __repr__(self) -> str:
        return self.name

    __str__ = __repr__


Effects = frozenset[Effect]
NO_EFFECTS: Effects = frozenset()
