"""The steps of optimisers as one loop each, held equal to their formulas.

`operands` are the gradient, the states and the parameter, contiguous runs of n elements of one
dtype. The states and the parameter are written, and no two of all these overlap. `numbers` are
those of the formula. Each loop is compiled once for each kind of weight decay and momentum, which
tags choose: pointers to types without values, of which callers give NULL.
"""

from tensorlib._kernels.vecmath.basics cimport floating, sqrt

from tensorlib._kernels import FLOATS, rows_for

ctypedef struct Plain:
    char unused
ctypedef struct Decayed:         # the gradient takes the weight decay
    char unused
ctypedef struct Decoupled:       # the parameter itself does
    char unused
ctypedef struct Averaged:        # the mean of the gradients is the step
    char unused
ctypedef struct AveragedDecayed:
    char unused
ctypedef struct Nesterov:        # the gradient and the mean are
    char unused
ctypedef struct NesterovDecayed:
    char unused

ctypedef fused Decay:
    Plain
    Decayed

ctypedef fused AnyDecay:
    Plain
    Decayed
    Decoupled

ctypedef fused Descent:
    Plain
    Decayed
    Averaged
    AveragedDecayed
    Nesterov
    NesterovDecayed

# ---- gradient descent ----------------------------------------------------------------------------

cdef void sgd(Descent* tag, floating** operands, const double* numbers,
              Py_ssize_t n) noexcept nogil:
    """g := g + decay p;  m := momentum m + new g;  p := p - lr (g, m or g + momentum m)"""
    cdef bint decayed = Descent is Decayed or Descent is AveragedDecayed or (
        Descent is NesterovDecayed)
    cdef bint nesterov = Descent is Nesterov or Descent is NesterovDecayed
    cdef bint averaged = nesterov or Descent is Averaged or Descent is AveragedDecayed
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


# ---- running means of squares --------------------------------------------------------------------

cdef void adam(AnyDecay* tag, floating** operands, const double* numbers,
               Py_ssize_t n) noexcept nogil:
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
        x = kept * p[i] if AnyDecay is Decoupled else p[i]
        g = gradients[i] + decay * x if AnyDecay is Decayed else gradients[i]
        m = means[i] + new1 * (g - means[i])
        v = beta2 * squares[i] + new2 * (g * g)
        means[i] = m
        squares[i] = v
        p[i] = x - size * (m / (scale * sqrt(v) + eps))


cdef void rmsprop(Decay* tag, floating** operands, const double* numbers,
                  Py_ssize_t n) noexcept nogil:
    """v := alpha v + new g g;  p := p - lr g / (sqrt(v) + eps)"""
    cdef const floating* gradients = operands[0]
    cdef floating* squares = operands[1]
    cdef floating* p = operands[2]
    cdef floating alpha = <floating>numbers[0], new = <floating>numbers[1]
    cdef floating eps = <floating>numbers[2], lr = <floating>numbers[3]
    cdef floating decay = <floating>numbers[4], g, v
    cdef Py_ssize_t i
    for i in range(n):
        g = gradients[i] + decay * p[i] if Decay is Decayed else gradients[i]
        v = alpha * squares[i] + new * (g * g)
        squares[i] = v
        p[i] = p[i] - lr * (g / (sqrt(v) + eps))


# ---- those that are used less --------------------------------------------------------------------

cdef void nadam(Decay* tag, floating** operands, const double* numbers,
                Py_ssize_t n) noexcept nogil:
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
        g = gradients[i] + decay * p[i] if Decay is Decayed else gradients[i]
        m = means[i] + new1 * (g - means[i])
        v = beta2 * squares[i] + new2 * (g * g)
        means[i] = m
        squares[i] = v
        p[i] = p[i] - (g * of_g + m * of_m) / (scale * sqrt(v) + eps)


cdef void adamax(Decay* tag, floating** operands, const double* numbers,
                 Py_ssize_t n) noexcept nogil:
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
        g = gradients[i] + decay * p[i] if Decay is Decayed else gradients[i]
        m = means[i] + new * (g - means[i])
        v = beta2 * largest[i]
        x = g if g > 0 else -g
        x = x + eps
        v = x if v <= x else v
        v = x if x != x else v
        means[i] = m
        largest[i] = v
        p[i] = p[i] - size * (m / v)


cdef void adagrad(Decay* tag, floating** operands, const double* numbers,
                  Py_ssize_t n) noexcept nogil:
    """v := v + g g;  p := p - rate g / (sqrt(v) + eps)"""
    cdef const floating* gradients = operands[0]
    cdef floating* sums = operands[1]
    cdef floating* p = operands[2]
    cdef floating rate = <floating>numbers[0], eps = <floating>numbers[1]
    cdef floating decay = <floating>numbers[2]
    cdef floating g, v
    cdef Py_ssize_t i
    for i in range(n):
        g = gradients[i] + decay * p[i] if Decay is Decayed else gradients[i]
        v = sums[i] + g * g
        sums[i] = v
        p[i] = p[i] - rate * (g / (sqrt(v) + eps))


cdef void adadelta(Decay* tag, floating** operands, const double* numbers,
                   Py_ssize_t n) noexcept nogil:
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
        g = gradients[i] + decay * p[i] if Decay is Decayed else gradients[i]
        v = rho * squares[i] + new * (g * g)
        d = sqrt(steps[i] + eps) / sqrt(v + eps) * g
        squares[i] = v
        steps[i] = rho * steps[i] + new * (d * d)
        p[i] = p[i] - lr * d


cdef void asgd(Decay* tag, floating** operands, const double* numbers,
               Py_ssize_t n) noexcept nogil:
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
        g = gradients[i] + decay * p[i] if Decay is Decayed else gradients[i]
        x = kept * p[i] - rate * g
        means[i] = rest * means[i] + weight * x
        p[i] = x


def table():
    """(name, dtypes of the operands, output dtype, address) of every loop"""
    return rows_for(FLOATS, [
        ("sgd", <size_t>&sgd[Plain, float], <size_t>&sgd[Plain, double]),
        ("sgd_decay", <size_t>&sgd[Decayed, float], <size_t>&sgd[Decayed, double]),
    ], 2) + rows_for(FLOATS, [
        ("sgd_momentum", <size_t>&sgd[Averaged, float], <size_t>&sgd[Averaged, double]),
        ("sgd_momentum_decay", <size_t>&sgd[AveragedDecayed, float],
         <size_t>&sgd[AveragedDecayed, double]),
        ("sgd_nesterov", <size_t>&sgd[Nesterov, float], <size_t>&sgd[Nesterov, double]),
        ("sgd_nesterov_decay", <size_t>&sgd[NesterovDecayed, float],
         <size_t>&sgd[NesterovDecayed, double]),
        ("rmsprop", <size_t>&rmsprop[Plain, float], <size_t>&rmsprop[Plain, double]),
        ("rmsprop_decay", <size_t>&rmsprop[Decayed, float], <size_t>&rmsprop[Decayed, double]),
        ("adagrad", <size_t>&adagrad[Plain, float], <size_t>&adagrad[Plain, double]),
        ("adagrad_decay", <size_t>&adagrad[Decayed, float], <size_t>&adagrad[Decayed, double]),
        ("asgd", <size_t>&asgd[Plain, float], <size_t>&asgd[Plain, double]),
        ("asgd_decay", <size_t>&asgd[Decayed, float], <size_t>&asgd[Decayed, double]),
    ], 3) + rows_for(FLOATS, [
        ("adam", <size_t>&adam[Plain, float], <size_t>&adam[Plain, double]),
        ("adam_decay", <size_t>&adam[Decayed, float], <size_t>&adam[Decayed, double]),
        ("adamw", <size_t>&adam[Decoupled, float], <size_t>&adam[Decoupled, double]),
        ("nadam", <size_t>&nadam[Plain, float], <size_t>&nadam[Plain, double]),
        ("nadam_decay", <size_t>&nadam[Decayed, float], <size_t>&nadam[Decayed, double]),
        ("adamax", <size_t>&adamax[Plain, float], <size_t>&adamax[Plain, double]),
        ("adamax_decay", <size_t>&adamax[Decayed, float], <size_t>&adamax[Decayed, double]),
        ("adadelta", <size_t>&adadelta[Plain, float], <size_t>&adadelta[Plain, double]),
        ("adadelta_decay", <size_t>&adadelta[Decayed, float], <size_t>&adadelta[Decayed, double]),
    ], 4)
