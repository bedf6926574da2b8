"""The same elements under other shapes: views, joined and stacked, rolled and repeated, padded."""
