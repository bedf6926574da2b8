# Examples for pages of the reference; tools/site/examples.py says how they are read.
# ---- empty_like
x = tl.ones(2, 3, dtype=tl.int64)
y = tl.empty_like(x)
y.shape, y.dtype                        # its elements are not set
# ---- set_default_dtype get_default_dtype
tl.set_default_dtype(tl.float64)
tl.get_default_dtype(), tl.tensor(0.5).dtype
tl.set_default_dtype(tl.float32)
# ---- to_dlpack
x = tl.arange(3)
y = tl.from_dlpack(tl.to_dlpack(x))     # the same memory
y[0] = 7
x
# ---- get_rng_state set_rng_state
state = tl.get_rng_state()
tl.rand(2)
tl.set_rng_state(state)
tl.rand(2)                              # the same numbers again
# ---- initial_seed
_ = tl.manual_seed(7)
tl.initial_seed()
# ---- manual_seed
_ = tl.manual_seed(7)
tl.rand(2)
_ = tl.manual_seed(7)
tl.rand(2)
# ---- seed
started = tl.seed()                     # another number each time
tl.initial_seed() == started
# ---- resize_as_
x = tl.arange(6)
tl.resize_as_(x, tl.zeros(2, 3))
# ---- Tensor.new_empty_strided
x = tl.ones(2, dtype=tl.int64)
y = x.new_empty_strided((2, 3), (1, 2))     # its elements are not set
y.stride(), y.dtype
# ---- Tensor.is_set_to
x = tl.arange(4)
x.is_set_to(x[:]), x.is_set_to(x[1:]), x.is_set_to(x.clone())
# ---- Tensor.share_memory_ Tensor.is_shared
x = tl.zeros(3)
x.is_shared()
x.share_memory_().is_shared()           # written to by processes that are forked, too
# ---- Tensor.bfloat16 Tensor.byte Tensor.char Tensor.double Tensor.float Tensor.half Tensor.int
# ---- Tensor.long Tensor.short
x = tl.tensor([0.0, 1.6, 2.0])
x.NAME()
# ---- Tensor.bool
tl.tensor([0.0, 0.5, float("nan")]).bool()
# ---- Tensor.cfloat Tensor.cdouble
tl.tensor([1.0, 2.0]).NAME()
# ---- Tensor.type
x = tl.tensor([1.5, 2.5])
x.type()
x.type(tl.int64)
# ---- Tensor.type_as
tl.tensor([1.5, 2.5]).type_as(tl.tensor([1]))
# ---- Tensor.apply_
tl.tensor([1.0, 4.0]).apply_(lambda x: x / 2)
# ---- Tensor.map_
tl.tensor([1.0, 4.0]).map_(tl.tensor([3.0, 2.0]), lambda x, y: max(x, y))
# ---- Tensor.as_subclass
class Metres(tl.Tensor):
    pass
x = tl.tensor([1.0, 2.0]).as_subclass(Metres)
type(x).__name__, type(x + x).__name__
# ---- Tensor.cauchy_ Tensor.exponential_ Tensor.log_normal_ Tensor.uniform_
tl.empty(3).NAME()
# ---- Tensor.geometric_
tl.empty(5).geometric_(0.5)
# ---- Tensor.random_
tl.empty(5, dtype=tl.int64).random_(1, 7)       # throws of a die
# ---- Tensor.copy_
x = tl.zeros(2, 3)
x.copy_(tl.tensor([1, 2, 3]))           # cast to float32, the same in both rows
# ---- Tensor.cpu Tensor.pin_memory
x = tl.ones(2)
x.NAME() is x
# ---- Tensor.cuda Tensor.xpu (raises)
tl.ones(2).NAME()
# ---- Tensor.data_ptr
x = tl.zeros(4)
x[1:].data_ptr() - x.data_ptr()         # a float32 has 4 bytes
# ---- Tensor.dim Tensor.ndimension
tl.zeros(2, 3, 4).NAME()
# ---- Tensor.ndim
tl.zeros(2, 3, 4).ndim
# ---- Tensor.element_size
tl.zeros(3).element_size(), tl.zeros(3, dtype=tl.complex128).element_size()
# ---- Tensor.expand_as
tl.tensor([[1], [2]]).expand_as(tl.zeros(2, 3))
# ---- Tensor.fill_diagonal_
tl.zeros(2, 3).fill_diagonal_(5)
# ---- Tensor.is_contiguous
x = tl.zeros(2, 3)
x.is_contiguous(), x.T.is_contiguous(), x.T.contiguous().is_contiguous()
# ---- Tensor.is_pinned
tl.ones(2).is_pinned()
# ---- Tensor.item (raises)
tl.tensor([[2.5]]).item()
tl.tensor([1, 2]).item()
# ---- Tensor.nelement
tl.zeros(2, 3).nelement()
# ---- Tensor.new
tl.zeros(2, dtype=tl.float64).new([1, 2])
# ---- Tensor.new_empty
tl.zeros(2, dtype=tl.int64).new_empty(2, 3).dtype
# ---- Tensor.new_full
tl.zeros(2, dtype=tl.int64).new_full((2, 2), 7)
# ---- Tensor.new_ones Tensor.new_zeros
tl.zeros(2, dtype=tl.int64).NAME(2, 3)
# ---- Tensor.new_tensor
tl.zeros(2, dtype=tl.float64).new_tensor([1, 2])
# ---- Tensor.numpy Tensor.to_numpy
x = tl.tensor([1.0, 2.0])
a = x.NAME()
a[0] = 7                                # the memory is shared
x
# ---- Tensor.requires_grad_
w = tl.zeros(2).requires_grad_()
(w * 3).sum().backward()
w.grad
# ---- Tensor.reshape_as Tensor.view_as
tl.arange(6).NAME(tl.zeros(2, 3))
# ---- Tensor.size
x = tl.zeros(2, 3)
x.size(), x.size(-1)
# ---- Tensor.storage_offset
x = tl.zeros(4, 5)
x[1:, 2:].storage_offset()              # one row and two elements further
# ---- Tensor.stride
x = tl.zeros(4, 5)
x.stride(), x.T.stride(), x.stride(0)
# ---- Tensor.to_dense
s = tl.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse()
s.to_dense()
# ---- Tensor.to_device
tl.ones(2, 3).to_device("meta").shape
# ---- Tensor.sparse_mask
mask = tl.eye(2).to_sparse()
tl.tensor([[1.0, 2.0], [3.0, 4.0]]).sparse_mask(mask).values()
# ---- Tensor.to_sparse Tensor.to_sparse_coo Tensor.to_sparse_csc Tensor.to_sparse_csr
tl.tensor([[0.0, 2.0], [3.0, 0.0]]).NAME()
# ---- Tensor.to_sparse_bsc Tensor.to_sparse_bsr
tl.tensor([[0.0, 2.0, 0.0, 0.0], [3.0, 0.0, 0.0, 0.0]]).NAME((2, 2))
# ---- Tensor.tolist
tl.tensor([[1, 2], [3, 4]]).tolist()
# ---- UntypedStorage StorageBase
with open("bytes.bin", "wb") as file:
    file.write(bytes(range(8)))
memory = tl.UntypedStorage.from_file("bytes.bin", nbytes=8)
memory[2:5].tolist(), tl.asarray(memory, dtype=tl.uint8)
# ---- Tensor.untyped_storage
x = tl.zeros(4)
storage = x[2:].untyped_storage()       # that of all four
storage.nbytes(), storage.data_ptr() == x.data_ptr()
# ---- Tensor.storage
x = tl.arange(4.0)
storage = x[2:].storage()               # the elements of all four
len(storage), storage.tolist()
# ---- Tensor.H Tensor.mH
tl.tensor([[1 + 2j, 3j], [4, 5]]).NAME
# ---- Tensor.T
tl.zeros(2, 3).T.shape
# ---- Tensor.mT
tl.zeros(5, 2, 3).mT.shape
# ---- Tensor.data
w = tl.ones(2, requires_grad=True)
w.data.mul_(3)                          # no graph sees it
w
# ---- Tensor.device
tl.ones(2).device, tl.ones(2, device="meta").device
# ---- Tensor.dtype
tl.tensor([1.0]).dtype, tl.tensor([1]).dtype, tl.tensor([True]).dtype
# ---- Tensor.flags
tl.ones(2, 3).T.flags
# ---- Tensor.grad
x = tl.tensor([1.0, 2.0], requires_grad=True)
(x * x).sum().backward()
x.grad
# ---- Tensor.grad_fn
x = tl.tensor([1.0, 2.0], requires_grad=True)
x.grad_fn, x.exp().grad_fn
# ---- Tensor.real Tensor.imag
z = tl.tensor([1 + 2j, 3 - 1j])
z.NAME
z.NAME.zero_()                          # a view: it writes into z
z
# ---- Tensor.is_cpu Tensor.is_meta
tl.ones(2).NAME, tl.ones(2, device="meta").NAME
# ---- Tensor.is_cuda Tensor.is_ipu Tensor.is_mkldnn Tensor.is_mps Tensor.is_mtia Tensor.is_nested
# ---- Tensor.is_quantized Tensor.is_vulkan Tensor.is_xla Tensor.is_xpu
tl.ones(2).NAME
# ---- Tensor.is_sparse Tensor.is_sparse_csr
x = tl.eye(2)
x.NAME, x.to_sparse().NAME, x.to_sparse_csr().NAME
# ---- Tensor.is_leaf
x = tl.ones(2, requires_grad=True)
x.is_leaf, (2 * x).is_leaf
# ---- Tensor.itemsize
tl.ones(2).itemsize, tl.ones(2, dtype=tl.bfloat16).itemsize
# ---- Tensor.layout
tl.ones(2).layout
# ---- Tensor.name
w = tl.ones(2, requires_grad=True)
w.name = "weights"
w.name
# ---- Tensor.nbytes
tl.zeros(2, 3).nbytes
# ---- Tensor.output_nr
u, s, vh = tl.linalg.svd(tl.rand(3, 3, requires_grad=True))
[each.output_nr for each in (u, s, vh)]
# ---- Tensor.requires_grad
w = tl.ones(2, requires_grad=True)
w.requires_grad, (w * 2).requires_grad, w.detach().requires_grad
# ---- Tensor.retains_grad
x = tl.ones(2, requires_grad=True)
y = x * 2
y.retain_grad()
y.sum().backward()
y.retains_grad, y.grad
# ---- Tensor.shape
tl.zeros(2, 3).shape
# ---- can_cast
tl.can_cast(tl.float64, tl.float32), tl.can_cast(tl.float32, tl.int64)
# ---- device
tl.zeros(2, device=tl.device("cpu")).device
tl.device("cpu") == tl.ones(2).device
# ---- dtype
tl.float32.is_floating_point, tl.float32.itemsize, tl.float32.to_complex()
isinstance(tl.float32, tl.dtype)
# ---- layout
isinstance(tl.strided, tl.layout), tl.ones(2).layout == tl.strided
# ---- memory_format
x = tl.zeros(1, 3, 4, 5).to(memory_format=tl.channels_last)
x.shape, x.stride()
# ---- BoolTensor ByteTensor CharTensor IntTensor LongTensor ShortTensor
tl.NAME([1, 0, 2])
# ---- BFloat16Tensor DoubleTensor FloatTensor HalfTensor
tl.NAME([1, 2.5])
# ---- sparse_csr_tensor
m = tl.sparse_csr_tensor([0, 2, 3], [0, 2, 1], [1.0, 2.0, 3.0], size=(2, 3))
m.to_dense()
# ---- sparse_compressed_tensor
m = tl.sparse_compressed_tensor([0, 2, 3], [0, 2, 1], [1.0, 2.0, 3.0], layout=tl.sparse_csc)
m.to_dense()
# ---- spmm dsmm hsmm
m = tl.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse()
tl.NAME(m, tl.ones(2, 2))
# ---- get_printoptions
tl.get_printoptions()
# ---- set_printoptions
tl.set_printoptions(precision=2, sci_mode=False)
tl.tensor([1 / 3, 1e-5])
tl.set_printoptions(profile="default", sci_mode=None)
# ---- fill_
x = tl.zeros(2, 3)
tl.fill_(x, 7)
# ---- zero_
x = tl.ones(2, 3)
tl.zero_(x)
# ---- detach_
x = tl.ones(2, requires_grad=True)
y = tl.detach_(x * 2)
y.requires_grad
# ---- abs_: [-2.5, 0.0, 1.5]
# ---- nan_to_num_: [float("nan"), 1.0, float("inf")]
# ---- conj_physical_: [1 + 2j, 3 - 1j]
x = tl.tensor(VALUE)
_ = tl.NAME(x)
x
# ---- clamp_: min=0.0, max=1.0
# ---- clamp_max_: 1.0
# ---- clamp_min_: 0.0
x = tl.tensor([-2.5, 0.5, 3.0])
_ = tl.NAME(x, VALUE)
x
# ---- clamp_max: 1.0
# ---- clamp_min: 0.0
tl.NAME(tl.tensor([-2.5, 0.5, 3.0]), VALUE)
# ---- Tensor.coalesce Tensor.is_coalesced
s = tl.sparse_coo_tensor([[0, 0, 2]], [1.0, 2.0, 3.0])
s.is_coalesced(), s.coalesce().is_coalesced(), s.coalesce().values()
# ---- Tensor.indices Tensor.values
tl.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse().NAME()
# ---- Tensor.sparse_dim Tensor.dense_dim
x = tl.ones(3, 2)
x.NAME(), x.to_sparse().NAME(), x.to_sparse(1).NAME()
# ---- Tensor.crow_indices Tensor.col_indices
tl.tensor([[0.0, 2.0], [3.0, 4.0]]).to_sparse_csr().NAME()
# ---- Tensor.ccol_indices Tensor.row_indices
tl.tensor([[0.0, 2.0], [3.0, 4.0]]).to_sparse_csc().NAME()
# ---- sparse_bsc_tensor
m = tl.sparse_bsc_tensor([0, 1, 1], [1], [[[1.0, 2.0]]], size=(2, 4))
m.to_dense()
