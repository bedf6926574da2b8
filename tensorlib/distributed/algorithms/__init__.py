"""What can be done with gradients on their way."""
