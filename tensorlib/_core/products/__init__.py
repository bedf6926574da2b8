"""Matrix products: how any layout is brought to the BLAS that NumPy has loaded."""
