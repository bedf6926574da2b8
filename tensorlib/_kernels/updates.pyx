"""The steps of the optimisers that are used most as one loop each, held equal to their formulas.

`operands` are the gradient, the states and the parameter, contiguous runs of n elements of one
dtype, of which the states and the parameter are written; `numbers` are those of the formula.
"""

from tensorlib._kernels.vecmath cimport floating


def table():
    """(name, input dtypes, output dtype, address) of every loop"""
    return []
