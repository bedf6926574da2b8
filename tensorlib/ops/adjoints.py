"""Linear operations on the last dims whose attribute `back` selects their adjoint."""

from tensorlib.ops.references import adjoint


def planes_alone(function):
    """Registers the batching rule of an operation on the last dims: the batch is one more leading
    dim or, for images and volumes, whose memory format is kept, part of the first dim."""
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
    """Registers the derivative of such an operation, its adjoint, and its batching rule."""
    attributes = function.op.attributes
    place = attributes.index("back")

    def pull(g, *values):
        return function(g, *values[:place], not values[place], *values[place + 1:])
    function.op.add_rule("input", pull, names=("g", *attributes))
    return planes_alone(function)


def forward_and_back(forward):
    """The reference of such an operation, made of that of its forward direction.

    Its first attribute is the sizes of the last dims, and its last one `back`.
    """
    def reference(x, spatial, *attributes):
        *options, back = attributes
        if not back:
            return forward(x, spatial, *options)
        like = (*x.shape[:x.ndim - len(spatial)], *spatial)
        return adjoint(lambda y: forward(y, spatial, *options), like, x)
    return reference
