"""Agents, texts and tables, as scripts for PyTorch have them, trained by both libraries."""

import random
from collections import Counter, deque, namedtuple

import numpy as np
import pytest
from cases import each
from training import Scripts, assert_same_losses, draw, start

torch = pytest.importorskip("torch")
script = Scripts()
TEXT = ("the cat sat on the mat and the dog sat on the log while the cat and the dog saw "
        "the rat that sat on the hat").split()


# ---- agents --------------------------------------------------------------------------------------

@script
def deep_q(torch):
    """Q-learning on a walk, with a replay memory, a slow target network, and Huber's loss."""
    nn, F, chance = torch.nn, torch.nn.functional, random.Random(3)
    Transition = namedtuple("Transition", ("state", "action", "next_state", "reward"))

    class ReplayMemory:
        def __init__(self, capacity):
            self.memory = deque([], maxlen=capacity)

        def push(self, *args):
            self.memory.append(Transition(*args))

        def sample(self, batch_size):
            return chance.sample(self.memory, batch_size)

    def make():
        return nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 2))

    policy_net, target_net = start(torch, make()), make()
    target_net.load_state_dict(policy_net.state_dict())
    optimizer = torch.optim.AdamW(policy_net.parameters(), lr=1e-2, amsgrad=True)
    memory, losses, place = ReplayMemory(60), [], 0
    for step in range(60):
        state = torch.tensor([[place / 5, 1.0]], dtype=torch.float32)
        if chance.random() > 0.5:
            with torch.no_grad():
                action = policy_net(state).max(1).indices.view(1, 1)
        else:
            action = torch.tensor([[chance.randrange(2)]], dtype=torch.long)
        place += 1 if action.item() else -1
        done = abs(place) >= 5
        after = None if done else torch.tensor([[place / 5, 1.0]])
        memory.push(state, action, after, torch.tensor([1.0 if place >= 5 else 0.0]))
        place = 0 if done else place
        if len(memory.memory) < 20:
            continue
        batch = Transition(*zip(*memory.sample(16)))
        mask = torch.tensor(tuple(s is not None for s in batch.next_state), dtype=torch.bool)
        values = policy_net(torch.cat(batch.state)).gather(1, torch.cat(batch.action))
        next_values = torch.zeros(16)
        with torch.no_grad():
            next_values[mask] = target_net(torch.cat(
                [s for s in batch.next_state if s is not None])).max(1).values
        expected = next_values * 0.9 + torch.cat(batch.reward)
        loss = F.smooth_l1_loss(values, expected.unsqueeze(1))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_value_(policy_net.parameters(), 100)
        optimizer.step()
        target, source = target_net.state_dict(), policy_net.state_dict()
        for key in source:
            target[key] = source[key] * 0.05 + target[key] * 0.95
        target_net.load_state_dict(target)
        losses.append(loss.item())
    return losses


@script
def proximal(torch):
    """PPO: a clipped ratio, advantages by a backward recurrence, and entropy."""
    nn, rng = torch.nn, np.random.default_rng(21)
    Categorical, Normal = torch.distributions.Categorical, torch.distributions.Normal

    class ActorCritic(nn.Module):
        def __init__(self):
            super().__init__()
            self.actor = nn.Sequential(nn.Linear(3, 12), nn.Tanh(), nn.Linear(12, 2))
            self.critic = nn.Sequential(nn.Linear(3, 12), nn.Tanh(), nn.Linear(12, 1))
            self.mean, self.log_std = nn.Linear(3, 1), nn.Parameter(torch.full((1,), -0.5))

        def forward(self, x):
            return (Categorical(logits=self.actor(x)),
                    Normal(self.mean(x), self.log_std.exp().expand_as(self.mean(x))),
                    self.critic(x).squeeze(-1))

    model, losses = start(torch, ActorCritic()), []
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, eps=1e-5)
    states, pushes = draw(torch, rng, 24, 3), draw(torch, rng, 24, 1)
    actions = torch.as_tensor(rng.integers(0, 2, 24))
    rewards = (actions == (states[:, 0] > 0)).float() - pushes.squeeze(1).abs() * 0.1
    with torch.no_grad():
        dist, normal, values = model(states)
        old = dist.log_prob(actions) + normal.log_prob(pushes).sum(-1)
        advantages, last = torch.zeros_like(rewards), 0.0
        for t in reversed(range(24)):
            following = values[t + 1] if t < 23 else torch.tensor(0.0)
            last = rewards[t] + 0.9 * following - values[t] + 0.9 * 0.95 * last
            advantages[t] = last
        returns = advantages + values
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    for _ in range(10):
        dist, normal, value = model(states)
        ratio = (dist.log_prob(actions) + normal.log_prob(pushes).sum(-1) - old).exp()
        gain = torch.min(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages)
        entropy = dist.entropy() + normal.entropy().sum(-1)
        loss = -gain.mean() + 0.5 * (returns - value).pow(2).mean() - 0.01 * entropy.mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5, foreach=True)
        optimizer.step()
        losses.append(loss.item())
    return losses


@script
def soft_actor_critic(torch):
    """Two critics, a squashed normal actor, a learnt temperature, targets that follow slowly."""
    nn, rng = torch.nn, np.random.default_rng(22)
    actor, q1, q2, t1, t2 = start(
        torch, nn.Linear(2, 2), *[nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
                                  for _ in range(4)])
    log_alpha = torch.zeros(1, requires_grad=True)
    opt_pi = torch.optim.Adam(list(actor.parameters()) + [log_alpha], lr=1e-2)
    opt_q = torch.optim.Adam([*q1.parameters(), *q2.parameters()], lr=1e-2)

    def sample(state):
        mu, log_std = actor(state).chunk(2, dim=-1)
        dist = torch.distributions.Normal(mu, log_std.clamp(-5, 2).exp())
        x = dist.mean + dist.stddev * draw(torch, rng, *mu.shape)
        a = torch.tanh(x)
        return a, (dist.log_prob(x) - torch.log(1 - a.pow(2) + 1e-6)).sum(-1, keepdim=True)

    losses = []
    state = draw(torch, rng, 20, 2)
    action, after = draw(torch, rng, 20, 1).tanh(), draw(torch, rng, 20, 2)
    reward = -(state[:, :1] - action).abs()
    for _ in range(8):
        with torch.no_grad():
            a, logp = sample(after)
            both = torch.cat([after, a], 1)
            target = reward + 0.9 * (torch.min(t1(both), t2(both)) - log_alpha.exp() * logp)
        here = torch.cat([state, action], 1)
        loss_q = sum(nn.functional.mse_loss(q(here), target) for q in (q1, q2))
        opt_q.zero_grad()
        loss_q.backward()
        opt_q.step()
        a, logp = sample(state)
        both = torch.cat([state, a], 1)
        loss_pi = (log_alpha.exp().detach() * logp - torch.minimum(q1(both), q2(both))).mean()
        loss_pi = loss_pi - (log_alpha * (logp.detach() - 1.0)).mean()
        opt_pi.zero_grad()
        loss_pi.backward()
        opt_pi.step()
        with torch.no_grad():
            for slow, quick in ((t1, q1), (t2, q2)):
                for p, q in zip(slow.parameters(), quick.parameters()):
                    p.data.copy_(0.1 * q.data + (1 - 0.1) * p.data)
        losses += [loss_q.item(), loss_pi.item(), log_alpha.item()]
    return losses


# ---- texts ---------------------------------------------------------------------------------------

@script
def skip_grams(torch):
    """Vectors of words, from pairs of near words and words drawn against them."""
    nn, F, rng = torch.nn, torch.nn.functional, np.random.default_rng(23)
    vocabulary = {w: i for i, (w, _) in enumerate(Counter(TEXT).most_common())}
    words = [vocabulary[w] for w in TEXT]
    pairs = torch.tensor([(words[i], words[j]) for i in range(len(words))
                          for j in range(max(0, i - 2), min(len(words), i + 3)) if i != j])

    class SkipGram(nn.Module):
        def __init__(self, size, dim=6):
            super().__init__()
            self.u, self.v = nn.Embedding(size, dim, padding_idx=0), nn.Embedding(size, dim)
            nn.init.zeros_(self.v.weight)

        def forward(self, center, context, others):
            u = self.u(center)
            score = F.logsigmoid((u * self.v(context)).sum(-1))
            away = F.logsigmoid(-torch.bmm(self.v(others), u.unsqueeze(2)).squeeze(2)).sum(1)
            return -(score + away).mean()

    model, losses = start(torch, SkipGram(len(vocabulary))), []
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for part in pairs.split(16)[:8] * 2:
        others = torch.as_tensor(rng.integers(0, len(vocabulary), (len(part), 4)))
        loss = model(part[:, 0], part[:, 1], others)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@script
def bags_of_words(torch):
    """Texts of different lengths in one vector with offsets, classified by their mean."""
    nn = torch.nn
    vocabulary = {w: i for i, w in enumerate(sorted(set(TEXT)))}
    texts = [TEXT[i:i + 3 + i % 4] for i in range(16)]

    def collate_batch(batch):
        label_list, text_list, offsets = [], [], [0]
        for label, text in batch:
            label_list.append(label)
            processed = torch.tensor([vocabulary[w] for w in text], dtype=torch.int64)
            text_list.append(processed)
            offsets.append(processed.size(0))
        return (torch.tensor(label_list), torch.cat(text_list),
                torch.tensor(offsets[:-1]).cumsum(dim=0))

    class TextClassifier(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.EmbeddingBag(len(vocabulary), 8, mode="mean", max_norm=1.5)
            self.fc = nn.Linear(8, 2)
            self.init_weights()

        def init_weights(self):
            self.fc.weight.data.uniform_(-0.5, 0.5)
            self.fc.bias.data.zero_()

        def forward(self, text, offsets):
            return self.fc(self.embedding(text, offsets))

    loader = torch.utils.data.DataLoader(
        [(int("cat" in text), text) for text in texts], batch_size=5, collate_fn=collate_batch)
    model, losses = start(torch, TextClassifier()), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1.0, gamma=0.5)
    for _ in range(3):
        for label, text, offsets in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(text, offsets), label)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            optimizer.step()
            losses.append(loss.item())
        scheduler.step()
    return losses


@script
def conditional_field(torch):
    """Tags by an LSTM and a field over them: all paths by logsumexp, the best by Viterbi."""
    nn = torch.nn
    START, STOP, count = 3, 4, 5

    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(20, 5)
            self.lstm = nn.LSTM(5, 4, num_layers=1, bidirectional=True)
            self.hidden2tag = nn.Linear(8, count)
            self.transitions = nn.Parameter(torch.zeros(count, count))
            self.transitions.data[START, :] = -10000
            self.transitions.data[:, STOP] = -10000

        def features(self, sentence):
            out, _ = self.lstm(self.embed(sentence).view(len(sentence), 1, -1))
            return self.hidden2tag(out.view(len(sentence), -1))

        def all_paths(self, feats):
            alphas = torch.full((1, count), -10000.0)
            alphas[0][START] = 0.0
            for feat in feats:
                alphas = torch.logsumexp(
                    alphas + self.transitions + feat.unsqueeze(1), dim=1).view(1, -1)
            return torch.logsumexp(alphas + self.transitions[STOP], dim=1).squeeze()

        def this_path(self, feats, tags):
            score = torch.zeros(1)
            tags = torch.cat([torch.tensor([START], dtype=torch.long), tags])
            for i, feat in enumerate(feats):
                score = score + self.transitions[tags[i + 1], tags[i]] + feat[tags[i + 1]]
            return score + self.transitions[STOP, tags[-1]]

        def viterbi(self, feats):
            scores, back = torch.full((count,), -10000.0), []
            scores[START] = 0
            for feat in feats:
                best, which = (scores + self.transitions).max(dim=1)
                back.append(which)
                scores = best + feat
            best = int(torch.argmax(scores + self.transitions[STOP]))
            path = [best]
            for which in reversed(back):
                best = which[best].item()
                path.append(best)
            return scores.max().item(), path[::-1][1:]

    rng = np.random.default_rng(24)
    data = [(torch.as_tensor(rng.integers(0, 20, n)), torch.as_tensor(rng.integers(0, 3, n)))
            for n in (4, 6, 3)]
    model, losses = start(torch, Tagger()), []
    model.transitions.data[START, :] = -10000
    model.transitions.data[:, STOP] = -10000
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, weight_decay=1e-4)
    for _ in range(3):
        for sentence, tags in data:
            model.zero_grad()
            feats = model.features(sentence)
            loss = model.all_paths(feats) - model.this_path(feats, tags)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    with torch.no_grad():
        score, path = model.viterbi(model.features(data[0][0]))
    return [*losses, score, *path]


@script
def recurrence_by_hand(torch):
    """A recurrent cell by hand, one letter at a time, its step written as an update of data."""
    nn = torch.nn

    class RNN(nn.Module):
        def __init__(self, input_size, hidden_size, output_size):
            super().__init__()
            self.hidden_size = hidden_size
            self.i2h = nn.Linear(input_size + hidden_size, hidden_size)
            self.h2o = nn.Linear(hidden_size, output_size)
            self.softmax = nn.LogSoftmax(dim=1)

        def forward(self, input, hidden):
            hidden = torch.tanh(self.i2h(torch.cat((input, hidden), 1)))
            return self.softmax(self.h2o(hidden)), hidden

        def initHidden(self):
            return torch.zeros(1, self.hidden_size)

    letters = sorted(set("".join(TEXT)))

    def line_to_tensor(line):
        tensor = torch.zeros(len(line), 1, len(letters))
        for i, letter in enumerate(line):
            tensor[i][0][letters.index(letter)] = 1
        return tensor

    rnn, criterion, losses = start(torch, RNN(len(letters), 8, 2)), nn.NLLLoss(), []
    for word in TEXT[:12]:
        hidden = rnn.initHidden()
        rnn.zero_grad()
        for letter in line_to_tensor(word):
            output, hidden = rnn(letter, hidden)
        loss = criterion(output, torch.LongTensor([len(word) % 2]))
        loss.backward()
        for p in rnn.parameters():
            p.data.add_(p.grad.data, alpha=-0.1)
        top_n, top_i = output.topk(1)
        losses += [loss.item(), top_n[0].item(), top_i[0][0].item()]
    return losses


# ---- tables and graphs ---------------------------------------------------------------------------

@script
def factors(torch):
    """Ratings as products of vectors with biases; embeddings of categories beside numbers."""
    nn, rng = torch.nn, np.random.default_rng(25)

    class Recommender(nn.Module):
        def __init__(self, users=9, items=7, dim=4):
            super().__init__()
            self.emb = nn.ModuleList([nn.Embedding(n, dim) for n in (users, items)])
            self.bias = nn.ModuleList([nn.Embedding(n, 1) for n in (users, items)])
            self.deep = nn.Sequential(nn.Linear(2 * dim + 2, 8), nn.BatchNorm1d(8), nn.SELU(),
                                      nn.Linear(8, 1))

        def forward(self, cat, cont):
            u, v = (e(cat[:, i]) for i, e in enumerate(self.emb))
            wide = torch.einsum("bd,bd->b", u, v) + sum(
                b(cat[:, i]).squeeze(1) for i, b in enumerate(self.bias))
            return torch.sigmoid(wide + self.deep(torch.cat([u, v, cont], 1)).flatten()) * 5

    cat = torch.as_tensor(np.stack([rng.integers(0, 9, 40), rng.integers(0, 7, 40)], 1))
    cont = draw(torch, rng, 40, 2)
    ratings = torch.as_tensor(rng.uniform(1, 5, 40)).float()
    model, losses = start(torch, Recommender()), []
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.05, lr_decay=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=12,
                                                   cycle_momentum=False)
    for _ in range(12):
        optimizer.zero_grad(set_to_none=False)
        loss = nn.L1Loss()(model(cat, cont), ratings)
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return losses


@script
def graph_attention(torch):
    """Attention between neighbours, by edges: sums and maxima over the edges of each node."""
    nn, F, rng = torch.nn, torch.nn.functional, np.random.default_rng(26)

    class GAT(nn.Module):
        def __init__(self, inner, outer):
            super().__init__()
            self.W = nn.Parameter(torch.empty(inner, outer))
            self.a = nn.Parameter(torch.empty(2 * outer, 1))
            nn.init.xavier_uniform_(self.W, gain=nn.init.calculate_gain("leaky_relu", 0.2))
            nn.init.xavier_uniform_(self.a, gain=1.414)

        def forward(self, x, edges):
            h = x @ self.W
            source, target = edges
            e = F.leaky_relu(torch.cat([h[source], h[target]], 1) @ self.a, 0.2).squeeze(1)
            top = torch.full((len(x),), -1e9).scatter_reduce(0, target, e, reduce="amax")
            e = torch.exp(e - top[target])
            total = torch.zeros(len(x)).index_add(0, target, e)
            alpha = e / (total[target] + 1e-16)
            return torch.zeros_like(h).scatter_add_(
                0, target[:, None].expand(-1, h.size(1)), alpha[:, None] * h[source])

    edges = torch.as_tensor(rng.integers(0, 12, (2, 40)))
    x, labels = draw(torch, rng, 12, 5), torch.as_tensor(rng.integers(0, 3, 12))
    layers, losses = start(torch, nn.ModuleList([GAT(5, 8), GAT(8, 3)])), []
    optimizer = torch.optim.Adamax(layers.parameters(), lr=2e-2, weight_decay=5e-4)
    for _ in range(10):
        out = layers[1](F.elu(layers[0](x, edges)), edges)
        loss = F.nll_loss(F.log_softmax(out, 1), labels, ignore_index=2)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@script
def experts(torch):
    """Experts of whom two are asked by a gate, and low-rank additions to a frozen, tied layer."""
    nn, F, rng = torch.nn, torch.nn.functional, np.random.default_rng(27)

    class LoRA(nn.Module):
        def __init__(self, layer, rank=2):
            super().__init__()
            self.layer = layer.requires_grad_(False)
            self.A = nn.Parameter(torch.zeros(rank, layer.in_features))
            self.B = nn.Parameter(torch.zeros(layer.out_features, rank))

        def forward(self, x):
            return self.layer(x) + F.linear(F.linear(x, self.A), self.B)

    class MoE(nn.Module):
        def __init__(self, dim=6, count=4):
            super().__init__()
            self.embed, self.out = nn.Embedding(10, dim), nn.Linear(dim, 10, bias=False)
            self.out.weight = self.embed.weight
            self.gate = nn.Linear(dim, count, bias=False)
            self.experts = nn.ModuleList(
                nn.Sequential(LoRA(nn.Linear(dim, dim)), nn.SiLU()) for _ in range(count))

        def forward(self, tokens):
            x = self.embed(tokens).flatten(0, 1)
            weights, chosen = torch.topk(self.gate(x), 2)
            weights = F.softmax(weights, dim=1, dtype=torch.float)
            results = torch.zeros_like(x)
            for i, expert in enumerate(self.experts):
                batch_idx, nth = torch.where(chosen == i)
                if len(batch_idx):
                    results[batch_idx] += weights[batch_idx, nth, None] * expert(x[batch_idx])
            return self.out(x + results)

    tokens = torch.as_tensor(rng.integers(0, 10, (4, 9)))
    model, losses = start(torch, MoE()), []
    learnt = [p for p in model.parameters() if p.requires_grad]
    assert len(learnt) == 10 and model.out.weight is model.embed.weight
    optimizer = torch.optim.AdamW(learnt, lr=1e-2)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda i: min(1.0, (i + 1) / 4))
    for _ in range(8):
        loss = F.cross_entropy(model(tokens[:, :-1]), tokens[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return losses


@each("script", script, ids=lambda script: script.__name__)
def test_a_script_reaches_the_same_losses(script):
    assert_same_losses(script, torch)
