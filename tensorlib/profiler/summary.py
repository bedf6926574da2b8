"""`summary`: the layers of a model as a table, imported when first called."""

from typing import TYPE_CHECKING, Any

from tensorlib._core.base.importing import deferred

if TYPE_CHECKING:
    from tensorlib.profiler.model_summary import ModelSummary

_summarized = deferred("tensorlib.profiler.model_summary", "summarized")


def summary(model: Any, input_shape: Any = None, *, input_data: Any = None, dtypes: Any = None,
            depth: int = 3) -> "ModelSummary":
    """The layers of a model, with what they give, hold and multiply: print it.

    The model is called once, as in evaluation and outside of the graph, on zeros of `input_shape`,
    with the batch in it, or of several shapes in a list; `dtypes` says of which dtype, one or as
    many. Or it is called on `input_data`: a tensor, a tuple of arguments, or a dict of them by
    name. depth: how far into modules of modules the table goes.
    Raises: TypeError for what is not a module, ValueError for no input.

    >>> model = tensorlib.nn.Sequential(tensorlib.nn.Linear(8, 4), tensorlib.nn.ReLU())
    >>> print(tensorlib.summary(model, (2, 8)))
    layer        gives   parameters  multiplications
    ------------------------------------------------
    Sequential   (2, 4)          36               64
      0: Linear  (2, 4)          36               64
      1: ReLU    (2, 4)           0                0
    ------------------------------------------------
    36 parameters (144 B), all of them trained
    64 multiplications
    64 B in, 64 B of what layers give
    """
    return _summarized(model, input_shape, input_data, dtypes, depth)
