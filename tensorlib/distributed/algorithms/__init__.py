"""Communication hooks for gradients, and training with uneven inputs."""
