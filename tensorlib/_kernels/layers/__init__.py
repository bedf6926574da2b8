"""Layers of networks: attention, recurrence, convolutions, pooling, resampling."""
