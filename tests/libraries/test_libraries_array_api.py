"""Libraries that dispatch by the array API standard take Tensors and give Tensors.

SciPy decides at its import whether it does, so that the calls run in a process of their own.
"""

import importlib.util

import pytest
from process import run_python

START = """
import importlib, warnings
import numpy as np
import tensorlib as tl
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X = rng.normal(size=(60, 4))
ARRAYS = dict(X=X, y=np.repeat([0, 1], 30), t=X @ np.array([1.0, -2.0, 0.5, 0.0]),
              v=np.abs(X[:, 0]) + 0.1, w=np.abs(X[:, 1]) + 0.1)

def check(calls, scope):
    for name, call in calls.items():
        wanted = call(**ARRAYS)
        with scope():
            got = call(**{key: tl.from_numpy(array.copy()) for key, array in ARRAYS.items()})
        if np.ndim(wanted):
            assert type(got) is tl.Tensor, (name, type(got))
        np.testing.assert_allclose(np.asarray(got, dtype=float), np.asarray(wanted, dtype=float),
                                   rtol=1e-7, atol=1e-9, err_msg=name)
        print(name)
"""
COMPAT = START + """
import contextlib
import array_api_compat as compat
xp = compat.array_namespace(tl.ones(2), 1.5)
assert xp.sum is tl.array_api.sum and compat.is_array_api_obj(tl.ones(2))
assert compat.device(tl.ones(2)) == tl.device("cpu") and compat.size(tl.ones(2, 3)) == 6
assert compat.to_device(tl.ones(2), "cpu").tolist() == [1.0, 1.0]
namespace = compat.array_namespace
check({
    "standardised": lambda X, **_: (X - namespace(X).mean(X, axis=0)) / namespace(X).std(X, axis=0),
    "unique": lambda y, **_: namespace(y).unique_values(y),
    "counts": lambda y, **_: namespace(y).unique_counts(y).counts,
    "sorted": lambda t, **_: namespace(t).sort(t, descending=True),
    "joined": lambda v, w, **_: namespace(v, w).concat([v, w]),
    "projected": lambda X, **_: X @ namespace(X).linalg.pinv(X) @ X,
    "norm": lambda X, **_: namespace(X).linalg.vector_norm(X, axis=1),
    "clipped": lambda X, **_: namespace(X).clip(X, -0.5, 0.5),
    "cumulated": lambda v, **_: namespace(v).cumulative_sum(v, include_initial=True),
    "expanded": lambda v, **_: namespace(v).expand_dims(v, axis=1) * v,
}, contextlib.nullcontext)
"""
SCIPY = START + """
import contextlib
from scipy import cluster, integrate, ndimage, signal, special, stats
import scipy.cluster.vq
check({
    "logsumexp": lambda X, **_: special.logsumexp(X, axis=1),
    "softmax": lambda X, **_: special.softmax(X, axis=1),
    "gammaln": lambda v, **_: special.gammaln(v),
    "zscore": lambda X, **_: stats.zscore(X),
    "kurtosis": lambda X, **_: stats.kurtosis(X, axis=0),
    "gmean": lambda v, **_: stats.gmean(v),
    "pearsonr": lambda v, w, **_: stats.pearsonr(v, w).statistic,
    "ttest_1samp": lambda X, **_: stats.ttest_1samp(X, 0.0).pvalue,
    "trapezoid": lambda X, **_: integrate.trapezoid(X, axis=0),
    "whiten": lambda X, **_: cluster.vq.whiten(X),
    "detrend": lambda X, **_: signal.detrend(X, axis=0),
    "gaussian_filter": lambda X, **_: ndimage.gaussian_filter(X, 1.0),
}, contextlib.nullcontext)
x = tl.from_numpy(X).requires_grad_()
special.logsumexp(x, axis=1).sum().backward()
np.testing.assert_allclose(x.grad.numpy(), special.softmax(X, axis=1))
"""
SKLEARN = START + """
from sklearn import config_context, decomposition, linear_model, metrics, preprocessing
from sklearn import discriminant_analysis, model_selection
check({
    "StandardScaler": lambda X, **_: preprocessing.StandardScaler().fit_transform(X),
    "MinMaxScaler": lambda X, **_: preprocessing.MinMaxScaler().fit_transform(X),
    "Normalizer": lambda X, **_: preprocessing.Normalizer().fit_transform(X),
    "LabelEncoder": lambda y, **_: preprocessing.LabelEncoder().fit_transform(y),
    "PCA": lambda X, **_: abs(decomposition.PCA(2, svd_solver="full").fit_transform(X)),
    "Ridge": lambda X, t, **_: linear_model.Ridge(solver="svd").fit(X, t).predict(X),
    "LinearDiscriminantAnalysis": lambda X, y, **_: (
        discriminant_analysis.LinearDiscriminantAnalysis().fit(X, y).predict(X)),
    "train_test_split": lambda X, **_: model_selection.train_test_split(X, random_state=0)[0],
    "mean_squared_error": lambda v, w, **_: metrics.mean_squared_error(v, w),
    "r2_score": lambda v, w, **_: metrics.r2_score(v, w),
    "confusion_matrix": lambda y, **_: metrics.confusion_matrix(y, y),
    "rbf_kernel": lambda X, **_: metrics.pairwise.rbf_kernel(X),
}, lambda: config_context(array_api_dispatch=True))
"""


@pytest.mark.parametrize("library, program", [
    ("array_api_compat", COMPAT), ("scipy", SCIPY), ("sklearn", SKLEARN)])
def test_ten_functions_take_tensors(library, program, monkeypatch):
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    assert len(run_python(program).split()) >= 10
