"""Training scripts for sequences, in the manner of PyTorch's tutorials, run by both libraries.

Each takes the library as `torch`, and gives its losses. They begin with the same parameters.
"""

import math

import numpy as np
import pytest
from training import Scripts, assert_same_losses, draw, start

torch = pytest.importorskip("torch")
script = Scripts()
TEXT = "a recurrent network reads one letter after the other, and says which letter comes next. "


def encoded(torch, text):
    letters = sorted(set(text))
    return torch.tensor([letters.index(letter) for letter in text]), len(letters)


def losses_of(steps, optimizer, compute, after=lambda: None):
    """The losses of some steps of an optimiser; `after`: what is done to gradients before each."""
    losses = []
    for step in range(steps):
        optimizer.zero_grad()
        loss = compute(step)
        loss.backward()
        after()
        optimizer.step()
        losses.append(loss.item())
    return losses


# ---- recurrent -----------------------------------------------------------------------------------

@script
def letters(torch):
    """A model of letters: an LSTM over one-hot vectors, trained on windows of a text."""
    nn, F = torch.nn, torch.nn.functional
    text, count = encoded(torch, TEXT)

    class Letters(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(count, 24, batch_first=True)
            self.out = nn.Linear(24, count)

        def forward(self, x, state=None):
            y, state = self.lstm(F.one_hot(x, count).float(), state)
            return self.out(y), state

    model = start(torch, Letters())

    def compute(step):
        rows = torch.stack([text[i:i + 21] for i in range(step, step + 40, 8)])
        scores, _ = model(rows[:, :-1])
        return F.cross_entropy(scores.flatten(0, 1), rows[:, 1:].flatten())
    return losses_of(12, torch.optim.Adam(model.parameters(), lr=0.01), compute)


@script
def words(torch):
    """A model of words: an embedding and two LSTM layers, whose state is carried on and cut."""
    nn = torch.nn
    vocabulary = sorted(set(TEXT.split()))
    ids = torch.tensor([vocabulary.index(word) for word in (TEXT * 8).split()])
    batches = ids[:104].reshape(4, 26).t()

    class Words(nn.Module):
        def __init__(self):
            super().__init__()
            self.drop = nn.Dropout(0.0)
            self.encoder = nn.Embedding(len(vocabulary), 16)
            self.rnn = nn.LSTM(16, 16, 2, dropout=0.0)
            self.decoder = nn.Linear(16, len(vocabulary))
            self.decoder.weight = self.encoder.weight          # tied

        def forward(self, x, hidden):
            out, hidden = self.rnn(self.drop(self.encoder(x)), hidden)
            return nn.functional.log_softmax(self.decoder(self.drop(out)).flatten(0, 1), 1), hidden

        def init_hidden(self, size):
            weight = next(self.parameters())
            return weight.new_zeros(2, size, 16), weight.new_zeros(2, size, 16)

    model = start(torch, Words())
    criterion = nn.NLLLoss()
    hidden = model.init_hidden(4)
    losses = []
    for _ in range(3):
        for i in range(0, 25, 5):
            model.zero_grad()
            hidden = tuple(h.detach() for h in hidden)
            output, hidden = model(batches[i:i + 5], hidden)
            loss = criterion(output, batches[i + 1:i + 6].flatten())
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.25)
            with torch.no_grad():
                for p in model.parameters():
                    p.add_(p.grad, alpha=-5.0)
            losses.append(loss.item())
    return losses


@script
def waves(torch):
    """Sines predicted by two LSTM cells, trained by LBFGS with closures, in float64."""
    nn = torch.nn
    waves = torch.tensor([[math.sin((t + 7 * k) / 3) for t in range(24)] for k in range(5)],
                         dtype=torch.float64)

    class Sequence(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm1, self.lstm2 = nn.LSTMCell(1, 11), nn.LSTMCell(11, 11)
            self.linear = nn.Linear(11, 1)

        def forward(self, input, future=0):
            outputs = []
            h1, c1, h2, c2 = (torch.zeros(input.size(0), 11, dtype=torch.double)
                              for _ in range(4))
            for part in input.split(1, dim=1):
                h1, c1 = self.lstm1(part, (h1, c1))
                h2, c2 = self.lstm2(h1, (h2, c2))
                outputs.append(self.linear(h2))
            for _ in range(future):
                h1, c1 = self.lstm1(outputs[-1], (h1, c1))
                h2, c2 = self.lstm2(h1, (h2, c2))
                outputs.append(self.linear(h2))
            return torch.cat(outputs, dim=1)

    model = start(torch, Sequence()).double()
    criterion, losses = nn.MSELoss(), []
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=3)
    for _ in range(3):
        def closure():
            optimizer.zero_grad()
            loss = criterion(model(waves[1:, :-1]), waves[1:, 1:])
            loss.backward()
            losses.append(loss.item())
            return loss
        optimizer.step(closure)
    with torch.no_grad():
        ahead = model(waves[:1, :-1], future=4)
    return [*losses[:8], *ahead[0, -4:].tolist()]


@script
def tagger(torch):
    """Names told apart by their last state: packed sequences through a bidirectional GRU."""
    nn = torch.nn
    rnn = nn.utils.rnn
    names = [("anna", 0), ("bo", 1), ("clara", 0), ("dirk", 1), ("ella", 0), ("fritz", 1)]
    rows = [torch.tensor([ord(letter) - 97 for letter in name]) for name, _ in names]
    labels = torch.tensor([label for _, label in names])
    lengths = torch.tensor([len(row) for row in rows])
    padded = rnn.pad_sequence(rows, batch_first=True)
    embedding, gru, head = start(torch, nn.Embedding(26, 8), nn.GRU(
        8, 10, num_layers=2, bidirectional=True, batch_first=True), nn.Linear(20, 2))
    params = [p for module in (embedding, gru, head) for p in module.parameters()]

    def compute(_):
        packed = rnn.pack_padded_sequence(embedding(padded), lengths, batch_first=True,
                                          enforce_sorted=False)
        out, last = gru(packed)
        summed = rnn.pad_packed_sequence(out, batch_first=True)[0].sum(1)
        scores = head(torch.cat([last[-2], last[-1]], 1) + 0.1 * summed)
        return nn.functional.cross_entropy(scores, labels)
    return losses_of(12, torch.optim.SGD(params, lr=0.2, momentum=0.9), compute)


@script
def translation(torch):
    """Sequence to sequence: a GRU reads, another writes and attends to what was read."""
    nn, F = torch.nn, torch.nn.functional
    source = torch.tensor([[3, 4, 5, 1], [6, 3, 7, 1], [4, 4, 6, 1]])
    target = torch.tensor([[5, 4, 3, 1], [7, 3, 6, 1], [6, 4, 4, 1]])

    class Attention(nn.Module):
        def __init__(self, size):
            super().__init__()
            self.of_query, self.of_keys = nn.Linear(size, size), nn.Linear(size, size)
            self.score = nn.Linear(size, 1)

        def forward(self, query, keys):
            scores = self.score(torch.tanh(self.of_query(query) + self.of_keys(keys)))
            weights = F.softmax(scores.squeeze(2).unsqueeze(1), dim=-1)
            return torch.bmm(weights, keys), weights

    class Decoder(nn.Module):
        def __init__(self, size):
            super().__init__()
            self.embedding = nn.Embedding(8, size)
            self.attention = Attention(size)
            self.gru = nn.GRU(2 * size, size, batch_first=True)
            self.out = nn.Linear(size, 8)

        def forward(self, keys, hidden, target):
            token = torch.zeros(len(keys), 1, dtype=torch.long)
            outputs = []
            for i in range(target.size(1)):
                context, _ = self.attention(hidden.permute(1, 0, 2), keys)
                joined = torch.cat((self.embedding(token), context), dim=2)
                output, hidden = self.gru(joined, hidden)
                outputs.append(self.out(output))
                token = target[:, i].unsqueeze(1)               # teacher forcing
            return F.log_softmax(torch.cat(outputs, dim=1), dim=-1)

    embedding, encoder, decoder = start(torch, nn.Embedding(8, 12), nn.GRU(
        12, 12, batch_first=True), Decoder(12))
    params = [p for module in (embedding, encoder, decoder) for p in module.parameters()]

    def compute(_):
        keys, hidden = encoder(embedding(source))
        scores = decoder(keys, hidden, target)
        return nn.NLLLoss()(scores.view(-1, 8), target.view(-1))
    return losses_of(10, torch.optim.Adam(params, lr=0.01), compute)


# ---- attention -----------------------------------------------------------------------------------

@script
def gpt(torch):
    """A small GPT: AdamW, no decay of biases and gains, a schedule and clipped gradients."""
    nn, F = torch.nn, torch.nn.functional
    text, count = encoded(torch, TEXT * 2)
    context, size, heads = 16, 16, 2

    class CausalSelfAttention(nn.Module):
        def __init__(self):
            super().__init__()
            self.c_attn, self.c_proj = nn.Linear(size, 3 * size), nn.Linear(size, size)

        def forward(self, x):
            b, t, c = x.size()
            q, k, v = self.c_attn(x).split(size, dim=2)
            q, k, v = (y.view(b, t, heads, c // heads).transpose(1, 2) for y in (q, k, v))
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=None, is_causal=True)
            return self.c_proj(y.transpose(1, 2).contiguous().view(b, t, c))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln_1, self.ln_2 = nn.LayerNorm(size), nn.LayerNorm(size)
            self.attn = CausalSelfAttention()
            self.mlp = nn.Sequential(nn.Linear(size, 4 * size), nn.GELU(approximate="tanh"),
                                     nn.Linear(4 * size, size), nn.Dropout(0.0))

        def forward(self, x):
            x = x + self.attn(self.ln_1(x))
            return x + self.mlp(self.ln_2(x))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.transformer = nn.ModuleDict({
                "wte": nn.Embedding(count, size), "wpe": nn.Embedding(context, size),
                "h": nn.ModuleList([Block() for _ in range(2)]), "ln_f": nn.LayerNorm(size)})
            self.lm_head = nn.Linear(size, count, bias=False)

        def forward(self, idx, targets):
            pos = torch.arange(0, idx.size(1), dtype=torch.long)
            x = self.transformer.wte(idx) + self.transformer.wpe(pos)
            for block in self.transformer.h:
                x = block(x)
            logits = self.lm_head(self.transformer.ln_f(x))
            return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1),
                                   ignore_index=-1)

    model = start(torch, GPT())
    params = dict(model.named_parameters())
    groups = [{"params": [p for p in params.values() if p.dim() >= 2], "weight_decay": 0.1},
              {"params": [p for p in params.values() if p.dim() < 2], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=3e-3, betas=(0.9, 0.95))

    def compute(step):
        for group in optimizer.param_groups:
            group["lr"] = 3e-3 * min(1.0, (step + 1) / 4)
        places = [(step * 5 + 23 * k) % (len(text) - context - 1) for k in range(4)]
        rows = torch.stack([text[i:i + context + 1] for i in places])
        return model(rows[:, :-1].contiguous(), rows[:, 1:].contiguous())
    return losses_of(12, optimizer, compute,
                     lambda: nn.utils.clip_grad_norm_(model.parameters(), 1.0))


@script
def encoder(torch):
    """Sequences with padding classified by a transformer's encoder."""
    nn = torch.nn
    rng = np.random.default_rng(3)
    x = draw(torch, rng, 8, 6, 8)
    lengths = torch.tensor(rng.integers(2, 7, 8))
    hidden = torch.arange(6).unsqueeze(0) >= lengths.unsqueeze(1)
    labels = (lengths > 4).long()
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    model, head = start(torch, nn.TransformerEncoder(layer, 2, enable_nested_tensor=False),
                        nn.Linear(8, 2))

    def compute(_):
        out = model(x, src_key_padding_mask=hidden)
        shown = (~hidden).unsqueeze(-1).to(out.dtype)
        return nn.functional.cross_entropy(head((out * shown).sum(1) / shown.sum(1)), labels)
    params = [*model.parameters(), *head.parameters()]
    return losses_of(10, torch.optim.RAdam(params, lr=0.01), compute)


@script
def machine(torch):
    """A transformer from sequence to sequence, with causal masks."""
    nn = torch.nn
    source = torch.tensor([[3, 4, 5, 6], [6, 5, 3, 4], [4, 4, 3, 5]])
    target = source.flip(1)
    model, embedding, head = start(torch, nn.Transformer(
        8, 2, 1, 1, 16, dropout=0.0, activation="gelu", batch_first=True, norm_first=True),
        nn.Embedding(8, 8), nn.Linear(8, 8))
    begin = torch.zeros(3, 1, dtype=torch.long)
    mask = nn.Transformer.generate_square_subsequent_mask(4)
    params = [p for module in (model, embedding, head) for p in module.parameters()]

    def compute(_):
        given = torch.cat([begin, target[:, :-1]], 1)
        out = model(embedding(source), embedding(given), tgt_mask=mask, tgt_is_causal=True)
        return nn.functional.cross_entropy(head(out).transpose(1, 2), target, label_smoothing=0.1)
    return losses_of(10, torch.optim.NAdam(params, lr=0.01), compute)


# ---- convolutions --------------------------------------------------------------------------------

@script
def causal_convolutions(torch):
    """A series predicted by dilated convolutions that see only the past, with weight norm."""
    nn, F = torch.nn, torch.nn.functional
    weight_norm = nn.utils.parametrizations.weight_norm

    class Chomp1d(nn.Module):
        def __init__(self, chomp):
            super().__init__()
            self.chomp = chomp

        def forward(self, x):
            return x[:, :, :-self.chomp].contiguous()

    class TemporalBlock(nn.Module):
        def __init__(self, inner, outer, dilation):
            super().__init__()
            self.net = nn.Sequential(
                weight_norm(nn.Conv1d(inner, outer, 3, padding=2 * dilation, dilation=dilation)),
                Chomp1d(2 * dilation), nn.ReLU(), nn.Dropout(0.0))
            self.downsample = nn.Conv1d(inner, outer, 1) if inner != outer else None

        def forward(self, x):
            out = self.net(x)
            res = x if self.downsample is None else self.downsample(x)
            return F.relu(out + res)

    t = torch.arange(60, dtype=torch.float32)
    series = (torch.sin(t / 4) + 0.5 * torch.cos(t / 9)).reshape(1, 1, -1)
    model = start(torch, nn.Sequential(TemporalBlock(1, 4, 1), TemporalBlock(4, 4, 2),
                                       TemporalBlock(4, 4, 4), nn.Conv1d(4, 1, 1)))
    optimizer, losses = torch.optim.RAdam(model.parameters(), lr=2e-2), []
    schedule = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=4, T_mult=2)
    for _ in range(12):
        loss = F.mse_loss(model(series[..., :-1]), series[..., 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return losses


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("script", script, ids=lambda script: script.__name__)
def test_a_script_reaches_the_same_losses(script):
    assert_same_losses(script, torch)
