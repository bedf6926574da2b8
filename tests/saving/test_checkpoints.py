"""Training that is stopped and goes on from a checkpoint makes the bits of one that was not."""

import pytest

import tensorlib as tl
from tensorlib import nn, optim
from tensorlib.utils.data import DataLoader, TensorDataset

STEPS_PER_EPOCH = 5


class Training:
    """Everything that a run is made of; dropout and shuffling draw random numbers."""

    def __init__(self, workers=0):
        tl.manual_seed(0)
        x = tl.randn(40, 6, generator=tl.Generator().manual_seed(1))
        data = TensorDataset(x, (x.sum(1) > 0).long())
        self.model = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.3),
                                   nn.Linear(16, 2))
        self.optimizer = optim.AdamW(self.model.parameters(), lr=0.01)
        self.scheduler = optim.lr_scheduler.OneCycleLR(self.optimizer, 0.1, total_steps=40)
        self.loader = DataLoader(data, 8, shuffle=True, num_workers=workers)
        self.epoch, self.losses = 0, []

    def parts(self):
        return {"model": self.model, "optimizer": self.optimizer, "scheduler": self.scheduler,
                "loader": self.loader}

    def save(self, path):
        tl.save({**{name: part.state_dict() for name, part in self.parts().items()},
                 "epoch": self.epoch, "random": tl.get_rng_state()}, path)

    def load(self, path):
        state = tl.load(path)
        for name, part in self.parts().items():
            part.load_state_dict(state[name])
        self.epoch = state["epoch"]
        tl.set_rng_state(state["random"])

    def run(self, epochs, stop=None):
        """Trains up to so many epochs; `stop` is (step, path): saves there and ends."""
        steps = 0
        while self.epoch < epochs:
            for x, y in self.loader:
                loss = nn.functional.cross_entropy(self.model(x), y)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                self.scheduler.step()
                self.losses.append(loss.item())
                steps += 1
                if stop and steps == stop[0]:
                    self.save(stop[1])
                    return self
            self.epoch += 1
        return self


@pytest.mark.parametrize("stop, workers", [(3, 0), (STEPS_PER_EPOCH, 0), (8, 0), (8, 2)])
def test_going_on_makes_the_same_bits(stop, workers, tmp_path):
    whole = Training().run(3)
    first = Training(workers).run(3, (stop, tmp_path / "x"))
    tl.manual_seed(99)
    second = Training(workers)
    second.load(tmp_path / "x")
    second.run(3)
    assert first.losses + second.losses == whole.losses
    for name, value in whole.model.state_dict().items():
        assert (value == second.model.state_dict()[name]).all()
