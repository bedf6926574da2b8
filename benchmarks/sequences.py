"""Training steps of models of sequences: recurrent layers, transformers and small GPTs."""

from benchmarks.case import case, prepared, uniform


def recurrent_step(lib, kind, batch=16, steps=32, inputs=64, hidden=64):
    """A pass forward and back through one layer; the step returns the gradient of a weight."""
    model = prepared(lib, getattr(lib.nn, kind)(inputs, hidden))
    x = uniform(lib, steps, batch, inputs)

    def step():
        model.zero_grad()
        out, _ = model(x)
        out.sum().backward()
        return model.weight_hh_l0.grad
    return step


for kind in ("LSTM", "GRU", "RNN"):
    case("sequences", f"{kind} of 64, 16 x 32", target=3)(
        lambda lib, kind=kind: recurrent_step(lib, kind))


# ---- layers of transformers ----------------------------------------------------------------------

def encoder_layer(lib, size, heads):
    """Attention and two linear layers, the inner one four times as wide."""
    return prepared(lib, lib.nn.TransformerEncoderLayer(size, heads, 4 * size, dropout=0.0,
                                                        batch_first=True))


def encoder_step(lib, batch, context, size, heads):
    """A pass forward and back; the step returns the gradient of a weight."""
    model, x = encoder_layer(lib, size, heads), uniform(lib, batch, context, size)
    g = uniform(lib, batch, context, size, seed=1)

    def step():
        model.zero_grad()
        model(x).backward(g)
        return model.linear1.weight.grad
    return step


def encoder_use(lib, batch, context, size, heads):
    """A pass forward, of a model that is only used."""
    model, x = encoder_layer(lib, size, heads).eval(), uniform(lib, batch, context, size)

    def use():
        with lib.no_grad():
            return model(x)
    return use


def attention_use(lib, batch, context, size, heads):
    """Attention of a sequence to itself, of a model that is only used."""
    model = prepared(lib, lib.nn.MultiheadAttention(size, heads, batch_first=True)).eval()
    x = uniform(lib, batch, context, size)

    def use():
        with lib.no_grad():
            return model(x, x, x, need_weights=False)[0]
    return use


for sizes in ((16, 32, 64, 4), (8, 64, 128, 4), (4, 128, 256, 8)):
    name = "of {2}, {0} x {1}".format(*sizes)
    case("sequences", f"encoder layer {name}", target=1.1)(
        lambda lib, sizes=sizes: encoder_step(lib, *sizes))
    case("sequences", f"encoder layer {name}, used", target=1.0)(
        lambda lib, sizes=sizes: encoder_use(lib, *sizes))
case("sequences", "attention of 128, 8 x 64, used", target=1.0)(
    lambda lib: attention_use(lib, 8, 64, 128, 4))


# ---- GPT -----------------------------------------------------------------------------------------

def gpt(lib, letters, context, size, heads, layers):
    """A GPT of the usual kind: norms before attention and before two linear layers."""
    nn, F = lib.nn, lib.nn.functional

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.together, self.out = nn.Linear(size, 3 * size), nn.Linear(size, size)

        def forward(self, x):
            b, t, _ = x.shape
            q, k, v = (part.view(b, t, heads, size // heads).transpose(1, 2)
                       for part in self.together(x).split(size, 2))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.out(y.transpose(1, 2).contiguous().view(b, t, size))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.attention = nn.LayerNorm(size), Attention()
            self.norm2, self.inner = nn.LayerNorm(size), nn.Sequential(
                nn.Linear(size, 4 * size), nn.GELU(), nn.Linear(4 * size, size))

        def forward(self, x):
            x = x + self.attention(self.norm1(x))
            return x + self.inner(self.norm2(x))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.letters, self.places = nn.Embedding(letters, size), nn.Embedding(context, size)
            self.blocks = nn.Sequential(*(Block() for _ in range(layers)))
            self.norm, self.head = nn.LayerNorm(size), nn.Linear(size, letters, bias=False)

        def forward(self, x, y):
            x = self.letters(x) + self.places(lib.arange(x.shape[1]))
            scores = self.head(self.norm(self.blocks(x)))
            return F.cross_entropy(scores.view(-1, letters), y.view(-1))
    return prepared(lib, GPT())


def gpt_step(lib, batch, context, size, heads, layers, letters=65):
    """A step of AdamW on one batch of letters, which returns the loss."""
    model = gpt(lib, letters, context, size, heads, layers)
    optimizer = lib.optim.AdamW(model.parameters(), lr=0.0)     # the loss stays the same
    x = (lib.arange(batch * context) * 7 % letters).view(batch, context)
    y = (x + 7) % letters

    def step():
        optimizer.zero_grad()
        loss = model(x, y)
        loss.backward()
        optimizer.step()
        return loss.detach()
    return step


@case("sequences", "GPT 2 layers of 32, 4 x 16", target=5)
def small_gpt(lib):
    return gpt_step(lib, 4, 16, 32, 4, 2)


@case("sequences", "GPT 4 layers of 128, 8 x 64", target=1.2, size="large")
def larger_gpt(lib):
    return gpt_step(lib, 8, 64, 128, 4, 4)
