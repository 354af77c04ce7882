"""scipy.signal: convolutions of any rank, spectra of pieces of a signal, trends."""

# ruff: noqa: F401
from lamina.scipy.signal.convolutions import convolve as convolve
from lamina.scipy.signal.convolutions import convolve2d as convolve2d
from lamina.scipy.signal.convolutions import correlate as correlate
from lamina.scipy.signal.convolutions import correlate2d as correlate2d
from lamina.scipy.signal.convolutions import fftconvolve as fftconvolve
from lamina.scipy.signal.spectra import csd as csd
from lamina.scipy.signal.spectra import istft as istft
from lamina.scipy.signal.spectra import stft as stft
from lamina.scipy.signal.spectra import welch as welch
from lamina.scipy.signal.trends import detrend as detrend
