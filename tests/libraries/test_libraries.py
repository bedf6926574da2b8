"""Other libraries on Tensors outside of any graph: each call gives what it gives on arrays.

A library's calls run where it is installed; the extra `libraries` installs them all.
"""

import importlib
from types import SimpleNamespace

import numpy as np
import pytest

import tensorlib as tl

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4)) + np.repeat([[0.0], [3.0]], 30, axis=0)
ARRAYS = {
    "X": X,                                             # examples, in two clusters
    "labels": np.repeat([0, 1], 30),
    "target": X @ np.array([1.0, -2.0, 0.5, 0.0]) + 0.1 * RNG.normal(size=60),
    "v": np.sort(RNG.uniform(0.1, 2.0, 30)),            # grows
    "w": RNG.uniform(0.1, 2.0, 30),
    "M": RNG.normal(size=(5, 5)) + 4 * np.eye(5),
    "image": RNG.uniform(size=(8, 8)),
    "counts": np.array([3, 1, 4, 1, 5]),
    "mask": RNG.uniform(size=30) > 0.5,
    "x0": np.array([1.3, 0.7]),
    "f32": RNG.normal(size=(60, 4)).astype(np.float32),
}


def data(convert):
    """The arrays, each converted."""
    return SimpleNamespace(**{name: convert(array.copy()) for name, array in ARRAYS.items()})


def submodule(name):
    """A library's module, which is imported when a call asks for an attribute of it."""
    class Later:
        def __getattr__(self, attribute):
            if attribute.startswith(("_", "pytest")):       # as pytest asks when it collects
                raise AttributeError(attribute)
            return getattr(importlib.import_module(name), attribute)
    return Later()


# ---- scikit-learn --------------------------------------------------------------------------------

def estimator(path, **options):
    """An estimator of scikit-learn, by the name of its module and class."""
    module, name = path.split(".")
    return getattr(importlib.import_module(f"sklearn.{module}"), name)(**options)


metrics, selection = submodule("sklearn.metrics"), submodule("sklearn.model_selection")

TRANSFORMERS = [
    ("preprocessing.StandardScaler", {}), ("preprocessing.MinMaxScaler", {}),
    ("preprocessing.RobustScaler", {}), ("preprocessing.Normalizer", {}),
    ("preprocessing.PolynomialFeatures", {}), ("preprocessing.QuantileTransformer",
                                               {"n_quantiles": 20}),
    ("preprocessing.PowerTransformer", {}), ("preprocessing.KBinsDiscretizer", {}),
    ("preprocessing.OneHotEncoder", {}), ("impute.SimpleImputer", {}),
    ("decomposition.PCA", {"n_components": 2}),
    ("decomposition.TruncatedSVD", {"random_state": 0}),
    ("cluster.KMeans", {"n_clusters": 2, "random_state": 0}),
]
CLASSIFIERS = [
    ("linear_model.LogisticRegression", {}), ("linear_model.SGDClassifier", {"random_state": 0}),
    ("svm.SVC", {}), ("neighbors.KNeighborsClassifier", {}), ("naive_bayes.GaussianNB", {}),
    ("tree.DecisionTreeClassifier", {"random_state": 0}),
    ("ensemble.RandomForestClassifier", {"n_estimators": 10, "random_state": 0}),
    ("ensemble.GradientBoostingClassifier", {"n_estimators": 5, "random_state": 0}),
    ("neural_network.MLPClassifier", {"max_iter": 30, "random_state": 0}),
]
REGRESSORS = [
    ("linear_model.LinearRegression", {}), ("linear_model.Ridge", {}), ("linear_model.Lasso", {}),
    ("svm.SVR", {}), ("gaussian_process.GaussianProcessRegressor", {}),
    ("ensemble.RandomForestRegressor", {"n_estimators": 10, "random_state": 0}),
]
CLUSTERS = [("cluster.KMeans", {"n_clusters": 2, "random_state": 0}), ("cluster.DBSCAN", {}),
            ("cluster.AgglomerativeClustering", {}), ("mixture.GaussianMixture",
                                                      {"random_state": 0})]
SKLEARN = [
    *[(f"{path}.fit_transform", lambda d, path=path, options=options:
       estimator(path, **options).fit_transform(d.X)) for path, options in TRANSFORMERS],
    *[(f"{path}.fit_transform of float32", lambda d, path=path, options=options:
       estimator(path, **options).fit_transform(d.f32)) for path, options in TRANSFORMERS[:4]],
    *[(f"{path}.fit_predict", lambda d, path=path, options=options:
       estimator(path, **options).fit_predict(d.X)) for path, options in CLUSTERS],
    *[(f"{path}.predict", lambda d, path=path, options=options:
       estimator(path, **options).fit(d.X, d.labels).predict(d.X))
      for path, options in CLASSIFIERS],
    *[(f"{path}.score", lambda d, path=path, options=options:
       estimator(path, **options).fit(d.X, d.labels).score(d.X, d.labels))
      for path, options in CLASSIFIERS],
    *[(f"{path}.predict", lambda d, path=path, options=options:
       estimator(path, **options).fit(d.X, d.target).predict(d.X)) for path, options in REGRESSORS],
    ("sample_weight", lambda d: estimator("linear_model.Ridge").fit(
        d.X, d.target, sample_weight=abs(d.target)).coef_),
    ("pipeline", lambda d: importlib.import_module("sklearn.pipeline").make_pipeline(
        estimator("preprocessing.StandardScaler"),
        estimator("linear_model.LogisticRegression")).fit(d.X, d.labels).predict_proba(d.X)),
    ("train_test_split", lambda d: selection.train_test_split(
        d.X, d.labels, test_size=0.25, random_state=0)),
    ("train_test_split, stratified", lambda d: selection.train_test_split(
        d.X, d.labels, stratify=d.labels, random_state=0)),
    ("cross_val_score", lambda d: selection.cross_val_score(
        estimator("linear_model.Ridge"), d.X, d.target)),
    ("KFold", lambda d: [places for pair in selection.KFold(3).split(d.X) for places in pair]),
    ("GridSearchCV", lambda d: selection.GridSearchCV(
        estimator("linear_model.Ridge"), {"alpha": [0.1, 10.0]}).fit(d.X, d.target).predict(d.X)),
    *[(f"metrics.{name}", lambda d, name=name: getattr(metrics, name)(d.labels, d.target > 0))
      for name in ("accuracy_score", "f1_score", "confusion_matrix", "precision_score")],
    *[(f"metrics.{name}", lambda d, name=name: getattr(metrics, name)(d.target, d.X[:, 0]))
      for name in ("mean_squared_error", "r2_score", "mean_absolute_error")],
    ("metrics.roc_auc_score", lambda d: metrics.roc_auc_score(d.labels, d.target)),
    ("metrics.roc_curve", lambda d: metrics.roc_curve(d.labels, d.target)),
    ("metrics.log_loss", lambda d: metrics.log_loss(d.labels, abs(d.X[:, 0]) / 10)),
    ("metrics.silhouette_score", lambda d: metrics.silhouette_score(d.X, d.labels)),
    ("metrics.pairwise_distances", lambda d: metrics.pairwise_distances(d.X)),
    ("metrics.rbf_kernel", lambda d: metrics.pairwise.rbf_kernel(d.X, d.X)),
    ("utils.shuffle", lambda d: importlib.import_module("sklearn.utils").shuffle(
        d.X, d.labels, random_state=0)),
    ("utils.resample", lambda d: importlib.import_module("sklearn.utils").resample(
        d.X, random_state=0)),
]

# ---- pandas --------------------------------------------------------------------------------------

pd = submodule("pandas")


def assigned(d):
    frame = pd.DataFrame({"a": d.v})
    frame["b"] = d.w
    frame["c"] = frame["a"] + d.w
    return frame


PANDAS = [
    ("DataFrame", lambda d: pd.DataFrame(d.X)),
    ("DataFrame with columns", lambda d: pd.DataFrame(d.X, columns=list("abcd"))),
    ("DataFrame of a dict", lambda d: pd.DataFrame({"v": d.v, "w": d.w})),
    ("Series", lambda d: pd.Series(d.v)),
    ("Series of integers", lambda d: pd.Series(d.counts)),
    ("Series with an index", lambda d: pd.Series(d.v, index=d.w)),
    ("Index", lambda d: pd.Index(d.counts)),
    ("assignment", assigned),
    ("series + x", lambda d: pd.Series(d.v) + d.w),
    ("x + series", lambda d: d.w + pd.Series(d.v)),
    ("series * x", lambda d: pd.Series(d.v).mul(d.w)),
    ("series > x", lambda d: pd.Series(d.v) > d.w),
    ("frame - x", lambda d: pd.DataFrame(d.X) - d.X[0]),
    ("frame @ x", lambda d: pd.DataFrame(d.X) @ d.X[:4]),
    ("iloc", lambda d: pd.Series(d.v).iloc[d.counts]),
    ("where", lambda d: pd.Series(d.v).where(d.mask, d.w)),
    ("cut", lambda d: pd.cut(d.v, 3).codes),
    ("qcut", lambda d: pd.qcut(d.v, 3, labels=False)),
    ("unique", lambda d: pd.unique(pd.Series(d.counts))),
    ("factorize", lambda d: pd.factorize(pd.Series(d.counts))),
    ("get_dummies", lambda d: pd.get_dummies(pd.Series(d.labels))),
    ("crosstab", lambda d: pd.crosstab(np.asarray(d.labels), np.asarray(d.labels))),
    ("to_datetime", lambda d: pd.to_datetime(pd.Series(d.counts), unit="s")),
    ("isna", lambda d: pd.isna(d.v)),
    ("concat", lambda d: pd.concat([pd.Series(d.v), pd.Series(d.w)])),
]

# ---- matplotlib ----------------------------------------------------------------------------------


def picture(draw):
    """A call that draws on axes, and gives the pixels."""
    def drawn(d):
        matplotlib = importlib.import_module("matplotlib")
        matplotlib.use("Agg")
        figure = importlib.import_module("matplotlib.figure").Figure(figsize=(2, 2), dpi=50)
        canvas = importlib.import_module("matplotlib.backends.backend_agg").FigureCanvasAgg(figure)
        draw(figure.add_subplot(), d)
        canvas.draw()
        return np.asarray(canvas.buffer_rgba()).copy()
    return drawn


MATPLOTLIB = [(name, picture(draw)) for name, draw in [
    ("plot", lambda ax, d: ax.plot(d.v, d.w)),
    ("plot of one", lambda ax, d: ax.plot(d.v)),
    ("plot of columns", lambda ax, d: ax.plot(d.X)),
    ("scatter", lambda ax, d: ax.scatter(d.v, d.w, s=10 * d.w, c=d.v)),
    ("scatter by label", lambda ax, d: ax.scatter(d.X[:, 0], d.X[:, 1], c=d.labels)),
    ("bar", lambda ax, d: ax.bar(d.counts, d.counts)),
    ("bar with errors", lambda ax, d: ax.bar(d.v, d.w, width=0.1 * d.v, yerr=d.w)),
    ("barh", lambda ax, d: ax.barh(d.counts, d.counts)),
    ("hist", lambda ax, d: ax.hist(d.v)),
    ("hist of columns", lambda ax, d: ax.hist(d.X, bins=5)),
    ("hist with bins and weights", lambda ax, d: ax.hist(d.v, bins=d.v[::6], weights=d.w)),
    ("hist2d", lambda ax, d: ax.hist2d(d.v, d.w)),
    ("hexbin", lambda ax, d: ax.hexbin(d.v, d.w, gridsize=5)),
    ("imshow", lambda ax, d: ax.imshow(d.image)),
    ("imshow of colours", lambda ax, d: ax.imshow(d.image[:, :, None].repeat(3, 2)
                                                  if isinstance(d.image, np.ndarray)
                                                  else d.image[:, :, None].expand(8, 8, 3))),
    ("matshow", lambda ax, d: ax.matshow(d.M)),
    ("errorbar", lambda ax, d: ax.errorbar(d.v, d.w, yerr=d.v, xerr=0.1)),
    ("errorbar, two-sided", lambda ax, d: ax.errorbar(d.v, d.w, yerr=(d.v, d.w))),
    ("fill_between", lambda ax, d: ax.fill_between(d.v, d.w, d.w + 1)),
    ("fill_between where", lambda ax, d: ax.fill_between(d.v, d.w, where=d.mask)),
    ("stackplot", lambda ax, d: ax.stackplot(d.v, d.w, d.w)),
    ("step", lambda ax, d: ax.step(d.v, d.w)),
    ("stem", lambda ax, d: ax.stem(d.v, d.w)),
    ("boxplot", lambda ax, d: ax.boxplot(d.X)),
    ("boxplot of one", lambda ax, d: ax.boxplot(d.v)),
    ("violinplot", lambda ax, d: ax.violinplot(d.X)),
    ("contour", lambda ax, d: ax.contour(d.image)),
    ("contourf", lambda ax, d: ax.contourf(d.v[:8], d.v[:8], d.image)),
    ("pcolormesh", lambda ax, d: ax.pcolormesh(d.image)),
    ("quiver", lambda ax, d: ax.quiver(d.v, d.w, d.w, d.v)),
    ("pie", lambda ax, d: ax.pie(d.counts)),
    ("vlines", lambda ax, d: ax.vlines(d.v, 0, d.w)),
    ("hlines", lambda ax, d: ax.hlines(d.v, 0, d.w)),
    ("axvline", lambda ax, d: ax.axvline(d.v[0])),
    ("axhline", lambda ax, d: ax.axhline(d.v[0])),
    ("semilogy", lambda ax, d: ax.semilogy(d.v, d.w)),
    ("loglog", lambda ax, d: ax.loglog(d.v, d.w)),
    ("text at", lambda ax, d: ax.text(d.x0[0] / 4, d.x0[1], "here")),
    ("limits", lambda ax, d: (ax.set_xlim(d.x0[1], d.x0[0]), ax.set_ylim(0, d.x0[0]))),
    ("ticks", lambda ax, d: ax.set_xticks(d.v[::10])),
    ("ecdf", lambda ax, d: ax.ecdf(d.v)),
    ("spy", lambda ax, d: ax.spy(d.M)),
    ("specgram", lambda ax, d: ax.specgram(d.w, NFFT=8, noverlap=4)),
    ("acorr", lambda ax, d: ax.acorr(d.w)),
]]

# ---- SciPy ---------------------------------------------------------------------------------------

special, optimize, stats, interpolate, integrate, sparse, spatial, signal, linalg, ndimage, fft, \
    cluster = (submodule(f"scipy.{name}") for name in (
        "special", "optimize", "stats", "interpolate", "integrate", "sparse", "spatial", "signal",
        "linalg", "ndimage", "fft", "cluster"))


def rosenbrock(x):
    return (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2


SCIPY = [
    *[(f"special.{name}", lambda d, name=name: getattr(special, name)(d.v)) for name in (
        "gammaln", "digamma", "expit", "logit", "erf", "erfinv", "j0", "entr", "log_ndtr")],
    ("special.xlogy", lambda d: special.xlogy(d.v, d.w)),
    ("special.betainc", lambda d: special.betainc(d.v, 2.0, d.w / 2)),
    ("special.jv", lambda d: special.jv(1, d.v)),
    ("special.logsumexp", lambda d: special.logsumexp(d.X, axis=1)),
    ("special.logsumexp with weights", lambda d: special.logsumexp(d.v, b=d.w)),
    ("special.softmax", lambda d: special.softmax(d.X, axis=1)),
    ("special.comb", lambda d: special.comb(d.counts, 2)),
    ("special.sph_harm_y", lambda d: special.sph_harm_y(1, 1, d.v, d.w)),
    *[(f"optimize.minimize {method}", lambda d, method=method: optimize.minimize(
        lambda x: float(rosenbrock(x)), d.x0, method=method).x)
      for method in ("BFGS", "Nelder-Mead", "L-BFGS-B", "Powell", "SLSQP", "CG")],
    ("optimize.minimize with bounds", lambda d: optimize.minimize(
        lambda x: float(rosenbrock(x)), d.x0, bounds=optimize.Bounds(d.x0 - 1, d.x0 + 1)).x),
    ("optimize.least_squares", lambda d: optimize.least_squares(
        lambda x: np.asarray(d.v) * x[0] + x[1] - np.asarray(d.w), d.x0).x),
    ("optimize.curve_fit", lambda d: optimize.curve_fit(
        lambda x, a, b: a * x + b, d.v, d.w, p0=d.x0)),
    ("optimize.curve_fit, weighted", lambda d: optimize.curve_fit(
        lambda x, a, b: a * x + b, d.v, d.w, sigma=d.v)),
    ("optimize.root", lambda d: optimize.root(lambda x: np.asarray(x) ** 2 - 2, d.x0).x),
    ("optimize.fsolve", lambda d: optimize.fsolve(lambda x: x ** 2 - 2, d.x0)),
    ("optimize.linprog", lambda d: optimize.linprog(
        d.x0, A_ub=-d.M[:2, :2], b_ub=-d.x0).x),
    ("optimize.nnls", lambda d: optimize.nnls(d.M, d.M[0])),
    ("optimize.linear_sum_assignment", lambda d: optimize.linear_sum_assignment(d.M)),
    ("optimize.milp", lambda d: optimize.milp(d.x0).x),
    ("optimize.approx_fprime", lambda d: optimize.approx_fprime(
        d.x0, lambda x: float(rosenbrock(x)))),
    ("optimize.differential_evolution", lambda d: optimize.differential_evolution(
        rosenbrock, [(0.0, 2.0)] * 2, x0=d.x0, seed=0, maxiter=3, polish=False).x),
    *[(f"stats.{name}", lambda d, name=name: getattr(stats, name)(d.v)) for name in (
        "zscore", "describe", "skew", "kurtosis", "shapiro", "rankdata", "sem", "gmean",
        "entropy", "iqr", "mode", "normaltest")],
    *[(f"stats.{name}", lambda d, name=name: getattr(stats, name)(d.v, d.w)) for name in (
        "pearsonr", "spearmanr", "kendalltau", "ttest_ind", "linregress", "ks_2samp",
        "mannwhitneyu", "wasserstein_distance", "ttest_rel", "f_oneway")],
    ("stats.norm.pdf", lambda d: stats.norm.pdf(d.v, d.w, 1.0)),
    ("stats.norm.logpdf", lambda d: stats.norm.logpdf(d.v)),
    ("stats.norm.cdf", lambda d: stats.norm.cdf(d.v, loc=d.w)),
    ("stats.norm.ppf", lambda d: stats.norm.ppf(d.w / 3)),
    ("stats.norm.fit", lambda d: stats.norm.fit(d.v)),
    ("stats.gamma.fit", lambda d: stats.gamma.fit(d.v, floc=0)),
    ("stats.gamma.logpdf", lambda d: stats.gamma.logpdf(d.v, d.w)),
    ("stats.poisson.pmf", lambda d: stats.poisson.pmf(d.counts, 2.0)),
    ("stats.multivariate_normal", lambda d: stats.multivariate_normal(d.M[0], d.M @ d.M.T).logpdf(
        d.M)),
    ("stats.gaussian_kde", lambda d: stats.gaussian_kde(d.v)(d.w)),
    ("stats.chisquare", lambda d: stats.chisquare(d.counts)),
    ("stats.binned_statistic", lambda d: stats.binned_statistic(d.v, d.w, "mean", bins=3)[:2]),
    ("stats.bootstrap", lambda d: stats.bootstrap(
        (d.v,), np.mean, n_resamples=20, rng=0).standard_error),
    ("interpolate.interp1d", lambda d: interpolate.interp1d(d.v, d.w)(d.v[1:-1])),
    ("interpolate.CubicSpline", lambda d: interpolate.CubicSpline(d.v, d.w)(d.v[1:-1] + 0.01)),
    ("interpolate.PchipInterpolator", lambda d: interpolate.PchipInterpolator(d.v, d.w)(d.v)),
    ("interpolate.UnivariateSpline", lambda d: interpolate.UnivariateSpline(d.v, d.w)(d.v)),
    ("interpolate.griddata", lambda d: interpolate.griddata(
        d.X[:, :2], d.target, d.X[:3, :2] + 0.01, "nearest")),
    ("interpolate.RBFInterpolator", lambda d: interpolate.RBFInterpolator(
        d.X, d.target)(d.X[:3] + 0.01)),
    ("interpolate.RegularGridInterpolator", lambda d: interpolate.RegularGridInterpolator(
        (d.v[:8], d.v[:8]), d.image)([[float(d.v[3]), float(d.v[4])]])),
    ("interpolate.make_interp_spline", lambda d: interpolate.make_interp_spline(d.v, d.w)(d.v)),
    ("integrate.trapezoid", lambda d: integrate.trapezoid(d.w, d.v)),
    ("integrate.simpson", lambda d: integrate.simpson(d.w, x=d.v)),
    ("integrate.cumulative_trapezoid", lambda d: integrate.cumulative_trapezoid(d.w, d.v)),
    ("integrate.solve_ivp", lambda d: integrate.solve_ivp(
        lambda t, y: -y, (0.0, 1.0), d.x0, t_eval=d.v[d.v < 1]).y),
    # odeint writes over what copy.copy() gives, which shares the memory of a Tensor
    ("integrate.odeint", lambda d: integrate.odeint(lambda y, t: -y, 1 * d.x0, d.v)),
    ("integrate.quad", lambda d: integrate.quad(lambda x: x ** 2, d.v[0], d.v[1])),
    ("sparse.csr_matrix", lambda d: sparse.csr_matrix(d.M).toarray()),
    ("sparse.csr_array", lambda d: sparse.csr_array(d.M) @ np.ones(5)),
    ("sparse @ x", lambda d: sparse.csr_array(np.eye(5)) @ d.M),
    ("sparse.coo of parts", lambda d: sparse.coo_array(
        (d.v[:5], (d.counts, d.counts)), shape=(6, 6)).toarray()),
    ("sparse.linalg.spsolve", lambda d: importlib.import_module("scipy.sparse.linalg").spsolve(
        sparse.csc_array(np.asarray(d.M)), d.M[0])),
    ("sparse.linalg.cg", lambda d: importlib.import_module("scipy.sparse.linalg").cg(
        np.asarray(d.M @ d.M.T), d.M[0])[0]),
    ("spatial.cKDTree", lambda d: spatial.cKDTree(d.X).query(d.X[:3], k=2)),
    ("spatial.distance.cdist", lambda d: importlib.import_module(
        "scipy.spatial.distance").cdist(d.X, d.X)),
    ("spatial.distance.pdist", lambda d: importlib.import_module(
        "scipy.spatial.distance").pdist(d.X)),
    ("spatial.distance.cosine", lambda d: importlib.import_module(
        "scipy.spatial.distance").cosine(d.v, d.w)),
    ("spatial.ConvexHull", lambda d: spatial.ConvexHull(d.X).volume),
    ("spatial.Delaunay", lambda d: spatial.Delaunay(d.X[:, :2]).simplices),
    ("spatial.Rotation", lambda d: importlib.import_module(
        "scipy.spatial.transform").Rotation.from_rotvec(d.v[:3]).as_matrix()),
    ("signal.convolve", lambda d: signal.convolve(d.v, d.w)),
    ("signal.fftconvolve", lambda d: signal.fftconvolve(d.v, d.w)),
    ("signal.correlate", lambda d: signal.correlate(d.v, d.w)),
    ("signal.lfilter", lambda d: signal.lfilter([1.0, 0.5], [1.0], d.v)),
    ("signal.filtfilt", lambda d: signal.filtfilt([1.0, 0.5], [1.0], d.v)),
    ("signal.welch", lambda d: signal.welch(d.w, nperseg=8)),
    ("signal.find_peaks", lambda d: signal.find_peaks(d.w)[0]),
    ("signal.savgol_filter", lambda d: signal.savgol_filter(d.w, 5, 2)),
    ("signal.detrend", lambda d: signal.detrend(d.w)),
    ("signal.medfilt", lambda d: signal.medfilt(d.w)),
    ("signal.resample", lambda d: signal.resample(d.w, 15)),
    ("signal.spectrogram", lambda d: signal.spectrogram(d.w, nperseg=8)),
    *[(f"linalg.{name}", lambda d, name=name: getattr(linalg, name)(d.M)) for name in (
        "inv", "det", "svd", "qr", "lu", "expm", "norm", "pinv", "eigvals", "logm", "sqrtm")],
    ("linalg.eigh", lambda d: linalg.eigh(d.M @ d.M.T)),
    ("linalg.cholesky", lambda d: linalg.cholesky(d.M @ d.M.T)),
    ("linalg.solve", lambda d: linalg.solve(d.M, d.M[0])),
    ("linalg.lstsq", lambda d: linalg.lstsq(d.X, d.target)),
    ("linalg.block_diag", lambda d: linalg.block_diag(d.M, d.image)),
    ("linalg.toeplitz", lambda d: linalg.toeplitz(d.v)),
    ("ndimage.gaussian_filter", lambda d: ndimage.gaussian_filter(d.image, 1.0)),
    ("ndimage.convolve", lambda d: ndimage.convolve(d.image, d.image[:3, :3])),
    ("ndimage.zoom", lambda d: ndimage.zoom(d.image, 2)),
    ("ndimage.label", lambda d: ndimage.label(d.mask)),
    ("fft.fft", lambda d: fft.fft(d.v)),
    ("fft.rfft", lambda d: fft.rfft(d.v)),
    ("fft.dct", lambda d: fft.dct(d.v)),
    ("cluster.vq.kmeans2", lambda d: importlib.import_module("scipy.cluster.vq").kmeans2(
        d.X, 2, rng=0)),
    ("cluster.hierarchy.linkage", lambda d: importlib.import_module(
        "scipy.cluster.hierarchy").linkage(d.X)),
]

LIBRARIES = {"sklearn": SKLEARN, "pandas": PANDAS, "matplotlib": MATPLOTLIB, "scipy": SCIPY}


# ---- the tests -----------------------------------------------------------------------------------

def flat(result):
    """What a call gave as a list of arrays and other values."""
    if isinstance(result, dict):
        result = list(result.values())
    if isinstance(result, (tuple, list)):
        return [part for each in result for part in flat(each)]
    if hasattr(result, "toarray"):
        return [result.toarray()]
    if hasattr(result, "__array__") or isinstance(result, (bool, int, float)):
        return [np.asarray(result)]
    return [np.asarray(value) for value in vars(result).values()]


def agrees(got, wanted):
    if got.shape != wanted.shape:
        return False
    if got.dtype.kind in "fc":
        return np.allclose(got, wanted, rtol=1e-6, atol=1e-9, equal_nan=True)
    return np.array_equal(got, wanted)


ROWS = [pytest.param(library, call, id=f"{library}-{name}")
        for library, calls in LIBRARIES.items() for name, call in calls]


@pytest.mark.parametrize("library, call", ROWS)
@pytest.mark.filterwarnings("ignore")
def test_a_call_on_tensors_gives_what_it_gives_on_arrays(library, call):
    pytest.importorskip(library)
    given = data(tl.from_numpy)
    wanted, got = flat(call(data(np.asarray))), flat(call(given))
    assert len(got) == len(wanted) and all(map(agrees, got, wanted))
    assert all(np.array_equal(np.asarray(x), ARRAYS[name]) for name, x in vars(given).items())


def test_scipys_minimiser_takes_values_and_gradients():
    """What docs/recipes.md says of the function that it makes."""
    pytest.importorskip("scipy")
    both = tl.func.value_and_grad(rosenbrock)

    def value_and_gradient(array):
        value, gradient = both(tl.from_numpy(array))
        return value.item(), gradient.numpy()

    def product(x, p):
        return tl.func.hvp(rosenbrock, (tl.from_numpy(x),), (tl.from_numpy(p),))[1].numpy()

    found = optimize.minimize(value_and_gradient, [1.3, 0.7], jac=True)
    assert np.allclose(found.x, 1, atol=1e-4)
    found = optimize.minimize(value_and_gradient, [1.3, 0.7], jac=True, hessp=product,
                              method="trust-ncg")
    assert np.allclose(found.x, 1, atol=1e-6)


@pytest.mark.parametrize("library, call", [
    ("sklearn", lambda x: estimator("preprocessing.StandardScaler").fit(x)),
    ("pandas", lambda x: pd.DataFrame(x)),
    ("matplotlib", picture(lambda ax, x: ax.plot(x[:, 0]))),
    ("scipy", lambda x: stats.zscore(x)), ("scipy", lambda x: special.gammaln(x)),
])
def test_a_tensor_of_a_graph_is_refused_with_the_remedy(library, call):
    pytest.importorskip(library)
    with pytest.raises((RuntimeError, TypeError), match=r"\.detach\(\)\.numpy\(\)"):
        call(tl.from_numpy(X.copy()).requires_grad_())
