"""Matrix products by NumPy's BLAS or by own kernels, decompositions, Fourier transforms."""
