"""Elements at positions: index expressions, and what reads and writes there."""
