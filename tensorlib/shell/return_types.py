"""The named tuples that functions with several results return, under the names of
`torch.return_types`.

>>> isinstance(tensorlib.ones(2, 3).max(1), tensorlib.return_types.max)
True
"""

from importlib import import_module

_HOMES = {
    "tensorlib.linalg.determinants": {"linalg_slogdet": "SignedLog", "slogdet": "SignedLog"},
    "tensorlib.linalg.factors": {
        "linalg_lu": "PLU", "linalg_lu_factor": "LUFactor", "linalg_lu_factor_ex": "LUFactorEx",
        "lu_unpack": "Unpacked", "triangular_solve": "Triangular"},
    "tensorlib.linalg.general": {"linalg_eig": "Eigen", "linalg_lstsq": "LeastSquares"},
    "tensorlib.linalg.inverses": {
        "linalg_cholesky_ex": "Factor", "linalg_inv_ex": "Inverse", "linalg_solve_ex": "Solution"},
    "tensorlib.linalg.ldl": {"linalg_ldl_factor": "LDL", "linalg_ldl_factor_ex": "LDLEx"},
    "tensorlib.linalg.orthogonal": {"linalg_qr": "Orthogonal", "qr": "OldOrthogonal"},
    "tensorlib.linalg.reflections": {"geqrf": "Reflections"},
    "tensorlib.linalg.spectra": {
        "linalg_eigh": "Eigen", "linalg_svd": "Singular", "svd": "OldSingular"},
    "tensorlib.ops.order.quantiles": {
        "median": "Median", "mode": "Mode", "nanmedian": "NanMedian"},
    "tensorlib.ops.order.sorting": {"kthvalue": "Kth", "sort": "Sorted", "topk": "Top"},
    "tensorlib.ops.pointwise.rare": {"frexp": "Parts"},
    "tensorlib.ops.reduce.extremes": {"aminmax": "Extremes", "max": "Largest", "min": "Smallest"},
    "tensorlib.ops.reduce.scans": {"cummax": "CumulativeMax", "cummin": "CumulativeMin"},
    "tensorlib.ops.reduce.statistics": {"histogram": "Histogram", "histogramdd": "HistogramDD"},
}
_WHERE = {name: (home, kind) for home, kinds in _HOMES.items() for name, kind in kinds.items()}

__all__ = sorted(_WHERE)


def __getattr__(name):
    if name not in _WHERE:
        raise AttributeError(f"module 'tensorlib.return_types' has no attribute {name!r}")
    home, kind = _WHERE[name]
    return getattr(import_module(home), kind)


def __dir__():
    return list(__all__)
