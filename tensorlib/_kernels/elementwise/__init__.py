"""Each element by itself: arithmetic, functions, derivatives, conversions, updates."""
