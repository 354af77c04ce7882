"""Rotations in three dimensions, and interpolation between them.

A rotation is a unit quaternion (x, y, z, w), w its real part; the formulas are those of Shoemake
1985 (slerp, composition) and Markley and Crassidis 2014 (rotation vectors, Rodrigues parameters).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lamina import numpy as jnp
from lamina.core import dtypes
from lamina.numpy._eager import compiled

__all__ = ["Rotation", "Slerp"]


def _inexact(x: Any) -> Any:
    x = jnp.asarray(x)
    return x.astype(dtypes.inexact_dtype(x.dtype))


def _norm(x: Any) -> Any:
    return jnp.sqrt(jnp.sum(x * x, axis=-1, keepdims=True))


@compiled
def _normalized(q: Any) -> Any:
    return q / _norm(q)


@compiled
def _composed(p: Any, q: Any) -> Any:
    """The quaternion product: first q, then p."""
    v, w, a, b = p[..., :3], p[..., 3:], q[..., :3], q[..., 3:]
    vector = w * a + b * v + jnp.cross(v, a)
    return jnp.concatenate([vector, w * b - jnp.sum(v * a, axis=-1, keepdims=True)], axis=-1)


@compiled
def _matrix(q: Any) -> Any:
    x, y, z, w = (q[..., i] for i in range(4))
    rows = [
        [x * x - y * y - z * z + w * w, 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), -x * x + y * y - z * z + w * w, 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), -x * x - y * y + z * z + w * w],
    ]
    return jnp.stack([jnp.stack(row, -1) for row in rows], -2)


@compiled
def _from_matrix(m: Any) -> Any:
    """Of the four ways to solve for the quaternion the one with the largest divisor."""
    d = [m[..., i, i] for i in range(3)]
    trace = d[0] + d[1] + d[2]
    candidates = []
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        parts: list[Any] = [None] * 4
        parts[i] = 1 - trace + 2 * d[i]
        parts[j] = m[..., j, i] + m[..., i, j]
        parts[k] = m[..., k, i] + m[..., i, k]
        parts[3] = m[..., k, j] - m[..., j, k]
        candidates.append(jnp.stack(parts, -1))
    candidates.append(jnp.stack([
        m[..., 2, 1] - m[..., 1, 2], m[..., 0, 2] - m[..., 2, 0], m[..., 1, 0] - m[..., 0, 1],
        1 + trace,
    ], -1))  # fmt: skip
    which = jnp.argmax(jnp.stack([*d, trace], -1), axis=-1)[..., None]
    out = candidates[3]
    for i in range(3):
        out = jnp.where(which == i, candidates[i], out)
    return _normalized(out)


@compiled
def _from_rotvec(v: Any) -> Any:
    angle = _norm(v)
    square = angle * angle
    small = angle <= 1e-3
    safe = jnp.where(small, 1, angle)
    scale = jnp.where(small, 0.5 - square / 48 + square * square / 3840,
                      jnp.sin(safe / 2) / safe)  # fmt: skip
    return jnp.concatenate([scale * v, jnp.cos(angle / 2)], axis=-1)


@compiled
def _rotvec(q: Any) -> Any:
    q = jnp.where(q[..., 3:] < 0, -q, q)
    angle = 2 * jnp.arctan2(_norm(q[..., :3]), q[..., 3:])
    square = angle * angle
    small = angle <= 1e-3
    safe = jnp.where(small, 1, angle)
    scale = jnp.where(small, 2 + square / 12 + 7 * square * square / 2880, safe / jnp.sin(safe / 2))
    return scale * q[..., :3]


def _axes(seq: str) -> tuple[list[int], bool]:
    """The axes that a sequence like "xyz" (extrinsic) or "XYZ" (intrinsic) names."""
    intrinsic = re.fullmatch("[XYZ]{1,3}", seq) is not None
    if not intrinsic and re.fullmatch("[xyz]{1,3}", seq) is None:
        if not 1 <= len(seq) <= 3:
            raise ValueError("Expected axis specification to be a non-empty string of upto 3 "
                             f"characters, got {seq}")  # fmt: skip
        raise ValueError("Expected axes from `seq` to be from ['x', 'y', 'z'] or "
                         f"['X', 'Y', 'Z'], got {seq}")  # fmt: skip
    if any(a == b for a, b in zip(seq, seq[1:], strict=False)):
        raise ValueError(f"Expected consecutive axes to be different, got {seq}")
    return ["xyz".index(c) for c in seq.lower()], intrinsic


@compiled(static=("axes", "intrinsic"))
def _from_euler(angles: Any, *, axes: tuple[int, ...], intrinsic: bool) -> Any:
    out = None
    for i, axis in enumerate(axes):
        half = angles[..., i] / 2
        parts = [jnp.zeros_like(half)] * 4
        parts[axis], parts[3] = jnp.sin(half), jnp.cos(half)
        q = jnp.stack(parts, -1)
        out = q if out is None else _composed(out, q) if intrinsic else _composed(q, out)
    return out


@compiled(static=("axes", "extrinsic"))
def _euler(q: Any, *, axes: tuple[int, ...], extrinsic: bool) -> Any:
    """Bernardes and Viollet 2022: the angles from sums and differences of half angles."""
    i, j, k = axes if extrinsic else axes[::-1]
    symmetric = i == k
    if symmetric:
        k = 3 - i - j
    sign = (i - j) * (j - k) * (k - i) // 2
    if symmetric:
        a, b, c, d = q[..., 3], q[..., i], q[..., j], q[..., k] * sign
    else:
        a, b = q[..., 3] - q[..., j], q[..., i] + q[..., k] * sign
        c, d = q[..., j] + q[..., 3], q[..., k] * sign - q[..., i]
    middle = 2 * jnp.arctan2(jnp.hypot(c, d), jnp.hypot(a, b))
    at_zero, at_pi = jnp.abs(middle) <= 1e-7, jnp.abs(middle - np.pi) <= 1e-7
    total, difference = jnp.arctan2(b, a), jnp.arctan2(d, c)
    # Where the outer axes are parallel one of the outer angles is free: the last is zero.
    turned = -2 * difference if extrinsic else 2 * difference
    singular, lone = at_zero | at_pi, jnp.where(at_zero, 2 * total, turned)
    near, far = total - difference, total + difference
    first, last = (near, far) if extrinsic else (far, near)
    first, last = jnp.where(singular, lone, first), jnp.where(singular, 0.0, last)
    if not symmetric:
        middle = middle - np.pi / 2
        first, last = (first, last * sign) if extrinsic else (first * sign, last)
    out = jnp.stack([first, middle, last], -1)
    return jnp.where(out < -np.pi, out + 2 * np.pi, jnp.where(out > np.pi, out - 2 * np.pi, out))


class Rotation(NamedTuple):
    """One rotation, or an array of them, as unit quaternions (x, y, z, w). A pytree."""

    quat: Any

    # ---- made from ------------------------------------------------------------------------------
    @classmethod
    def from_quat(cls, quat: Any) -> Rotation:
        """From quaternions, which need no unit length."""
        return cls(_normalized(_inexact(quat)))

    @classmethod
    def from_matrix(cls, matrix: Any) -> Rotation:
        """From orthogonal matrices of determinant 1."""
        return cls(_from_matrix(_inexact(matrix)))

    @classmethod
    def from_rotvec(cls, rotvec: Any, degrees: bool = False) -> Rotation:
        """From vectors along the axis, as long as the angle."""
        v = _inexact(rotvec)
        return cls(_from_rotvec(jnp.deg2rad(v) if degrees else v))

    @classmethod
    def from_mrp(cls, mrp: Any) -> Rotation:
        """From modified Rodrigues parameters: along the axis, tan of a quarter of the angle."""
        p = _inexact(mrp)
        square = jnp.sum(p * p, axis=-1, keepdims=True)
        return cls(jnp.concatenate([2 * p, 1 - square], axis=-1) / (1 + square))

    @classmethod
    def from_euler(cls, seq: str, angles: Any, degrees: bool = False) -> Rotation:
        """From up to three angles about axes: "xyz" fixed ones, "XYZ" those of the body."""
        axes, intrinsic = _axes(seq)
        a = jnp.atleast_1d(_inexact(angles))
        a = a[..., None] if len(axes) == 1 and a.shape[-1] != 1 else a
        if a.shape[-1] != len(axes):
            raise ValueError(f"Expected {len(axes)} angles for axes {seq}, got shape {a.shape}")
        return cls(_from_euler(jnp.deg2rad(a) if degrees else a, axes=tuple(axes),
                               intrinsic=intrinsic))  # fmt: skip

    @classmethod
    def identity(cls, num: int | None = None, dtype: Any = float) -> Rotation:
        """The rotation that leaves all in place; num of them."""
        quat = jnp.array([0.0, 0.0, 0.0, 1.0], dtype=dtype)
        return cls(quat if num is None else jnp.tile(quat, (num, 1)))

    @classmethod
    def random(cls, random_key: Any, num: int | None = None) -> Rotation:
        """Uniformly distributed rotations: normal quaternions, normalised."""
        from lamina.random import normal

        return cls(_normalized(normal(random_key, (4,) if num is None else (num, 4))))

    @classmethod
    def concatenate(cls, rotations: Sequence[Rotation]) -> Rotation:
        """The rotations of several arrays of them, in one."""
        return cls(jnp.concatenate([r.quat for r in rotations]))

    # ---- told as --------------------------------------------------------------------------------
    def as_quat(self, canonical: bool = False, scalar_first: bool = False) -> Any:
        """As quaternions; canonical: of the two the one whose last nonzero part is positive."""
        q = self.quat
        if canonical:
            negative = jnp.zeros(q.shape[:-1], bool)
            for i in (2, 1, 0, 3):
                negative = jnp.where(q[..., i] == 0, negative, q[..., i] < 0)
            q = jnp.where(negative[..., None], -q, q)
        return jnp.roll(q, 1, axis=-1) if scalar_first else q

    def as_matrix(self) -> Any:
        """As orthogonal matrices."""
        return _matrix(self.quat)

    def as_rotvec(self, degrees: bool = False) -> Any:
        """As vectors along the axis, as long as the angle in [0, pi]."""
        v = _rotvec(self.quat)
        return jnp.rad2deg(v) if degrees else v

    def as_mrp(self) -> Any:
        """As modified Rodrigues parameters."""
        q = self.quat
        sign = jnp.where(q[..., 3:] < 0, -1.0, 1.0).astype(q.dtype)
        return sign * q[..., :3] / (1 + sign * q[..., 3:])

    def as_euler(self, seq: str, degrees: bool = False) -> Any:
        """As three angles about axes, see from_euler."""
        if len(seq) != 3:
            raise ValueError(f"Expected 3 axes, got {seq}.")
        axes, intrinsic = _axes(seq)
        angles = _euler(self.quat, axes=tuple(axes), extrinsic=not intrinsic)
        return jnp.rad2deg(angles) if degrees else angles

    def magnitude(self) -> Any:
        """The angles, in [0, pi]."""
        q = self.quat
        return 2 * jnp.arctan2(_norm(q[..., :3])[..., 0], jnp.abs(q[..., 3]))

    # ---- computed with --------------------------------------------------------------------------
    @property
    def single(self) -> bool:
        """Whether this is one rotation, not an array."""
        return len(self.quat.shape) == 1

    def apply(self, vectors: Any, inverse: bool = False) -> Any:
        """The vectors turned (back)."""
        matrix = self.as_matrix()
        matrix = jnp.swapaxes(matrix, -1, -2) if inverse else matrix
        return jnp.sum(matrix * jnp.asarray(vectors)[..., None, :], axis=-1)

    def inv(self) -> Rotation:
        """The rotation back."""
        return Rotation(self.quat * np.array([-1, -1, -1, 1], self.quat.dtype))

    def mean(self, weights: Any = None) -> Rotation:
        """The rotation nearest to all (weighted), by squares of chords (Markley 2007)."""
        q = self.quat
        w = jnp.ones(q.shape[0], q.dtype) if weights is None else jnp.asarray(weights).astype(q.dtype)
        if len(w.shape) != 1:
            raise ValueError(f"Expected `weights` to be 1 dimensional, got shape {w.shape}.")
        if w.shape[0] != len(self):
            raise ValueError(
                "Expected `weights` to have number of values equal to number of rotations, got "
                f"{w.shape[0]} values and {len(self)} rotations."
            )
        _, vectors = jnp.linalg.eigh(jnp.dot(w[None, :] * q.T, q))  # type: ignore[attr-defined]
        return Rotation(vectors[:, -1])

    def __mul__(self, other: Any) -> Rotation:  # type: ignore[override]
        """Composition: first other, then self."""
        return Rotation(_composed(self.quat, other.quat))

    def __getitem__(self, indexer: Any) -> Any:  # type: ignore[override]
        if self.single:
            raise TypeError("Single rotation is not subscriptable.")
        return Rotation(self.quat[indexer])

    def __len__(self) -> int:
        if self.single:
            raise TypeError("Single rotation has no len().")
        return self.quat.shape[0]


class Slerp(NamedTuple):
    """Rotations at times, and between them at constant speed. A pytree; made by Slerp.init."""

    times: Any
    timedelta: Any
    rotations: Rotation
    rotvecs: Any

    @classmethod
    def init(cls, times: Any, rotations: Rotation) -> Slerp:
        """Interpolates rotations, at least two, given at increasing times."""
        if not isinstance(rotations, Rotation):
            raise TypeError("`rotations` must be a `Rotation` instance.")
        if rotations.single or len(rotations) == 1:
            raise ValueError("`rotations` must be a sequence of at least 2 rotations.")
        times = _inexact(times)
        if len(times.shape) != 1:
            raise ValueError("Expected times to be specified in a 1 dimensional array, got "
                             f"{len(times.shape)} dimensions.")  # fmt: skip
        if times.shape[0] != len(rotations):
            raise ValueError("Expected number of rotations to be equal to number of timestamps "
                             f"given, got {len(rotations)} rotations and {times.shape[0]} "
                             "timestamps.")  # fmt: skip
        q = rotations.quat
        starts, ends = Rotation(q[:-1]), Rotation(q[1:])
        return cls(times, jnp.diff(times), starts, (starts.inv() * ends).as_rotvec())

    def __call__(self, times: Any) -> Rotation:
        """The rotations at times."""
        at = jnp.asarray(times).astype(self.times.dtype)
        if len(at.shape) > 1:
            raise ValueError("`times` must be at most 1-dimensional.")
        flat = jnp.atleast_1d(at)
        last = self.times.shape[0] - 2
        k = jnp.clip(jnp.searchsorted(self.times, flat, side="right") - 1, 0, last)
        share = (flat - self.times[k]) / self.timedelta[k]
        out = self.rotations[k] * Rotation.from_rotvec(self.rotvecs[k] * share[:, None])
        return out if at.shape else out[0]
