"""Layers of networks: convolutions, pooling, attention, recurrence, normalisation, losses."""
