"""Principal components of handwritten digits by SVD: how few numbers describe an image, and how
well the nearest class mean then tells digits apart.

    python examples/pca.py [--plot]
"""

import functools
import sys

import numpy as np

import lamina
import lamina.numpy as jnp


def load_digits():
    """scikit-learn's images as rows of 64 numbers in [0, 1], and their digits."""
    from sklearn import datasets

    images, digits = datasets.load_digits(return_X_y=True)
    return (images / 16).astype(np.float32), digits.astype(np.int32)


def fit(x, components):
    """The mean, the directions of most variance (as rows), and the variance along all."""
    mean = jnp.mean(x, axis=0)
    _, sizes, directions = jnp.linalg.svd(x - mean, full_matrices=False)
    directions = directions[:components]
    # A direction's sign means nothing: make its largest entry positive.
    largest = jnp.argmax(jnp.abs(directions), axis=1)
    signs = jnp.sign(jnp.take_along_axis(directions, largest[:, None], axis=1))
    return mean, signs * directions, sizes**2 / (len(x) - 1)


def nearest_mean(codes, digits, seen_codes):
    """The digit whose mean code is nearest to each seen code."""
    sums = lamina.ops.segment_sum(codes, digits, 10)
    counts = jnp.bincount(digits, length=10)
    means = sums / counts[:, None]
    gaps = jnp.sum((seen_codes[:, None] - means[None]) ** 2, axis=-1)
    return jnp.argmin(gaps, axis=1)


@functools.partial(lamina.jit, static_argnums=4)
def run(x, digits, test_x, test_digits, components):
    """What the components explain, keep and tell."""
    mean, directions, variances = fit(x, components)
    codes, test_codes = (x - mean) @ directions.T, (test_x - mean) @ directions.T
    restored = test_codes @ directions + mean
    guess = nearest_mean(codes, digits, test_codes)
    return {
        "explained": jnp.cumsum(variances)[:components] / jnp.sum(variances),
        "directions": directions,
        "covariance": jnp.cov(codes[:, :3], rowvar=False),
        "error": jnp.sqrt(jnp.mean((restored - test_x) ** 2)),
        "accuracy": jnp.mean(guess == test_digits),
    }


def main(components=12):
    images, digits = load_digits()
    cut = 1500
    return run(images[:cut], digits[:cut], images[cut:], digits[cut:], components)


if __name__ == "__main__":
    result = lamina.device_get(main())
    for i in (0, 1, 2, 5, 11):
        print(f"{i + 1:2d} of 64 directions explain {result['explained'][i]:.1%} of the variance")
    print(f"12 numbers restore unseen images up to {result['error']:.3f} a pixel")
    print(f"the nearest class mean is right for {result['accuracy']:.1%} of them")
    if "--plot" in sys.argv:
        from matplotlib import pyplot as plt

        for i, direction in enumerate(result["directions"]):
            plt.subplot(3, 4, i + 1)
            plt.imshow(direction.reshape(8, 8), cmap="RdBu")
            plt.axis("off")
        plt.show()
