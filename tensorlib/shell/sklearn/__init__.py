"""Networks as scikit-learn's estimators: a classifier and a regressor.

    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from tensorlib.sklearn import NeuralNetClassifier
    make_pipeline(StandardScaler(), NeuralNetClassifier(hidden=(64,))).fit(x, y).score(x, y)

They pass scikit-learn's own checks, so that pipelines, grid searches and cross-validation take
them. It needs the package scikit-learn, when one of the names is used.
"""

from importlib import import_module
from typing import Any

__all__ = ["NeuralNetClassifier", "NeuralNetRegressor"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'tensorlib.sklearn' has no attribute {name!r}")
    try:
        import_module("sklearn")
    except ImportError:
        raise ImportError("tensorlib.sklearn: needs the package scikit-learn: pip install "
                          "scikit-learn") from None
    return getattr(import_module("tensorlib.sklearn.estimators"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
