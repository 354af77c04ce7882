"""Resampling of images along any axes: resize scale_and_translate ResizeMethod.

Each axis is one product with a matrix of weights: the kernel of the method at the distance between
the place of an output sample and the input samples, normalised where the kernel leaves the image.
Kernels: Keys 1981 (cubic), Duchon 1979 (Lanczos).
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lamina import lax
from lamina import numpy as jnp
from lamina.numpy._eager import compiled
from lamina.numpy.promotion import canonical_axis, check_arraylike, promote_inexact


class ResizeMethod(enum.Enum):
    """How samples between samples are made."""

    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5
    AREA = 6

    @staticmethod
    def from_string(s: str) -> ResizeMethod:
        """The method of this name; ValueError if there is none."""
        found = _NAMES.get(s)
        if found is None:
            raise ValueError(f'Unknown resize method "{s}"')
        return found


_NAMES = {
    "nearest": ResizeMethod.NEAREST,
    **dict.fromkeys(("linear", "bilinear", "trilinear", "triangle"), ResizeMethod.LINEAR),
    "lanczos3": ResizeMethod.LANCZOS3,
    "lanczos5": ResizeMethod.LANCZOS5,
    **dict.fromkeys(("cubic", "bicubic", "tricubic"), ResizeMethod.CUBIC),
    **dict.fromkeys(("cubic-pytorch", "bicubic-pytorch"), ResizeMethod.CUBIC_PYTORCH),
    "area": ResizeMethod.AREA,
}


def _triangle(x: Any) -> Any:
    return jnp.maximum(0, 1 - x)


def _keys(a: float) -> Callable[[Any], Any]:
    """Keys' family of cubic convolution, of distances x >= 0."""

    def kernel(x: Any) -> Any:
        near = ((a + 2) * x - (a + 3)) * x * x + 1
        far = a * (((x - 5) * x + 8) * x - 4)
        return jnp.where(x < 1, near, jnp.where(x < 2, far, 0.0))

    return kernel


def _lanczos(radius: float) -> Callable[[Any], Any]:
    def kernel(x: Any) -> Any:
        return jnp.where(x < radius, jnp.sinc(x) * jnp.sinc(x / radius), 0.0)

    return kernel


_KERNELS = {
    ResizeMethod.LINEAR: _triangle,
    ResizeMethod.LANCZOS3: _lanczos(3.0),
    ResizeMethod.LANCZOS5: _lanczos(5.0),
    ResizeMethod.CUBIC: _keys(-0.5),
    ResizeMethod.CUBIC_PYTORCH: _keys(-0.75),
}


def _weights(n: int, m: int, scale: Any, translation: Any, method: ResizeMethod, antialias: bool,
             clamp: bool) -> Any:  # fmt: skip
    """The n x m matrix from input to output samples. clamp: beyond the edges the image repeats its
    edge samples; else the weights there are normalised."""
    dtype = jnp.result_type(scale, translation)
    inverse = 1 / scale
    out = jnp.arange(m, dtype=dtype)
    if method is ResizeMethod.AREA:
        left = (out - translation) * inverse
        cells = jnp.arange(n, dtype=dtype)[:, None]
        overlap = jnp.minimum(left + inverse, cells + 1) - jnp.maximum(left, cells)
        overlap = jnp.maximum(overlap, 0)
        total = jnp.sum(overlap, axis=0, keepdims=True)
        return jnp.where(total > 0, overlap / jnp.where(total > 0, total, 1), 0)
    kernel = _KERNELS[method]
    # When there are fewer samples than before the kernel widens: it is the low-pass filter.
    width = jnp.maximum(inverse, 1.0) if antialias else 1.0
    place = (out + 0.5 - translation) * inverse - 0.5
    if clamp:
        return _clamped_weights(n, place, kernel)
    x = jnp.abs(place - jnp.arange(n, dtype=dtype)[:, None]) / width
    weights = kernel(x)
    total = jnp.sum(weights, axis=0, keepdims=True)
    tiny = 1000.0 * float(np.finfo(np.float32).eps)
    weights = jnp.where(
        jnp.abs(total) > tiny, weights / jnp.where(total != 0, total, 1), 0
    )
    inside = (place >= -0.5) & (place <= n - 0.5)
    return jnp.where(inside[None, :], weights, 0)


def _clamped_weights(n: int, place: Any, kernel: Callable[[Any], Any]) -> Any:
    base = jnp.floor(place)
    out = jnp.zeros((n, place.shape[0]), place.dtype)
    column = jnp.arange(place.shape[0])
    for tap in range(-1, 3):
        at = base + tap
        row = jnp.clip(at, 0, n - 1).astype(np.int32)
        out = out.at[row, column].add(kernel(jnp.abs(place - at)))
    return out


def scale_and_translate(image: Any, shape: Sequence[int], spatial_dims: Sequence[int], scale: Any,
                        translation: Any, method: str | ResizeMethod, antialias: bool = True,
                        precision: Any = lax.Precision.HIGHEST) -> Any:  # fmt: skip
    """The image with sample i along each of spatial_dims moved to scale * i + translation (for
    pixels whose centres lie at half numbers), resampled to `shape`; zero outside the image.

    scale and translation, one for each of spatial_dims, may be traced and differentiated.
    """
    image, shape, kind = _prepared("scale_and_translate", image, shape, method)
    if kind is ResizeMethod.NEAREST:
        raise ValueError("Nearest neighbor resampling is not currently supported for "
                         "scale_and_translate.")  # fmt: skip
    scale, translation = (jnp.asarray(v) for v in promote_inexact(
        jnp.asarray(scale), jnp.asarray(translation)))  # fmt: skip
    dims = tuple(canonical_axis(d, len(shape)) for d in spatial_dims)
    (image,) = promote_inexact(image)
    kind, clamp = _effective(kind, antialias)
    return _resampled(image, scale, translation, shape=shape, dims=dims, method=kind,
                      antialias=bool(antialias), precision=precision, clamp=clamp)  # fmt: skip


def _prepared(name: str, image: Any, shape: Sequence[int], method: str | ResizeMethod
              ) -> tuple[Any, tuple[int, ...], ResizeMethod]:  # fmt: skip
    """The arguments of a resampling function, checked."""
    check_arraylike(name, image)
    image = jnp.asarray(image)
    shape = tuple(int(n) for n in shape)
    if len(shape) != len(image.shape):
        raise ValueError("shape must have length equal to the number of dimensions of x; "
                         f" {shape} vs {tuple(image.shape)}")  # fmt: skip
    kind = ResizeMethod.from_string(method) if isinstance(method, str) else method
    return image, shape, kind


def _effective(method: ResizeMethod, antialias: bool) -> tuple[ResizeMethod, bool]:
    """PyTorch's cubic kernel is another only without antialiasing, and then repeats the edges."""
    if method is not ResizeMethod.CUBIC_PYTORCH:
        return method, False
    return (ResizeMethod.CUBIC, False) if antialias else (method, True)


@compiled(static=("shape", "dims", "method", "antialias", "precision", "clamp"))
def _resampled(image: Any, scale: Any, translation: Any, *, shape: tuple[int, ...],
               dims: tuple[int, ...], method: ResizeMethod, antialias: bool, precision: Any,
               clamp: bool) -> Any:  # fmt: skip
    for k, d in enumerate(dims):
        weights = _weights(image.shape[d], shape[d], scale[k], translation[k], method, antialias,
                           clamp).astype(image.dtype)  # fmt: skip
        out = jnp.tensordot(image, weights, axes=((d,), (0,)), precision=precision)
        image = jnp.moveaxis(out, -1, d)
    return image


def resize(image: Any, shape: Sequence[int], method: str | ResizeMethod, antialias: bool = True,
           precision: Any = lax.Precision.HIGHEST) -> Any:  # fmt: skip
    """The image resampled to a shape: along each axis the first and last edges stay in place.

    method: "nearest", "linear", "cubic", "lanczos3", "lanczos5", "area", "cubic-pytorch", their
    synonyms, or a ResizeMethod. antialias widens the kernel where the image gets smaller.
    """
    image, shape, kind = _prepared("resize", image, shape, method)
    if kind is ResizeMethod.NEAREST:
        return _nearest(image, shape=shape)
    (image,) = promote_inexact(image)
    dims = tuple(i for i, n in enumerate(shape) if n != image.shape[i])
    kind, clamp = _effective(kind, antialias)
    if not dims:
        return image
    scale = np.array([shape[d] / image.shape[d] if shape[d] else 1.0 for d in dims], np.float32)
    return _resampled(image, scale, np.zeros_like(scale), shape=shape, dims=dims, method=kind,
                      antialias=bool(antialias), precision=precision,
                      clamp=clamp)  # fmt: skip


@compiled(static=("shape",))
def _nearest(image: Any, *, shape: tuple[int, ...]) -> Any:
    for d, (n, m) in enumerate(zip(image.shape, shape, strict=True)):
        if n == m:
            continue
        place = np.floor((np.arange(m, dtype=np.float32) + 0.5) * n / m).astype(np.int32)
        # Where each element comes several times, or each of so many is left out, none is looked up.
        more, fewer = (m // n, n // m) if n and m else (0, 0)
        if more * n == m and np.array_equal(place, np.arange(m) // more):
            image = jnp.repeat(image, more, axis=d)
        elif fewer * m == n and np.array_equal(place, np.arange(fewer // 2, n, fewer)):
            image = lax.slice_in_dim(image, fewer // 2, n, fewer, axis=d)
        else:
            image = jnp.take(image, place, axis=d, mode="clip")
    return image
