"""Programs built by hand: calls on variables, and the blocks of branches and loops."""
