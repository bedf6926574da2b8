"""Matrices: products, small decompositions, triangular systems, distances, sparse products."""
