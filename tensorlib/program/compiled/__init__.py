"""`compile`: the trace cache, and the replay of what is in it."""
