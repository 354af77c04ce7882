"""Functions for neural networks: activations, softmax and its kin, normalisation, initializers."""

# ruff: noqa: F401
from lamina.nn import initializers
from lamina.nn.activations import (
    celu,
    elu,
    gelu,
    glu,
    hard_sigmoid,
    hard_silu,
    hard_swish,
    hard_tanh,
    identity,
    leaky_relu,
    log_sigmoid,
    mish,
    relu,
    relu6,
    selu,
    sigmoid,
    silu,
    soft_sign,
    softplus,
    sparse_plus,
    sparse_sigmoid,
    squareplus,
    swish,
    tanh,
)  # fmt: skip
from lamina.nn.attention import dot_product_attention
from lamina.nn.normalization import (
    log1mexp,
    log_softmax,
    logmeanexp,
    logsumexp,
    one_hot,
    softmax,
    standardize,
)  # fmt: skip
from lamina.nn.scaled import get_scaled_dot_general_config, scaled_dot_general, scaled_matmul
