"""The steps of optimisers as one loop each, held equal to their formulas.

`operands` are the gradient, the states and the parameter, contiguous runs of n elements of one
dtype. The states and the parameter are written, and no two of all these overlap. `numbers` are
those of the formula. Each loop is compiled once for each kind of weight decay and momentum: the
flags of the inline functions are known where these are called.
"""

from tensorlib._kernels.vecmath cimport floating, sqrt

from tensorlib._kernels import FLOATS, rows_for

# ---- gradient descent ----------------------------------------------------------------------------

cdef inline void sgd(floating** operands, const double* numbers, Py_ssize_t n, bint decayed,
                     bint averaged, bint nesterov) noexcept nogil:
    """g := g + decay p;  m := momentum m + new g;  p := p - lr (g, m or g + momentum m)"""
    cdef const floating* gradients = operands[0]
    cdef floating* means = operands[1]
    cdef floating* p = operands[2 if averaged else 1]
    cdef floating lr = <floating>numbers[0], decay = <floating>numbers[1]
    cdef floating momentum = <floating>numbers[2], new = <floating>numbers[3], g, m
    cdef Py_ssize_t i
    for i in range(n):
        g = gradients[i] + decay * p[i] if decayed else gradients[i]
        if averaged:
            m = momentum * means[i] + new * g
            means[i] = m
            g = g + momentum * m if nesterov else m
        p[i] = p[i] - lr * g


cdef void sgd_run(floating** operands, const double* numbers, Py_ssize_t n) noexcept nogil:
    sgd(operands, numbers, n, False, False, False)


cdef void sgd_decay_run(floating** operands, const double* numbers, Py_ssize_t n) noexcept nogil:
    sgd(operands, numbers, n, True, False, False)


cdef void sgd_momentum_run(floating** operands, const double* numbers,
                           Py_ssize_t n) noexcept nogil:
    sgd(operands, numbers, n, False, True, False)


cdef void sgd_momentum_decay_run(floating** operands, const double* numbers,
                                 Py_ssize_t n) noexcept nogil:
    sgd(operands, numbers, n, True, True, False)


cdef void sgd_nesterov_run(floating** operands, const double* numbers,
                           Py_ssize_t n) noexcept nogil:
    sgd(operands, numbers, n, False, True, True)


cdef void sgd_nesterov_decay_run(floating** operands, const double* numbers,
                                 Py_ssize_t n) noexcept nogil:
    sgd(operands, numbers, n, True, True, True)


# ---- running means of squares --------------------------------------------------------------------

cdef inline void adam(floating** operands, const double* numbers, Py_ssize_t n, bint decayed,
                      bint decoupled) noexcept nogil:
    """m := m + new1 (g - m);  v := beta2 v + new2 g g;  p := p - size m / (scale sqrt(v) + eps)"""
    cdef const floating* gradients = operands[0]
    cdef floating* means = operands[1]
    cdef floating* squares = operands[2]
    cdef floating* p = operands[3]
    cdef floating new1 = <floating>numbers[0], beta2 = <floating>numbers[1]
    cdef floating new2 = <floating>numbers[2], scale = <floating>numbers[3]
    cdef floating eps = <floating>numbers[4], size = <floating>numbers[5]
    cdef floating decay = <floating>numbers[6], kept = <floating>numbers[7], g, m, v, x
    cdef Py_ssize_t i
    for i in range(n):
        x = kept * p[i] if decoupled else p[i]
        g = gradients[i] + decay * x if decayed else gradients[i]
        m = means[i] + new1 * (g - means[i])
        v = beta2 * squares[i] + new2 * (g * g)
        means[i] = m
        squares[i] = v
        p[i] = x - size * (m / (scale * sqrt(v) + eps))


cdef void adam_run(floating** operands, const double* numbers, Py_ssize_t n) noexcept nogil:
    adam(operands, numbers, n, False, False)


cdef void adam_decay_run(floating** operands, const double* numbers, Py_ssize_t n) noexcept nogil:
    adam(operands, numbers, n, True, False)


cdef void adamw_run(floating** operands, const double* numbers, Py_ssize_t n) noexcept nogil:
    adam(operands, numbers, n, False, True)


cdef inline void rmsprop(floating** operands, const double* numbers, Py_ssize_t n,
                         bint decayed) noexcept nogil:
    """v := alpha v + new g g;  p := p - lr g / (sqrt(v) + eps)"""
    cdef const floating* gradients = operands[0]
    cdef floating* squares = operands[1]
    cdef floating* p = operands[2]
    cdef floating alpha = <floating>numbers[0], new = <floating>numbers[1]
    cdef floating eps = <floating>numbers[2], lr = <floating>numbers[3]
    cdef floating decay = <floating>numbers[4], g, v
    cdef Py_ssize_t i
    for i in range(n):
        g = gradients[i] + decay * p[i] if decayed else gradients[i]
        v = alpha * squares[i] + new * (g * g)
        squares[i] = v
        p[i] = p[i] - lr * (g / (sqrt(v) + eps))


cdef void rmsprop_run(floating** operands, const double* numbers, Py_ssize_t n) noexcept nogil:
    rmsprop(operands, numbers, n, False)


cdef void rmsprop_decay_run(floating** operands, const double* numbers,
                            Py_ssize_t n) noexcept nogil:
    rmsprop(operands, numbers, n, True)


# ---- those that are used less --------------------------------------------------------------------

cdef inline void nadam(floating** operands, const double* numbers, Py_ssize_t n,
                       bint decayed) noexcept nogil:
    """m := m + new1 (g - m);  v := beta2 v + new2 g g;
    p := p - (of_g g + of_m m) / (scale sqrt(v) + eps)"""
    cdef const floating* gradients = operands[0]
    cdef floating* means = operands[1]
    cdef floating* squares = operands[2]
    cdef floating* p = operands[3]
    cdef floating new1 = <floating>numbers[0], beta2 = <floating>numbers[1]
    cdef floating new2 = <floating>numbers[2], scale = <floating>numbers[3]
    cdef floating eps = <floating>numbers[4], of_g = <floating>numbers[5]
    cdef floating of_m = <floating>numbers[6], decay = <floating>numbers[7]
    cdef floating g, m, v
    cdef Py_ssize_t i
    for i in range(n):
        g = gradients[i] + decay * p[i] if decayed else gradients[i]
        m = means[i] + new1 * (g - means[i])
        v = beta2 * squares[i] + new2 * (g * g)
        means[i] = m
        squares[i] = v
        p[i] = p[i] - (g * of_g + m * of_m) / (scale * sqrt(v) + eps)


cdef void nadam_run(floating** operands, const double* numbers, Py_ssize_t n) noexcept nogil:
    nadam(operands, numbers, n, False)


cdef void nadam_decay_run(floating** operands, const double* numbers, Py_ssize_t n) noexcept nogil:
    nadam(operands, numbers, n, True)


cdef inline void adamax(floating** operands, const double* numbers, Py_ssize_t n,
                        bint decayed) noexcept nogil:
    """m := m + new (g - m);  v := max(beta2 v, |g| + eps), NaN if either is;
    p := p - size m / v"""
    cdef const floating* gradients = operands[0]
    cdef floating* means = operands[1]
    cdef floating* largest = operands[2]
    cdef floating* p = operands[3]
    cdef floating new = <floating>numbers[0], beta2 = <floating>numbers[1]
    cdef floating eps = <floating>numbers[2], size = <floating>numbers[3]
    cdef floating decay = <floating>numbers[4]
    cdef floating g, m, v, x
    cdef Py_ssize_t i
    for i in range(n):
        g = gradients[i] + decay * p[i] if decayed else gradients[i]
        m = means[i] + new * (g - means[i])
        v = beta2 * largest[i]
        x = g if g > 0 else -g
        x = x + eps
        v = x if v <= x else v
        v = x if x != x else v
        means[i] = m
        largest[i] = v
        p[i] = p[i] - size * (m / v)


cdef void adamax_run(floating** operands, const double* numbers, Py_ssize_t n) noexcept nogil:
    adamax(operands, numbers, n, False)


cdef void adamax_decay_run(floating** operands, const double* numbers, Py_ssize_t n) noexcept nogil:
    adamax(operands, numbers, n, True)


cdef inline void adagrad(floating** operands, const double* numbers, Py_ssize_t n,
                         bint decayed) noexcept nogil:
    """v := v + g g;  p := p - rate g / (sqrt(v) + eps)"""
    cdef const floating* gradients = operands[0]
    cdef floating* sums = operands[1]
    cdef floating* p = operands[2]
    cdef floating rate = <floating>numbers[0], eps = <floating>numbers[1]
    cdef floating decay = <floating>numbers[2]
    cdef floating g, v
    cdef Py_ssize_t i
    for i in range(n):
        g = gradients[i] + decay * p[i] if decayed else gradients[i]
        v = sums[i] + g * g
        sums[i] = v
        p[i] = p[i] - rate * (g / (sqrt(v) + eps))


cdef void adagrad_run(floating** operands, const double* numbers, Py_ssize_t n) noexcept nogil:
    adagrad(operands, numbers, n, False)


cdef void adagrad_decay_run(floating** operands, const double* numbers,
                            Py_ssize_t n) noexcept nogil:
    adagrad(operands, numbers, n, True)


cdef inline void adadelta(floating** operands, const double* numbers, Py_ssize_t n,
                          bint decayed) noexcept nogil:
    """v := rho v + new g g;  d := sqrt(u + eps) / sqrt(v + eps) g;  u := rho u + new d d;
    p := p - lr d"""
    cdef const floating* gradients = operands[0]
    cdef floating* squares = operands[1]
    cdef floating* steps = operands[2]
    cdef floating* p = operands[3]
    cdef floating rho = <floating>numbers[0], new = <floating>numbers[1]
    cdef floating eps = <floating>numbers[2], lr = <floating>numbers[3]
    cdef floating decay = <floating>numbers[4]
    cdef floating g, v, d
    cdef Py_ssize_t i
    for i in range(n):
        g = gradients[i] + decay * p[i] if decayed else gradients[i]
        v = rho * squares[i] + new * (g * g)
        d = sqrt(steps[i] + eps) / sqrt(v + eps) * g
        squares[i] = v
        steps[i] = rho * steps[i] + new * (d * d)
        p[i] = p[i] - lr * d


cdef void adadelta_run(floating** operands, const double* numbers, Py_ssize_t n) noexcept nogil:
    adadelta(operands, numbers, n, False)


cdef void adadelta_decay_run(floating** operands, const double* numbers,
                             Py_ssize_t n) noexcept nogil:
    adadelta(operands, numbers, n, True)


cdef inline void asgd(floating** operands, const double* numbers, Py_ssize_t n,
                      bint decayed) noexcept nogil:
    """p := kept p - rate g;  mean := rest mean + weight p"""
    cdef const floating* gradients = operands[0]
    cdef floating* means = operands[1]
    cdef floating* p = operands[2]
    cdef floating kept = <floating>numbers[0], rate = <floating>numbers[1]
    cdef floating rest = <floating>numbers[2], weight = <floating>numbers[3]
    cdef floating decay = <floating>numbers[4]
    cdef floating g, x
    cdef Py_ssize_t i
    for i in range(n):
        g = gradients[i] + decay * p[i] if decayed else gradients[i]
        x = kept * p[i] - rate * g
        means[i] = rest * means[i] + weight * x
        p[i] = x


cdef void asgd_run(floating** operands, const double* numbers, Py_ssize_t n) noexcept nogil:
    asgd(operands, numbers, n, False)


cdef void asgd_decay_run(floating** operands, const double* numbers, Py_ssize_t n) noexcept nogil:
    asgd(operands, numbers, n, True)


def table():
    """(name, dtypes of the operands, output dtype, address) of every loop"""
    return rows_for(FLOATS, [
        ("sgd", <size_t>&sgd_run[float], <size_t>&sgd_run[double]),
        ("sgd_decay", <size_t>&sgd_decay_run[float], <size_t>&sgd_decay_run[double]),
    ], 2) + rows_for(FLOATS, [
        ("sgd_momentum", <size_t>&sgd_momentum_run[float], <size_t>&sgd_momentum_run[double]),
        ("sgd_momentum_decay", <size_t>&sgd_momentum_decay_run[float],
         <size_t>&sgd_momentum_decay_run[double]),
        ("sgd_nesterov", <size_t>&sgd_nesterov_run[float], <size_t>&sgd_nesterov_run[double]),
        ("sgd_nesterov_decay", <size_t>&sgd_nesterov_decay_run[float],
         <size_t>&sgd_nesterov_decay_run[double]),
        ("rmsprop", <size_t>&rmsprop_run[float], <size_t>&rmsprop_run[double]),
        ("rmsprop_decay", <size_t>&rmsprop_decay_run[float], <size_t>&rmsprop_decay_run[double]),
        ("adagrad", <size_t>&adagrad_run[float], <size_t>&adagrad_run[double]),
        ("adagrad_decay", <size_t>&adagrad_decay_run[float], <size_t>&adagrad_decay_run[double]),
        ("asgd", <size_t>&asgd_run[float], <size_t>&asgd_run[double]),
        ("asgd_decay", <size_t>&asgd_decay_run[float], <size_t>&asgd_decay_run[double]),
    ], 3) + rows_for(FLOATS, [
        ("adam", <size_t>&adam_run[float], <size_t>&adam_run[double]),
        ("adam_decay", <size_t>&adam_decay_run[float], <size_t>&adam_decay_run[double]),
        ("adamw", <size_t>&adamw_run[float], <size_t>&adamw_run[double]),
        ("nadam", <size_t>&nadam_run[float], <size_t>&nadam_run[double]),
        ("nadam_decay", <size_t>&nadam_decay_run[float], <size_t>&nadam_decay_run[double]),
        ("adamax", <size_t>&adamax_run[float], <size_t>&adamax_run[double]),
        ("adamax_decay", <size_t>&adamax_decay_run[float], <size_t>&adamax_decay_run[double]),
        ("adadelta", <size_t>&adadelta_run[float], <size_t>&adadelta_run[double]),
        ("adadelta_decay", <size_t>&adadelta_decay_run[float], <size_t>&adadelta_decay_run[double]),
    ], 4)
