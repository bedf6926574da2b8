"""The phases of complex vectors, which are chosen: one element of each is real and positive.

So vectors turn with their matrix such that this element stays real. Rules give the derivative for
any choice of phases that is smooth, and what is here makes it that of ours.
"""

from tensorlib.linalg import lapack


def chosen_elements(vectors):
    """1 at the element of each column that is real and positive, else 0: see `lapack.signs`."""
    sizes = vectors.detach().abs()
    large = sizes >= lapack.LARGE * sizes.amax(-2, True)
    return large.logical_and(large.cumsum(-2) == 1).to(sizes.dtype)


def turned(vectors, moved, *beside):
    """Tangents of vectors with their phases, and of pairs (vectors, tangents) that turn as they do.
    """
    if not vectors.is_complex() or not vectors.numel():
        return moved, *[tangent for _, tangent in beside]
    places = chosen_elements(vectors)
    angle = (places * moved).sum(-2, True).imag / (places * vectors).sum(-2, True).real
    return tuple(tangent - 1j * angle * own for own, tangent in ((vectors, moved), *beside))


def with_phases(vectors, g, *beside):
    """A gradient of vectors as one that does not depend on their phases, which it moves instead.

    beside: pairs (vectors, gradients) of what turns as they do. A gradient may be None.
    """
    known = [(own, grad) for own, grad in ((vectors, g), *beside) if grad is not None]
    if not vectors.is_complex() or not vectors.numel() or not known:
        return g
    along = sum((grad.conj() * own).sum(-2, True).imag for own, grad in known)
    places = chosen_elements(vectors)
    added = places * (1j * along / (places * vectors).sum(-2, True).real)
    return added if g is None else g + added
