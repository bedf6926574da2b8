"""Linear operations on planes, the last dims, whose attribute `back` asks for their adjoint."""

from tensorlib.ops.references import adjoint


def planes_alone(function):
    """Gives an operation that leaves all dims before the last ones alone its batching rule: a batch
    is one dim more; or, of images and volumes, whose layout the result has, more of these."""
    def batching(info, dims, *values, **attributes):
        x, *others = values
        if x.ndim not in (5, 6):
            return function(*values, **attributes), 0
        out = function(x.flatten(0, 1), *others, **attributes)
        apart = [y if y is None else y.unflatten(0, x.shape[:2])
                 for y in (out if isinstance(out, tuple) else (out,))]
        return (type(out)(*apart) if isinstance(out, tuple) else apart[0]), 0
    function.batching = batching
    return function


def turned_by_back(function):
    """Gives such an operation its derivative, itself the other way round, and its batching rule."""
    attributes = function.op.attributes
    place = attributes.index("back")

    def pull(g, *values):
        return function(g, *values[:place], not values[place], *values[place + 1:])
    function.op.add_rule("input", pull, names=("g", *attributes))
    return planes_alone(function)


def forward_and_back(forward):
    """The reference of such an operation, of the reference of its way forward.

    Its first attribute is the sizes of the planes, and its last one `back`.
    """
    def reference(x, spatial, *attributes):
        *options, back = attributes
        if not back:
            return forward(x, spatial, *options)
        like = (*x.shape[:x.ndim - len(spatial)], *spatial)
        return adjoint(lambda y: forward(y, spatial, *options), like, x)
    return reference
