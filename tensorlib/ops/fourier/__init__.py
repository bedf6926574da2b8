"""Fourier transforms: spectra of signals, and signals of spectra."""
