"""Elements at positions: index expressions, and reads and writes through them."""
