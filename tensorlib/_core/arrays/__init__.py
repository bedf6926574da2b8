"""Conversion to and from Python's objects, NumPy arrays, DLPack, text and pickles."""
