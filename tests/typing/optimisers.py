"""Optimisers and schedules as training scripts use them."""

from typing import Any, assert_type

import tensorlib as tl
from tensorlib import Tensor, nn, optim
from tensorlib.optim import Adam, Optimizer, lr_scheduler
from tensorlib.optim.lr_scheduler import CosineAnnealingLR, LRScheduler

model = nn.Linear(2, 3)
optimizer = optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95))
groups = optim.SGD([{"params": [model.weight], "weight_decay": 0.1}, {"params": [model.bias]}],
                   lr=0.1, momentum=0.9)
named: Optimizer = Adam(model.named_parameters(), lr=tl.tensor(0.1))
schedule: LRScheduler = CosineAnnealingLR(optimizer, T_max=10)
warm = lr_scheduler.LambdaLR(groups, lambda step: min(1.0, step / 10))
plateau = lr_scheduler.ReduceLROnPlateau(named, patience=3)
x = tl.ones(4, 2)


def closure() -> Tensor:
    optimizer.zero_grad()
    loss: Tensor = model(x).square().mean()
    loss.backward()
    return loss


optimizer.step(closure)
schedule.step()
plateau.step(closure())
state: dict[str, Any] = optimizer.state_dict()
optimizer.load_state_dict(state)
assert_type(optimizer.param_groups, list[dict[str, Any]])
handle = optimizer.register_step_post_hook(lambda *args: None)
handle.remove()
averaged = optim.swa_utils.AveragedModel(
    model, multi_avg_fn=optim.swa_utils.get_ema_multi_avg_fn(0.99))
averaged.update_parameters(model)
print(averaged(x), schedule.get_last_lr())
