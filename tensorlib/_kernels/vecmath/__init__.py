"""Functions of single numbers, without branches, which the compiler vectorises."""
