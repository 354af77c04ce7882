"""Resampling of images along any axes: resize scale_and_translate ResizeMethod.

Each axis is one product with a matrix of weights: the kernel of the method at the distance between
the place of an output sample and the input samples, normalised where the kernel leaves the image (weights.py).
Where the scale is known and most weights are zero, it is a sum of a few samples (bands.py).
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from lamina import lax
from lamina import numpy as jnp
from lamina.core.array_class import Array as Array
from lamina.image.bands import times_band as times_band
from lamina.image.weights import ResizeMethod as ResizeMethod
from lamina.image.weights import weights_of as weights_of
from lamina.numpy._eager import compiled as compiled
from lamina.numpy.promotion import canonical_axis as canonical_axis
from lamina.numpy.promotion import check_arraylike as check_arraylike
from lamina.numpy.promotion import promote_inexact as promote_inexact

__all__ = ["ResizeMethod", "resize", "scale_and_translate"]


def scale_and_translate(image: Any, shape: Sequence[int], spatial_dims: Sequence[int], scale: Any,
                        translation: Any, method: str | ResizeMethod, antialias: bool = True,
                        precision: Any = lax.Precision.HIGHEST) -> Array:  # fmt: skip
    """The image with sample i along each of some axes moved to scale * i + translation (for pixels
    whose centres lie at half numbers), resampled; zero outside the image.

    image         an array of numbers.
    shape         of the result.
    spatial_dims  the axes.
    scale         a vector of floats, one for each of them. May be traced and differentiated.
    translation   another.
    method        "linear", "cubic", "lanczos3", "lanczos5", "area", "cubic-pytorch" or a
                  ResizeMethod.
    antialias     widens the kernel where the image gets smaller.
    precision     of float32 products: None, a lax.Precision or its name.

    Raises ValueError for the method "nearest", an unknown one, and a shape of another rank.

    >>> line = jnp.array([1.0, 2.0, 3.0])
    >>> one = jnp.array([1.0])
    >>> print(lamina.image.scale_and_translate(line, (3,), (0,), one, one, "linear"))
    [0. 1. 2.]
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
    shape = tuple(map(operator.index, shape))
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
        weights = weights_of(jnp, image.shape[d], shape[d], scale[k], translation[k], method, antialias, clamp)
        image = _times(image, weights, d, precision)
    return image


@compiled(static=("shape", "dims", "method", "antialias", "precision", "clamp"))
def _resized(image: Any, *, shape: tuple[int, ...], dims: tuple[int, ...], method: ResizeMethod,
             antialias: bool, precision: Any, clamp: bool) -> Any:  # fmt: skip
    for d in dims:
        n, m = image.shape[d], shape[d]
        scale, none = np.float32(m / n if m else 1.0), np.float32(0)
        weights = weights_of(np, n, m, scale, none, method, antialias, clamp).astype(image.dtype)
        found = times_band(image, weights, d)
        if found is None:  # computed again where it is needed: it may be large
            found = _times(image, weights_of(jnp, n, m, scale, none, method, antialias, clamp), d, precision)
        image = found
    return image


def _times(image: Any, weights: Any, axis: int, precision: Any) -> Any:
    out = jnp.tensordot(image, weights.astype(image.dtype), axes=((axis,), (0,)), precision=precision)
    return jnp.moveaxis(out, -1, axis)


def resize(image: Any, shape: Sequence[int], method: str | ResizeMethod, antialias: bool = True,
           precision: Any = lax.Precision.HIGHEST) -> Array:  # fmt: skip
    """The image resampled to a shape: along each axis the first and last edges stay in place.

    image      an array of numbers.
    shape      of the result, a size for each axis of image.
    method     "nearest", "linear", "cubic", "lanczos3", "lanczos5", "area", "cubic-pytorch", their
               synonyms, or a ResizeMethod.
    antialias  widens the kernel where the image gets smaller.
    precision  of float32 products: None, a lax.Precision or its name.

    Raises ValueError for an unknown method and a shape of another rank. Samples that are not finite
    reach the samples made from them, not whole rows as in JAX, wherever a sample of the result is
    made from few of many.

    >>> print(lamina.image.resize(jnp.array([[1.0, 3.0]]), (1, 4), "linear"))
    [[1.  1.5 2.5 3. ]]
    """
    image, shape, kind = _prepared("resize", image, shape, method)
    if kind is ResizeMethod.NEAREST:
        return _nearest(image, shape=shape)
    (image,) = promote_inexact(image)
    dims = tuple(i for i, n in enumerate(shape) if n != image.shape[i])
    kind, clamp = _effective(kind, antialias)
    if not dims:
        return image
    return _resized(image, shape=shape, dims=dims, method=kind, antialias=bool(antialias),
                    precision=precision, clamp=clamp)  # fmt: skip


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
