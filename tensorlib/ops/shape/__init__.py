"""The same elements in other shapes: views, joining, stacking, rolling, repeating, padding."""
