# Examples for pages of the reference; tools/site/examples.py says how they are read.
# ---- addmv
tl.addmv(tl.tensor([1.0, 1.0]), tl.tensor([[1.0, 2.0], [3.0, 4.0]]), tl.tensor([10.0, 1.0]))
# ---- addmv_
x = tl.tensor([1.0, 1.0])
_ = tl.addmv_(x, tl.tensor([[1.0, 2.0], [3.0, 4.0]]), tl.tensor([10.0, 1.0]))
x
# ---- baddbmm
tl.baddbmm(tl.ones(5, 2, 4), tl.rand(5, 2, 3), tl.rand(5, 3, 4)).shape
# ---- addbmm
tl.addbmm(tl.zeros(2, 2), tl.ones(5, 2, 3), tl.ones(5, 3, 2))  # the sum of five products
# ---- cholesky_solve
a, b = tl.tensor([[4.0, 2.0], [2.0, 3.0]]), tl.tensor([[1.0], [2.0]])
x = tl.cholesky_solve(b, tl.linalg.cholesky(a))
a @ x
# ---- lu_solve
a, b = tl.tensor([[0.0, 2.0], [4.0, 2.0]]), tl.tensor([[2.0], [8.0]])
x = tl.lu_solve(b, *tl.linalg.lu_factor(a))
a @ x
# ---- linalg.lu_solve
a, b = tl.tensor([[0.0, 2.0], [4.0, 2.0]]), tl.tensor([[2.0], [8.0]])
x = tl.linalg.lu_solve(*tl.linalg.lu_factor(a), b)
a @ x
# ---- lu_unpack
a = tl.tensor([[0.0, 2.0], [4.0, 2.0]])
p, lower, upper = tl.lu_unpack(*tl.linalg.lu_factor(a))
p @ lower @ upper
# ---- triangular_solve
a, b = tl.tensor([[2.0, 1.0], [0.0, 4.0]]), tl.tensor([[4.0], [8.0]])
x, _ = tl.triangular_solve(b, a)
a @ x
# ---- linalg.solve_triangular
a, b = tl.tensor([[2.0, 1.0], [0.0, 4.0]]), tl.tensor([[4.0], [8.0]])
tl.linalg.solve_triangular(a, b, upper=True)
# ---- linalg.solve_ex
a, b = tl.tensor([[2.0, 1.0], [0.0, 4.0]]), tl.tensor([4.0, 8.0])
tl.linalg.solve_ex(a, b)  # info is 0 where there is a solution
# ---- linalg.ldl_solve
a, b = tl.tensor([[4.0, 2.0], [2.0, -3.0]]), tl.tensor([[2.0], [5.0]])
x = tl.linalg.ldl_solve(*tl.linalg.ldl_factor(a), b)
a @ x
# ---- linalg.lstsq
x = tl.tensor([0.0, 1.0, 2.0])
a = tl.stack([x, tl.ones(3)], dim=1)
tl.linalg.lstsq(a, tl.tensor([[1.0], [3.0], [5.0]])).solution  # the line 2 * x + 1
# ---- linalg.multi_dot
tl.linalg.multi_dot([tl.ones(2, 100), tl.ones(100, 3), tl.ones(3, 4)])  # in the cheapest order
# ---- linalg.householder_product
a = tl.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
q = tl.linalg.householder_product(*tl.geqrf(a))
(q.mT @ q).allclose(tl.eye(2), atol=1e-6)
# ---- ormqr
a, other = tl.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), tl.ones(3, 1)
reflectors, tau = tl.geqrf(a)
q = tl.linalg.qr(a, mode="complete").Q
tl.ormqr(reflectors, tau, other).allclose(q @ other, atol=1e-6)
# ---- diagonal_scatter
tl.diagonal_scatter(tl.zeros(3, 3), tl.tensor([1.0, 2.0]), offset=1)
# ---- select_scatter
tl.select_scatter(tl.zeros(2, 3), tl.tensor([1.0, 2.0, 3.0]), 0, 1)  # the second row
# ---- as_strided_scatter
tl.as_strided_scatter(tl.zeros(3, 3), tl.ones(3), (3,), (4,))  # every fourth: the diagonal
# ---- index_reduce
x, rows = tl.ones(2, 2), tl.tensor([[3.0, 0.0], [5.0, 1.0]])
tl.index_reduce(x, 0, tl.tensor([1, 1]), rows, "amax")
# ---- put
tl.put(tl.zeros(2, 3), tl.tensor([0, 4]), tl.tensor([1.0, 2.0]))
# ---- fft.fft2 fft.fftn
tl.fft.NAME(tl.tensor([[1.0, 0.0], [0.0, 1.0]]))
# ---- fft.ifft2: fft2
# ---- fft.ifftn: fftn
# ---- fft.irfft2: rfft2
# ---- fft.irfftn: rfftn
x = tl.tensor([[1.0, 2.0, 0.0, 4.0], [0.0, 1.0, 3.0, 0.0]])
tl.fft.NAME(tl.fft.VALUE(x))
# ---- fft.rfft2 fft.rfftn
tl.fft.NAME(tl.rand(6, 8)).shape  # half of what is symmetric
# ---- fft.hfft2: ihfft2
# ---- fft.hfftn: ihfftn
x = tl.tensor([[1.0, 2.0, 0.0, 4.0], [0.0, 1.0, 3.0, 0.0]])
tl.fft.NAME(tl.fft.VALUE(x))
# ---- fft.ihfft2 fft.ihfftn
tl.fft.NAME(tl.rand(6, 8)).shape  # half of what is symmetric
