/* Fourier transforms of any number of points, as convolutions with chirps.

   Included by fourier_rows.h. With w[k] = exp(-pi i k^2 / n) the transform of x is w times the
   convolution of w x with the conjugates of w, which a plan of twice as many points computes.
   Source: L. I. Bluestein, A linear filtering approach to the computation of discrete Fourier
   transform, 1970. */

/* y := a * b of n complex numbers, whose imaginary parts get the sign */
INLINE void NAME(times)(const REAL* a, const REAL* b, REAL* y, ptrdiff_t n, REAL sign) {
    for (ptrdiff_t i = 0; i < n; i++) {
        REAL re = a[2 * i] * b[2 * i] - a[2 * i + 1] * b[2 * i + 1];
        REAL im = a[2 * i] * b[2 * i + 1] + a[2 * i + 1] * b[2 * i];
        y[2 * i] = re;
        y[2 * i + 1] = sign * im;
    }
}

/* y := the n numbers of a row, as complex ones; of half a spectrum all of it */
static void NAME(take)(const Job* job, const char* at, REAL* y) {
    ptrdiff_t n = job->n, count = job->kind == HALF_TO_REAL ? n / 2 + 1 : n, step = job->from.point;
    REAL sign = job->backward ? -1 : 1;
    for (ptrdiff_t k = 0; k < count; k++) {
        y[2 * k] = NAME(number)(at + k * step);
        y[2 * k + 1] = job->kind == REAL_TO_HALF ? 0
            : sign * NAME(number)(at + k * step + sizeof(REAL));
    }
    if (job->kind != HALF_TO_REAL) return;
    y[1] = 0;
    if (n % 2 == 0) y[n + 1] = 0;
    for (ptrdiff_t k = count; k < n; k++) {
        y[2 * k] = y[2 * (n - k)];
        y[2 * k + 1] = -y[2 * (n - k) + 1];
    }
}

/* the transform of a row, of which y is the conjugate before it is multiplied by the chirp */
static void NAME(give)(const Job* job, const REAL* y, char* at) {
    const REAL* w = (const REAL*)job->plan->chirp;
    ptrdiff_t count = job->kind == REAL_TO_HALF ? job->n / 2 + 1 : job->n, step = job->to.point;
    REAL factor = (REAL)job->factor, sign = job->backward ? -factor : factor;
    for (ptrdiff_t k = 0; k < count; k++) {
        REAL re = factor * (y[2 * k] * w[2 * k] + y[2 * k + 1] * w[2 * k + 1]);
        REAL im = sign * (y[2 * k] * w[2 * k + 1] - y[2 * k + 1] * w[2 * k]);
        __builtin_memcpy(at + k * step, &re, sizeof(re));
        if (job->kind != HALF_TO_REAL)
            __builtin_memcpy(at + k * step + sizeof(re), &im, sizeof(im));
    }
}

/* how many rows the plan of the convolution takes at once */
static int NAME(chirps)(const Plan* plan) {
    return plan->inner->striped ? LANES / (int)plan->inner->second.n : 1;
}

static ptrdiff_t NAME(chirp_size)(const Plan* plan) {
    return ROOM * NAME(chirps)(plan) * ((plan->inner->n + LANES - 1) / LANES * LANES);
}

static void NAME(transform)(const Job* job, ptrdiff_t count, char* room);

/* of some rows; the room has first their numbers, then what the other plan needs */
static void NAME(chirped)(const Job* job, ptrdiff_t count, char* room) {
    const Plan* plan = job->plan;
    ptrdiff_t n = plan->n, m = plan->inner->n, most = NAME(chirps)(plan);
    const REAL *w = (const REAL*)plan->chirp, *spectrum = w + 2 * n;
    REAL* x = (REAL*)room;
    Place place = {room, ROOM, ROOM * m, sizeof(REAL), 0};
    Job inner = {plan->inner, COMPLEX_TO_COMPLEX, 0, m, 1, place, place};
    room += NAME(chirp_size)(plan);
    for (ptrdiff_t row = 0; row < count; row += most) {
        ptrdiff_t rows = count - row < most ? count - row : most, i;
        for (i = 0; i < rows; i++) {
            REAL* y = x + 2 * m * i;
            NAME(take)(job, job->from.at + (row + i) * job->from.lane, y);
            NAME(times)(y, w, y, n, 1);
            __builtin_memset(y + 2 * n, 0, ROOM * (m - n));
        }
        NAME(transform)(&inner, rows, room);
        for (i = 0; i < rows; i++)
            NAME(times)(x + 2 * m * i, spectrum, x + 2 * m * i, m, -1);
        NAME(transform)(&inner, rows, room);
        for (i = 0; i < rows; i++)
            NAME(give)(job, x + 2 * m * i, job->to.at + (row + i) * job->to.lane);
    }
}

/* the spectrum of the conjugate chirp, which follows the chirp */
static void NAME(fill_spectrum)(const Plan* plan, char* room) {
    ptrdiff_t n = plan->n, m = plan->inner->n;
    REAL *w = (REAL*)plan->chirp, *y = w + 2 * n;
    Place place = {(char*)y, ROOM, 0, sizeof(REAL), 0};
    Job inner = {plan->inner, COMPLEX_TO_COMPLEX, 0, m, 1.0 / m, place, place};
    __builtin_memset(y, 0, ROOM * m);
    for (ptrdiff_t k = 0; k < n; k++) {
        ptrdiff_t across = k ? m - k : 0;
        y[2 * k] = y[2 * across] = w[2 * k];
        y[2 * k + 1] = y[2 * across + 1] = -w[2 * k + 1];
    }
    NAME(transform)(&inner, 1, room);
}
