"""The same elements in another arrangement: views, and tensors joined into one."""
