"""scipy.signal and scipy.fft against JAX, and windows against SciPy."""

import types

import jax
import numpy as np
import pytest
import scipy.fft
import scipy.signal
from support.oracle.judge import assert_same

import lamina
from lamina.scipy.signal.windows import get_window

RNG = np.random.default_rng(0)
X = RNG.normal(size=(5, 7)).astype(np.float32)
U = RNG.normal(size=(2, 3)).astype(np.float32)
Z, W = (a + 1j * RNG.normal(size=a.shape).astype(np.float32) for a in (X, U))
S = RNG.normal(size=(2, 120)).astype(np.float32)
HERE = types.SimpleNamespace(m=lamina, signal=lamina.scipy.signal, fft=lamina.scipy.fft)
THERE = types.SimpleNamespace(m=jax, signal=jax.scipy.signal, fft=jax.scipy.fft)


def same(program, *args, atol=2e-5):
    """One jitted program of each library."""
    got, want = (
        lib.m.jit(lambda *xs, lib=lib: {str(k): v for k, v in program(lib, *xs).items()})(*args)
        for lib in (HERE, THERE)
    )
    bad = []
    for key in want:
        try:
            assert_same(got[key], want[key], rtol=1e-4, atol=atol, weak=False)
        except AssertionError as error:
            bad.append(f"{key}: {error}")
    assert not bad, "\n".join(bad)


def test_cosine_transforms():
    def program(lib, x, z):
        out = {}
        for name in ("dct", "idct", "dctn", "idctn"):
            f = getattr(lib.fft, name)
            out[name] = f(x, norm="ortho") if "n" in name else f(x)
        out["complex"] = lib.fft.dct(z, norm="ortho")
        out["padded"] = lib.fft.dct(x, n=9, axis=0)
        out["one"] = lib.fft.dct(x[:1], axis=0)
        return out

    same(program, X, Z)


def test_cosine_transforms_are_inverse():
    back = lamina.jit(lambda x: lamina.scipy.fft.idctn(lamina.scipy.fft.dctn(x, norm="ortho")
                                                       , norm="ortho"))(X)  # fmt: skip
    np.testing.assert_allclose(back, X, atol=1e-6)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolutions(mode):
    def program(lib, x, u, z, w):
        out = {}
        for name in ("convolve", "correlate", "convolve2d", "correlate2d", "fftconvolve"):
            f = getattr(lib.signal, name)
            out[name] = f(x, u, mode)
            if name != "fftconvolve":
                out[name, "exchanged"] = f(w, z, mode)
        out["by fft"] = lib.signal.convolve(u, x, mode, method="fft")
        out["axes"] = lib.signal.fftconvolve(x, x[:, :3], mode, axes=1)
        return out

    same(program, X, U, Z, W)


def test_trends():
    def program(lib, s):
        f = lib.signal.detrend
        return {"line": f(s), "mean": f(s, axis=0, type="constant"), "pieces": f(s, bp=[30, 90])}

    same(program, S, atol=1e-4)


def test_spectra():
    def program(lib, s):
        f, win = lib.signal, np.hanning(24)
        return {
            "stft": f.stft(s, nperseg=32, fs=10.0),
            "odd": f.stft(s, nperseg=33, boundary="odd", detrend="linear"),
            "edge": f.stft(s.T, nperseg=30, nfft=64, boundary="constant", padded=False, axis=0),
            "array": f.stft(s, nperseg=24, window=win, boundary=None, return_onesided=False),
            "welch": f.welch(s, nperseg=32, window="hamming", scaling="spectrum"),
            "median": f.welch(s, nperseg=33, average="median"),
            "csd": f.csd(s, s[::-1, :100], fs=5.0, nperseg=32),
        }

    same(program, S, atol=1e-4)


def test_there_and_back():
    def program(lib, s):
        *_, spectra = lib.signal.stft(s, nperseg=32)
        moved = spectra.transpose(2, 0, 1)
        return {
            "back": lib.signal.istft(spectra, nperseg=32),
            "axes": lib.signal.istft(moved, time_axis=0, freq_axis=-1),
        }

    same(program, S, atol=1e-4)
    *_, spectra = lamina.scipy.signal.stft(S, nperseg=32)
    _, back = lamina.scipy.signal.istft(spectra)
    np.testing.assert_allclose(back[:, : S.shape[1]], S, atol=1e-5)


def test_complex_signals_have_two_sides():
    with pytest.warns(UserWarning, match="switching to return_onesided=False"):
        frequencies, _, _ = lamina.scipy.signal.stft(Z, nperseg=4)
    assert frequencies.shape == (4,)


@pytest.mark.parametrize("length", [1, 7, 8])
def test_windows(length):
    names = "boxcar triang bartlett cosine hann hamming blackman nuttall blackmanharris flattop"
    for window in [*names.split(), ("kaiser", 3.0), ("gaussian", 2.0), ("tukey", 0.3),
                   ("general_hamming", 0.7), "exponential", 4.0]:  # fmt: skip
        want = scipy.signal.get_window(window, length)
        np.testing.assert_allclose(get_window(window, length), want, atol=1e-12, err_msg=window)
    with pytest.raises(ValueError, match="Unknown window type 'round'; known are"):
        get_window("round", length)


@pytest.mark.parametrize(
    "call",
    [
        lambda lib: lib.signal.convolve(X, U, "middle"),
        lambda lib: lib.signal.convolve(X, U, method="slow"),
        lambda lib: lib.signal.convolve(X, U[0]),
        lambda lib: lib.signal.convolve(X, np.zeros((9, 1), np.float32)),
        lambda lib: lib.signal.convolve2d(X, U, boundary="wrap"),
        lambda lib: lib.signal.fftconvolve(X, U, axes=1),
        lambda lib: lib.signal.detrend(X, type="cubic"),
        lambda lib: lib.signal.detrend(X, overwrite_data=True),
        lambda lib: lib.signal.stft(S, nperseg=0),
        lambda lib: lib.signal.stft(S, nperseg=8, noverlap=8),
        lambda lib: lib.signal.welch(S, scaling="loud"),
        lambda lib: lib.signal.istft(S[0]),
        lambda lib: lib.fft.dct(X, type=3),
        lambda lib: lib.fft.dct(X, norm="forward"),
    ],
)
def test_errors_are_jax_s(call):
    with pytest.raises(Exception) as expected:
        call(THERE)
    with pytest.raises(type(expected.value)):
        call(HERE)


def test_sizes_of_dctn_are_of_the_last_axes():
    x = np.random.default_rng(3).normal(size=(4, 6)).astype(np.float32)
    np.testing.assert_allclose(lamina.scipy.fft.dctn(x, s=[5]), scipy.fft.dctn(x, s=[5]), atol=1e-5)
    with pytest.raises(ValueError, match="s must have at most x.ndim"):
        lamina.scipy.fft.dctn(x, s=(2, 3, 4))
