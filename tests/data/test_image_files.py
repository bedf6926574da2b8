"""Datasets in files: MNIST, CIFAR and folders as people have them, and files that are damaged."""

import gzip
import importlib
import pickle
import tarfile

import numpy as np
import pytest
from cases import each

import tensorlib as tl
from tensorlib.utils.data import DataLoader, Subset, datasets, transforms
from tensorlib.utils.data.datasets import read_idx
from tensorlib.utils.data.datasets.cifar import PIXELS
from tensorlib.utils.data.datasets.folder import read_image

RNG = np.random.default_rng(0)
IMAGES, LABELS = RNG.integers(0, 256, (7, 28, 28), dtype=np.uint8), np.arange(7, dtype=np.uint8)


def idx(array, code=8):
    """The bytes of an idx file."""
    big = array.astype(array.dtype.newbyteorder(">"))
    return bytes([0, 0, code, array.ndim]) + np.array(array.shape, ">u4").tobytes() + big.tobytes()


def written(folder, images=None, labels=None, packed=False, stem="train", dot="-"):
    """The two files of MNIST in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for kind, content in (("images-idx3", images or idx(IMAGES)), ("labels-idx1",
                                                                   labels or idx(LABELS))):
        name = f"{stem}-{kind}-ubyte".replace("s-idx", f"s{dot}idx") + ".gz" * packed
        (folder / name).write_bytes(gzip.compress(content) if packed else content)


# ---- idx -----------------------------------------------------------------------------------------

@each("dtype, code", [
    ("uint8", 8), ("int8", 9), ("int16", 11), ("int32", 12), ("float32", 13), ("float64", 14)])
@pytest.mark.parametrize("shape", [(3, 4), (5,), (0, 2), (2, 1, 2, 3), ()])
def test_an_idx_file_gives_its_elements(tmp_path, dtype, code, shape):
    array = np.asarray(100 * RNG.random(shape)).astype(dtype)
    (tmp_path / "a").write_bytes(idx(array, code))
    (tmp_path / "b").write_bytes(gzip.compress(idx(array, code)))
    for name in "ab":
        found = read_idx(tmp_path / name)
        assert found.dtype.name == dtype and np.array_equal(found.numpy(), array)
    found += 1                                    # the memory is the tensor's own


@pytest.mark.parametrize("content, said", [
    (b"", "ends after 0 of 2"), (b"\0\0\x08", "ends after 1 of 2"),
    (b"PK\x03\x04", "not an idx file"), (bytes([0, 0, 7, 1, 0, 0, 0, 0]), "not an idx file"),
    (bytes([0, 0, 8, 200]), "not an idx file"),
    (idx(LABELS)[:-1], "ends after 6 of 7"), (idx(LABELS) + b"1", "more in it"),
    (bytes([0, 0, 8, 3]) + b"\xff" * 12 + b"12", "ends after 2 of 79,228"),
    (gzip.compress(idx(LABELS), mtime=0)[:-3], "damaged"),
    (gzip.compress(idx(LABELS), mtime=0)[:12], "damaged"),
    (b"\x1f\x8bnonsense", "damaged"),
])
def test_a_damaged_idx_file_is_refused_whatever_it_says(tmp_path, content, said):
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(ValueError, match=f"read_idx: .*{said}"):
        read_idx(tmp_path / "a")


# ---- MNIST ---------------------------------------------------------------------------------------

@pytest.mark.parametrize("place", [(), ("MNIST", "raw")])
@pytest.mark.parametrize("packed, dot", [(False, "-"), (True, "-"), (False, ".")])
def test_mnist_is_found_where_people_have_it(tmp_path, place, packed, dot):
    written(tmp_path.joinpath(*place), packed=packed, dot=dot)
    found = datasets.MNIST(tmp_path, download=True)
    assert np.array_equal(found.data.numpy(), IMAGES) and found.targets.dtype == tl.int64
    image, label = found[3]
    assert image.shape == (1, 28, 28) and image.dtype == tl.uint8 and label == 3
    assert type(label) is int and len(found) == 7 and found.class_to_idx["9 - nine"] == 9
    assert "Split: Train" in repr(found) and found[-1][1] == 6


def test_the_test_part_and_what_is_not_there(tmp_path):
    written(tmp_path, stem="t10k")
    assert len(datasets.MNIST(str(tmp_path), train=False)) == 7
    with pytest.raises(RuntimeError, match="MNIST: Dataset not found: train-images-idx3-ubyte"):
        datasets.MNIST(tmp_path)
    with pytest.raises(RuntimeError, match="it downloads nothing"):
        datasets.FashionMNIST(tmp_path, train=True, download=True)
    with pytest.raises(IndexError):
        datasets.MNIST(tmp_path, train=False)[7]


@pytest.mark.parametrize("images, labels, said", [
    (idx(LABELS), None, "images are"), (None, idx(IMAGES), "need as many"),
    (None, idx(LABELS[:6]), "need as many"), (None, idx(LABELS + 4), "not below 10"),
    (idx(IMAGES.astype(np.int16), 11), None, "images are")])
def test_files_that_do_not_fit_together_are_refused(tmp_path, images, labels, said):
    written(tmp_path, images, labels)
    with pytest.raises(ValueError, match=f"MNIST: .*{said}"):
        datasets.MNIST(tmp_path)


@pytest.mark.parametrize("transform", [
    None, transforms.ToTensor(),
    transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.1,), (0.3,)),
                        transforms.Resize(20), transforms.CenterCrop(18)]),
    transforms.Compose([transforms.ToTensor(), lambda x: x.flatten()]),
    transforms.Lambda(lambda x: x.float().mean())])
def test_a_batch_is_what_its_examples_are(tmp_path, transform):
    """Also where the whole batch is transformed at once, which random transforms never are."""
    written(tmp_path)
    found = datasets.MNIST(tmp_path, transform=transform)
    for dataset in (found, Subset(found, [5, 2, 2, -1])):
        (images, labels), = DataLoader(dataset, batch_size=9)
        singles = [dataset[i] for i in range(len(dataset))]
        assert images.equal(tl.stack([image for image, _ in singles]))
        assert labels.tolist() == [label for _, label in singles]
    drawn = datasets.MNIST(tmp_path, transform=transforms.Compose([
        transforms.ToTensor(), transforms.RandomHorizontalFlip()]))
    assert drawn.__getbatch__ is None


def test_a_transform_that_is_derived_is_given_each_example(tmp_path):
    class Mean(transforms.ToTensor):
        def forward(self, pic):
            return super().forward(pic).mean()

    written(tmp_path)
    (images, _), = DataLoader(datasets.MNIST(tmp_path, transform=Mean()), batch_size=7)
    assert images.shape == (7,)
    targets = datasets.MNIST(tmp_path, target_transform=lambda label: -label)
    (_, labels), = DataLoader(targets, batch_size=7)
    assert labels.tolist() == [-label for label in range(7)]


def test_both_kinds_of_transforms_are_refused():
    class Own(datasets.VisionDataset):
        def __len__(self):
            return 0

    with pytest.raises(ValueError, match="Own: transforms is given"):
        Own(transforms=lambda x, y: (x, y), transform=abs)
    assert Own(transforms=lambda x, y: (y, x)).transformed(1, 2) == (2, 1)


def test_digits_come_with_the_library():
    parts = [datasets.Digits(train) for train in (True, False, None)]
    assert [len(part) for part in parts] == [1437, 360, 1797]
    image, label = parts[2][0]
    assert image.shape == (1, 8, 8) and image.dtype == tl.float32 and label == 0
    assert parts[2].data.min() == 0 and parts[2].data.max() == 1
    assert len(parts[2].targets.bincount()) == 10 and "Split: All" in repr(parts[2])
    together = tl.cat([part.data.flatten(1) for part in parts[:2]]).sum(0)
    assert together.allclose(parts[2].data.flatten(1).sum(0))


# ---- CIFAR ---------------------------------------------------------------------------------------

ROWS = RNG.integers(0, 256, (4, PIXELS), dtype=np.uint8)
NAMES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
PICKLES = {f"data_batch_{i}": {b"data": ROWS, b"labels": [i, 1, 2, 3]} for i in range(1, 6)}


def cifar(folder, protocol=2, kind="python"):
    """The batches of CIFAR-10 in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, batch in PICKLES.items():
        if kind == "python":
            (folder / name).write_bytes(pickle.dumps(batch, protocol))
        else:
            rows = np.concatenate([np.array(batch[b"labels"], np.uint8)[:, None], ROWS], 1)
            (folder / f"{name}.bin").write_bytes(rows.tobytes())
    (folder / "batches.meta").write_bytes(pickle.dumps({"label_names": NAMES}, protocol))
    (folder / "batches.meta.txt").write_text("\n".join(NAMES) + "\n\n")
    return folder


def packed(folder, archive):
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(folder, arcname=folder.name)


@pytest.mark.parametrize("way", [2, 4, 5, "bin", "python archive", "bin archive", "root"])
def test_cifar_is_read_in_each_form(tmp_path, way):
    kind = "bin" if "bin" in str(way) else "python"
    root = tmp_path / "root"
    name = "cifar-10-batches-bin" if kind == "bin" else "cifar-10-batches-py"
    where = root if way == "root" else tmp_path / name if "archive" in str(way) else root / name
    cifar(where, way if isinstance(way, int) else 2, kind)
    if "archive" in str(way):
        root.mkdir()
        packed(where, root / f"cifar-10-{'binary' if kind == 'bin' else 'python'}.tar.gz")
    found = datasets.CIFAR10(root, download=True)
    assert len(found) == 20 and found.data.shape == (20, 32, 32, 3) and found.classes == NAMES
    assert found.targets[:5] == [1, 1, 2, 3, 2] and found.class_to_idx["truck"] == 9
    image, label = found[1]
    assert np.array_equal(image.numpy(), ROWS[1].reshape(3, 32, 32)) and label == 1
    (images, labels), = DataLoader(found, batch_size=20)
    assert images.equal(tl.stack([found[i][0] for i in range(20)])) and labels.dtype == tl.int64
    found.data, found.targets = found.data[:3], found.targets[:3]       # as scripts do
    assert len(found) == 3 and next(iter(DataLoader(found, 3)))[0].shape == (3, 3, 32, 32)


def test_a_batch_of_python_2_is_read(tmp_path):
    """Its bytes are text, as those of the database are."""
    text = ROWS.tobytes()
    array = (b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\ntU\x01btR(I1\n(I4\n"
             b"I3072\ntcnumpy\ndtype\n(U\x02u1I0\nI1\ntR(I3\nU\x01|NNNI-1\nI-1\nI0\ntbI00\nT"
             + len(text).to_bytes(4, "little") + text + b"tb")
    content = b"\x80\x02}(U\x04data" + array + b"U\x06labels](K\x01K\x02K\x03K\x04eu."
    for name in PICKLES:
        (tmp_path / name).write_bytes(content)
    found = datasets.CIFAR10(tmp_path)
    assert np.array_equal(found.data[1], ROWS[1].reshape(3, 32, 32).transpose(1, 2, 0))
    assert found.targets[:4] == [1, 2, 3, 4] and found.classes[3] == "3"


class Evil:
    def __reduce__(self):
        return print, ("run",)


@pytest.mark.parametrize("changes, said", [
    ({b"data": ROWS[:, 1:]}, "'data' is not a uint8 array"),
    ({b"data": ROWS.astype(float)}, "'data'"), ({b"data": [1]}, "'data'"),
    ({b"labels": [1, 2, 3]}, "'labels' is not a list of 4"),
    ({b"labels": [1, 2, 3, 10]}, ".* below 10"), ({b"labels": [True, 1, 1, 1]}, "'labels'"),
    ({b"labels": None}, "'labels'"), ({"x": Evil()}, "no batch for Python.*print")])
def test_batches_with_something_else_in_them_are_refused(tmp_path, changes, said, capsys):
    cifar(tmp_path)
    batch = {**PICKLES["data_batch_3"], **changes}
    (tmp_path / "data_batch_3").write_bytes(pickle.dumps(batch, 2))
    with pytest.raises(ValueError, match=f"CIFAR10: data_batch_3: {said}"):
        datasets.CIFAR10(tmp_path)
    assert not capsys.readouterr().out                  # nothing that a pickle names is run


def test_damaged_files_of_cifar_are_refused(tmp_path):
    cifar(tmp_path / "a")
    whole = (tmp_path / "a" / "data_batch_2").read_bytes()
    for content in (b"", whole[:-9], b"\x80\x02]."):
        (tmp_path / "a" / "data_batch_2").write_bytes(content)
        with pytest.raises(ValueError, match="CIFAR10: data_batch_2"):
            datasets.CIFAR10(tmp_path / "a")
    (tmp_path / "a" / "data_batch_2").unlink()
    with pytest.raises(RuntimeError, match="data_batch_2 is missing"):
        datasets.CIFAR10(tmp_path / "a")
    cifar(tmp_path / "b", kind="bin")
    for content in (b"", b"\0" * 3072, b"\x0a" + b"\0" * 3072):
        (tmp_path / "b" / "data_batch_1.bin").write_bytes(content)
        with pytest.raises(ValueError, match="data_batch_1.bin"):
            datasets.CIFAR10(tmp_path / "b")
    (tmp_path / "c").mkdir()
    packed(cifar(tmp_path / "cifar-10-batches-py"), tmp_path / "c" / "cifar-10-python.tar.gz")
    archive = tmp_path / "c" / "cifar-10-python.tar.gz"
    archive.write_bytes(archive.read_bytes()[:200])
    with pytest.raises(ValueError, match="the archive is damaged"):
        datasets.CIFAR10(tmp_path / "c")
    with pytest.raises(RuntimeError, match="CIFAR100: Dataset not found"):
        datasets.CIFAR100(tmp_path, train=False)


def test_cifar_100_takes_the_fine_classes(tmp_path):
    labels = {"fine_labels": [99, 5, 6, 7], "coarse_labels": [1, 1, 2, 2]}
    folder = tmp_path / "cifar-100-python"
    folder.mkdir()
    (folder / "train").write_bytes(pickle.dumps({"data": ROWS, **labels}, 2))
    (folder / "meta").write_bytes(pickle.dumps({"fine_label_names": list(map(str, range(100)))}))
    rows = np.concatenate([np.array([[1, 99], [1, 5], [2, 6], [2, 7]], np.uint8), ROWS], 1)
    (tmp_path / "binary").mkdir()
    (tmp_path / "binary" / "train.bin").write_bytes(rows.tobytes())
    for root in (tmp_path, tmp_path / "binary"):
        found = datasets.CIFAR100(root)
        assert found.targets == [99, 5, 6, 7] and len(found.classes) == 100
        assert np.array_equal(found[0][0].numpy(), ROWS[0].reshape(3, 32, 32))


# ---- folders -------------------------------------------------------------------------------------

def test_images_in_folders(tmp_path):
    image = pytest.importorskip("PIL.Image")
    for name, colour in (("cats", 10), ("dogs", 200)):
        (tmp_path / name / "more").mkdir(parents=True)
        for path in (tmp_path / name / "b.png", tmp_path / name / "more" / "a.PNG"):
            image.new("RGB", (4, 3), (colour, 0, 1)).save(path)
        (tmp_path / name / "notes.txt").write_text("no image")
    found = datasets.ImageFolder(tmp_path, transform=transforms.ToTensor())
    assert found.classes == ["cats", "dogs"] and found.targets == [0, 0, 1, 1]
    pixels, label = found[2]
    assert pixels.shape == (3, 3, 4) and label == 1
    assert (pixels[:, 0, 0] * 255).round().tolist() == [200, 0, 1]
    with pytest.raises(FileNotFoundError, match="no valid file for the class 'cats'"):
        datasets.ImageFolder(tmp_path, is_valid_file=lambda path: "dogs" in path)
    assert len(datasets.ImageFolder(tmp_path, is_valid_file=lambda path: "dogs" in path,
                                    allow_empty=True)) == 3


def test_files_in_folders_by_a_loader_of_ones_own(tmp_path):
    (tmp_path / "a").mkdir()
    np.save(tmp_path / "a" / "x.npy", np.ones(3, np.float32))
    found = datasets.DatasetFolder(tmp_path, np.load, ".npy")
    assert found[0][0].tolist() == [1, 1, 1] and found.samples == [(str(tmp_path / "a/x.npy"), 0)]
    with pytest.raises(ValueError, match="one of extensions and is_valid_file"):
        datasets.DatasetFolder(tmp_path, np.load)
    with pytest.raises(FileNotFoundError, match="any class folder"):
        datasets.DatasetFolder(tmp_path / "a", np.load, ".npy")


def test_an_image_without_pillow_names_it(tmp_path, monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(ImportError, match="pip install pillow"):
        read_image(str(tmp_path / "a.png"))


# ---- text ----------------------------------------------------------------------------------------

def test_pieces_of_text(tmp_path):
    (tmp_path / "a.txt").write_text("abcabcab\r\nx")
    text = datasets.TextDataset(tmp_path / "a.txt", 3)
    assert text.decode(text.tokens) == "abcabcab\nx" and len(text) == 3
    assert text.vocabulary == list("abc\nx")             # the most frequent first
    for i, piece in enumerate(("abca", "abca", "ab\nx")):
        first, following = text[i]
        assert text.decode(first) + text.decode(following)[-1] == piece
    assert text[-1][0].equal(text[2][0])
    with pytest.raises(IndexError):
        text[3]
    (first, following), = DataLoader(text, batch_size=3)
    assert first.equal(tl.stack([text[i][0] for i in range(3)]))
    assert following.equal(tl.stack([text[i][1] for i in range(3)]))
    assert len(datasets.TextDataset(tmp_path / "a.txt", 3, stride=1)) == 7


def test_words_several_files_and_a_vocabulary(tmp_path):
    for name, words in (("a", "the cat, the dog"), ("b", "the über-cat")):
        (tmp_path / name).write_bytes(gzip.compress(words.encode()))
    paths = [tmp_path / "a", tmp_path / "b"]
    text = datasets.TextDataset(paths, 2, split="words")
    assert text.vocabulary[:2] == ["the", "cat"] and "<unk>" not in text.vocabulary
    assert text.decode(text.tokens) == "the cat , the dog the über - cat"
    other = datasets.TextDataset(paths, 2, split="words", vocabulary=["cat", "the", "cat"])
    assert other.vocabulary == ["cat", "the", "<unk>"]
    assert other.encode("the cow").tolist() == [1, 2]
    own = datasets.TextDataset(paths[0], 1, split=lambda text: text.split(" "))
    assert own.vocabulary == ["the", "cat,", "dog"]
    with pytest.raises(ValueError, match="'cow' is not in the vocabulary"):
        text.encode("the cow")


@pytest.mark.parametrize("content, options, said", [
    (b"abc", {"length": 3}, "3 tokens"), (b"", {"length": 1}, "0 tokens"),
    (b"\xff\xfe\xfa", {"length": 1}, "not in the encoding utf-8"),
    (b"abc", {"length": 0}, "length must be"), (b"abc", {"length": 1, "stride": 0}, "stride"),
    (b"abc", {"length": 1, "split": "lines"}, "split is"),
    (gzip.compress(b"abcd", mtime=0)[:-5], {"length": 1}, "damaged")])
def test_texts_that_are_none_are_refused(tmp_path, content, options, said):
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(ValueError, match=f"TextDataset: .*{said}"):
        datasets.TextDataset(tmp_path / "a", **options)
