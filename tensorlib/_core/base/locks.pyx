"""The locks that inline code of several modules takes."""
