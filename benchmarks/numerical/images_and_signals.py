"""Filters and transforms of images and signals, as textbooks write them."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.numerical.program import program, rng
from benchmarks.suite import Library


def _equalised(m: Library) -> Any:
    """A histogram pixel by pixel, and grey values by its running sum."""

    def f(image: Any) -> Any:
        pixels = image.reshape(-1)

        def count(i: Any, histogram: Any) -> Any:
            return histogram.at[pixels[i]].add(1)

        histogram = m.lax.fori_loop(0, pixels.shape[0], count, m.np.zeros(256, np.int64))
        shares = m.np.cumsum(histogram) / pixels.shape[0]
        return (255.0 * shares)[image]

    return f


def _median(m: Library) -> Any:
    """Of nine neighbours."""

    def f(image: Any) -> Any:
        wide = m.np.pad(image, 1, mode="edge")
        rows, columns = image.shape
        around = [wide[i : i + rows, j : j + columns] for i in range(3) for j in range(3)]
        return m.np.median(m.np.stack(around), axis=0)

    return f


def _chamfer(m: Library) -> Any:
    """Distances to the nearest set pixel: rows downwards and upwards, each from left and right."""

    def along(row: Any, reverse: bool) -> Any:
        def element(before: Any, x: Any) -> Any:
            now = m.np.minimum(before + 1.0, x)
            return now, now

        return m.lax.scan(element, m.np.full((), 1e9), row, reverse=reverse)[1]

    def f(image: Any) -> Any:
        def row(before: Any, now: Any) -> Any:
            diagonal = m.np.minimum(before[:-2], before[2:]) + 1.4142
            near = m.np.minimum(before[1:-1] + 1.0, m.np.pad(diagonal, 1, constant_values=1e9)[1:-1])
            now = along(along(now.at[1:-1].min(near), False), True)
            return now, now

        far = m.np.where(image, 0.0, 1e9)
        edge = m.np.full(image.shape[1], 1e9)
        down = m.lax.scan(row, edge, far)[1]
        return m.lax.scan(row, edge, down, reverse=True)[1]

    return f


def _blur(m: Library) -> Any:
    """A separable filter of 15 taps, by a loop over them."""

    def f(image: Any, taps: Any) -> Any:
        n = taps.shape[0]

        def filtered(image: Any, axis: int) -> Any:
            wide = m.np.pad(image, [(n // 2, n // 2) if d == axis else (0, 0) for d in (0, 1)], "edge")

            def tap(k: Any, total: Any) -> Any:
                part = m.lax.dynamic_slice_in_dim(wide, k, image.shape[axis], axis)
                return total + taps[k] * part

            return m.lax.fori_loop(0, n, tap, m.np.zeros_like(image))

        return filtered(filtered(image, 0), 1)

    return f


def _edges(m: Library) -> Any:
    """Sobel's gradient, its suppression where it is no ridge, and a threshold."""

    def f(image: Any) -> Any:
        p = m.np.pad(image, 1, mode="reflect")
        across = (p[:-2, 2:] + 2 * p[1:-1, 2:] + p[2:, 2:]) - (
            p[:-2, :-2] + 2 * p[1:-1, :-2] + p[2:, :-2])  # fmt: skip
        down = (p[2:, :-2] + 2 * p[2:, 1:-1] + p[2:, 2:]) - (
            p[:-2, :-2] + 2 * p[:-2, 1:-1] + p[:-2, 2:])  # fmt: skip
        size = m.np.hypot(across, down)
        q = m.np.pad(size, 1)
        level = m.np.abs(across) > m.np.abs(down)
        first = m.np.where(level, q[1:-1, :-2], q[:-2, 1:-1])
        second = m.np.where(level, q[1:-1, 2:], q[2:, 1:-1])
        return m.np.where((size >= first) & (size >= second) & (size > 1.0), 1.0, 0.0)

    return f


def _box(m: Library) -> Any:
    """Local mean and spread by integral images."""

    def f(image: Any) -> Any:
        size = 9

        def sums(x: Any) -> Any:
            s = m.np.pad(m.np.cumsum(m.np.cumsum(x, 0), 1), ((1, 0), (1, 0)))
            return s[size:, size:] - s[:-size, size:] - s[size:, :-size] + s[:-size, :-size]

        mean = sums(image) / size**2
        return mean, m.np.sqrt(m.np.maximum(sums(image * image) / size**2 - mean * mean, 0.0))

    return f


def _rotated(m: Library) -> Any:
    """By an angle, each pixel from the four around its origin."""

    def f(image: Any, angle: Any) -> Any:
        rows, columns = image.shape
        y, x = m.np.meshgrid(m.np.arange(rows) - rows / 2, m.np.arange(columns) - columns / 2,
                             indexing="ij")  # fmt: skip
        c, s = m.np.cos(angle), m.np.sin(angle)
        v = m.np.clip(c * y - s * x + rows / 2, 0, rows - 1.001)
        u = m.np.clip(s * y + c * x + columns / 2, 0, columns - 1.001)
        i, j = m.np.floor(v).astype(np.int32), m.np.floor(u).astype(np.int32)
        a, b = v - i, u - j
        upper = (1 - b) * image[i, j] + b * image[i, j + 1]
        lower = (1 - b) * image[i + 1, j] + b * image[i + 1, j + 1]
        return (1 - a) * upper + a * lower

    return f


def _deriche(m: Library) -> Any:
    """A recursive filter along each row, there and back, and along each column, in f32."""

    def f(image: Any) -> Any:
        k, a, b1, b2 = 0.2, 0.3, 1.2, -0.4

        def pass_over(x: Any, reverse: bool) -> Any:
            def step(state: Any, row: Any) -> Any:
                before, y1, y2 = state
                y = k * row + a * before + b1 * y1 + b2 * y2
                return (row, y, y1), y

            zero = m.np.zeros_like(x[0])
            return m.lax.scan(step, (zero, zero, zero), x, reverse=reverse)[1]

        rows = image.T
        rows = (pass_over(rows, False) + pass_over(rows, True)).T
        return pass_over(rows, False) + pass_over(rows, True)

    return f


def _biquads(m: Library) -> Any:
    """Second-order sections one after another, sample by sample."""

    def f(samples: Any, sections: Any) -> Any:
        def step(state: Any, x: Any) -> Any:
            new = []
            for section, (z1, z2) in zip(sections, state, strict=True):
                y = section[0] * x + z1
                new.append((section[1] * x - section[3] * y + z2, section[2] * x - section[4] * y))
                x = y
            return tuple(new), x

        zero = m.np.zeros(())
        return m.lax.scan(step, ((zero, zero),) * sections.shape[0], samples)[1]

    return f


def _finite_filter(m: Library) -> Any:
    """Sums of 64 samples with weights, output by output."""

    def f(samples: Any, taps: Any) -> Any:
        n = samples.shape[0] - taps.shape[0] + 1

        def output(i: Any) -> Any:
            return m.np.dot(m.lax.dynamic_slice(samples, (i,), taps.shape), taps)

        return m.lax.map(output, m.np.arange(n))

    return f


def _autocorrelation(m: Library) -> Any:
    """Circular, lag by lag."""

    def f(x: Any) -> Any:
        x = x - m.np.mean(x)
        return m.lax.map(lambda lag: m.np.dot(x, m.np.roll(x, lag)), m.np.arange(200))

    return f


def _fourier_sums(m: Library) -> Any:
    """The discrete Fourier transform by its definition, frequency by frequency."""

    def f(x: Any) -> Any:
        n = x.shape[0]
        k = m.np.arange(n)

        def frequency(j: Any) -> Any:
            angle = -2.0 * np.pi / n * (j * k % n)
            return m.np.sum(x * m.np.cos(angle)), m.np.sum(x * m.np.sin(angle))

        return m.lax.map(frequency, k)

    return f


def _image(rows: int, columns: int, dtype: Any = np.float64) -> Any:
    return lambda: (rng().random((rows, columns)).astype(dtype),)


def _sections() -> Any:
    return np.array([[0.2, 0.4, 0.2, -0.5, 0.3], [1.0, -1.2, 0.5, -0.7, 0.4]] * 2)


PROGRAMS = [
    program("histogram equalisation", "images and signals", _equalised,
            lambda: (rng().integers(0, 256, (256, 256)),)),
    program("median filter 3x3", "images and signals", _median, _image(200, 300)),
    program("chamfer distance", "images and signals", _chamfer,
            lambda: (rng().random((250, 300)) > 0.99,)),
    program("separable blur, 15 taps", "images and signals", _blur,
            lambda: (*_image(400, 500)(), np.hanning(15) / 7)),
    program("edges", "images and signals", _edges, _image(500, 600)),
    program("local mean and spread", "images and signals", _box, _image(500, 600)),
    program("rotation", "images and signals", _rotated, lambda: (*_image(500, 600)(), 0.3)),
    program("Deriche filter, f32", "images and signals", _deriche, _image(480, 640, np.float32)),
    program("biquads", "images and signals", _biquads,
            lambda: (rng().standard_normal(50_000), _sections())),
    program("FIR filter, 64 taps", "images and signals", _finite_filter,
            lambda: (rng().standard_normal(20_000), np.hanning(64))),
    program("autocorrelation", "images and signals", _autocorrelation,
            lambda: (rng().standard_normal(10_000),)),
    program("Fourier sums", "images and signals", _fourier_sums,
            lambda: (rng().standard_normal(500),)),
]  # fmt: skip
