"""The estimators: a module, how it is trained, and what scikit-learn asks of both."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

import tensorlib as tl
from tensorlib import Tensor, nn, optim
from tensorlib.nn import functional as F
from tensorlib.nn.zoo import MLP
from tensorlib.random import fork_rng


class NeuralNet(BaseEstimator):  # type: ignore[misc]
    """What both estimators share: how a module is made and trained."""

    def __init__(self, module: Callable[[int, int], nn.Module] | None = None,
                 hidden: Sequence[int] = (64,), optimizer: Callable[..., Any] | None = None,
                 lr: float = 0.01, weight_decay: float = 0.0, max_epochs: int = 100,
                 batch_size: int = 32, random_state: Any = None) -> None:
        self.module = module
        self.hidden = hidden
        self.optimizer = optimizer
        self.lr = lr
        self.weight_decay = weight_decay
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.random_state = random_state

    def trained(self, x: Any, targets: Tensor, outputs: int,
                loss_of: Callable[[Tensor, Tensor], Tensor]) -> Any:
        """This estimator after a module was made and trained; the library's own draws go on as if
        nothing had been drawn."""
        for name in ("max_epochs", "batch_size"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{type(self).__name__}: {name} must be 1 or more, got "
                                 f"{getattr(self, name)}")
        inputs = tl.from_numpy(np.array(x))
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        with fork_rng():
            tl.manual_seed(seed)
            make = self.module or perceptron(self.hidden)
            self.module_ = make(inputs.shape[1], outputs).to(inputs.dtype)
            optimizer = (self.optimizer or optim.AdamW)(
                self.module_.parameters(), lr=self.lr, weight_decay=self.weight_decay)
            self.loss_curve_ = [self.epoch(inputs, targets, optimizer, loss_of)
                                for _ in range(self.max_epochs)]
        self.n_iter_ = self.max_epochs
        self.module_.eval()
        return self

    def epoch(self, inputs: Tensor, targets: Tensor, optimizer: Any,
              loss_of: Callable[[Tensor, Tensor], Tensor]) -> float:
        """The mean loss of one pass over the examples, in an order that is drawn."""
        self.module_.train()
        total = 0.0
        for places in tl.randperm(len(inputs)).split(self.batch_size):
            loss = loss_of(self.module_(inputs[places]), targets[places])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(places)
        return total / len(inputs)

    def outputs(self, x: Any) -> Tensor:
        """What the module gives for examples, in parts of bounded size."""
        check_is_fitted(self)
        inputs = tl.from_numpy(np.array(validate_data(self, x, dtype=np.float64, reset=False)))
        with tl.no_grad():
            return tl.cat([self.module_(part) for part in inputs.split(1024)])


class NeuralNetClassifier(ClassifierMixin, NeuralNet):  # type: ignore[misc]
    """A classifier of scikit-learn's kind around a module that gives logits.

    After `fit` it has `classes_`, `module_`, `loss_curve_` (the mean loss of each epoch) and
    `n_iter_`. It computes in float64.

    Args:
        module: a function of the number of features and of classes that gives a module; a
            perceptron for None.
        hidden: the layers of the perceptron.
        optimizer: an optimiser's class, AdamW for None.
        lr: its learning rate.
        weight_decay: how fast weights fall to 0 by themselves.
        max_epochs: the passes over the examples.
        batch_size: the examples of a step.
        random_state: a seed, for the same fit each time.
    """

    def fit(self, X: Any, y: Any) -> Any:
        """This estimator, trained on examples (N, features) and their classes (N,).

        Args:
            X: the examples.
            y: the classes, numbers or texts.
        """
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_, numbers = np.unique(y, return_inverse=True)
        return self.trained(X, tl.from_numpy(numbers.astype(np.int64)), len(self.classes_),
                            F.cross_entropy)

    def predict_proba(self, X: Any) -> Any:
        """How likely each class is for each example, (N, classes).

        Args:
            X: the examples.
        """
        return self.outputs(X).softmax(1).numpy()

    def predict(self, X: Any) -> Any:
        """The likeliest class of each example.

        Args:
            X: the examples.
        """
        places = self.outputs(X).argmax(1).numpy()
        return self.classes_[places]


class NeuralNetRegressor(RegressorMixin, NeuralNet):  # type: ignore[misc]
    """A regressor of scikit-learn's kind around a module, with the squared error.

    After `fit` it has `module_`, `loss_curve_` (the mean loss of each epoch) and `n_iter_`. It
    computes in float64.

    Args:
        module: a function of the number of features and of targets that gives a module; a
            perceptron for None.
        hidden: the layers of the perceptron.
        optimizer: an optimiser's class, AdamW for None.
        lr: its learning rate.
        weight_decay: how fast weights fall to 0 by themselves.
        max_epochs: the passes over the examples.
        batch_size: the examples of a step.
        random_state: a seed, for the same fit each time.
    """

    def fit(self, X: Any, y: Any) -> Any:
        """This estimator, trained on examples (N, features) and targets (N,) or (N, targets).

        Args:
            X: the examples.
            y: the targets.
        """
        X, y = validate_data(self, X, y, dtype=np.float64, multi_output=True, y_numeric=True)
        self.single_ = y.ndim == 1
        targets = tl.from_numpy(np.array(y, np.float64).reshape(len(y), -1))
        return self.trained(X, targets, targets.shape[1], F.mse_loss)

    def predict(self, X: Any) -> Any:
        """The targets of each example.

        Args:
            X: the examples.
        """
        found = self.outputs(X).numpy()
        return found[:, 0] if self.single_ else found

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def perceptron(hidden: Sequence[int]) -> Callable[[int, int], nn.Module]:
    """What makes a perceptron of some hidden layers."""
    return lambda features, outputs: MLP(features, [*hidden, outputs])
