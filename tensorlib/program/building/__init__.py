"""Calls on variables, which are added to a block; the blocks of branches and loops."""
