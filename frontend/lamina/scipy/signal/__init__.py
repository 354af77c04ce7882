"""scipy.signal: convolutions of any rank, spectra of pieces of a signal, trends."""

# ruff: noqa: F401
from lamina.scipy.signal.convolutions import (
    convolve,
    convolve2d,
    correlate,
    correlate2d,
    fftconvolve,
)
from lamina.scipy.signal.spectra import csd, istft, stft, welch
from lamina.scipy.signal.trends import detrend
