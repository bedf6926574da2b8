"""Items moved whatever their dtype: gathered, scattered, transposed, reversed."""
