"""Layers of networks: pooling, attention, recurrence, normalisation, losses."""
