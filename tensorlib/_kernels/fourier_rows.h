/* Fourier transforms of rows in memory: of complex numbers, of real ones, and to real ones.

   Included once for each type after fourier.h. An even number of real numbers is transformed as
   half as many complex ones, whose transform holds those of the even and of the odd places. */

/* ---- rows that are long enough to be tables ---- */

static ptrdiff_t NAME(turns_count)(const Plan* plan) {      /* points for each group of columns */
    ptrdiff_t fine = plan->fine;
    return fine == 0 ? plan->first.n : fine + (plan->first.n + fine - 1) / fine;
}

/* The columns of some groups: T[k][j], with rows of `pitch` numbers, := the transforms of the
   columns, turned */
static void NAME(columns)(const Plan* plan, Place of, char* table, ptrdiff_t pitch,
                          ptrdiff_t begin, ptrdiff_t end, POINT* rooms) {
    ptrdiff_t rows = plan->first.n, columns = plan->second.n, group;
    POINT *x = rooms, *y = rooms + rows, *z;
    Place place = {of.at, of.point * columns, of.point, of.part, of.turned};
    Place into = {table, 2 * sizeof(REAL) * pitch, 2 * sizeof(REAL), sizeof(REAL), 0};
    for (group = begin; group < end; group++) {
        const POINT* turns = (const POINT*)plan->turns + group * NAME(turns_count)(plan);
        ptrdiff_t left = columns - group * LANES;
        place.at = of.at + group * LANES * of.point;
        into.at = table + group * LINE;
        NAME(load)(place, left < LANES ? (int)left : LANES, y, rows);
        z = NAME(passes)(&plan->first, y, x, y);
        if (plan->fine == 0)
            for (ptrdiff_t k = 0; k < rows; k++)
                z[k] = NAME(turned)(z[k], turns[k].re, turns[k].im);
        else
            for (ptrdiff_t k = 0; k < rows; k += plan->fine) {
                POINT coarse = turns[plan->fine + k / plan->fine];
                for (ptrdiff_t i = 0; i < plan->fine && k + i < rows; i++) {
                    POINT turn = NAME(turned)(coarse, turns[i].re, turns[i].im);
                    z[k + i] = NAME(turned)(z[k + i], turn.re, turn.im);
                }
            }
        NAME(store)(into, LANES, z, rows, 1);
    }
}

/* The rows of some groups: y[k1 + rows * k2] := the transforms of the table's rows times a factor,
   of the first `wanted` numbers */
static void NAME(rows)(const Plan* plan, const char* table, ptrdiff_t pitch, Place of,
                       ptrdiff_t wanted, REAL factor, ptrdiff_t begin, ptrdiff_t end,
                       POINT* rooms) {
    ptrdiff_t rows = plan->first.n, columns = plan->second.n, group;
    POINT *x = rooms, *y = rooms + columns, *z;
    Place place = {(char*)table, 2 * sizeof(REAL), 2 * sizeof(REAL) * pitch, sizeof(REAL), 0};
    Place into = {of.at, of.point * rows, of.point, of.part, of.turned};
    for (group = begin; group < end; group++) {
        ptrdiff_t first = group * LANES, left = rows - first, complete;
        int lanes = left < LANES ? (int)left : LANES;
        place.at = (char*)table + first * place.lane;
        into.at = of.at + first * of.point;
        NAME(load)(place, lanes, y, columns);
        z = NAME(passes)(&plan->second, y, x, y);
        complete = wanted < first + lanes ? 0 : (wanted - first - lanes) / rows + 1;
        NAME(store)(into, lanes, z, complete, factor);
        left = wanted - first - complete * rows;       /* of the point after these, if any */
        if (complete < columns && left > 0) {
            into.at += complete * into.point;
            NAME(store)(into, (int)left, z + complete, 1, factor);
        }
    }
}

/* ---- real numbers ---- */

/* Of a = z[k] and b = z[n - k], with z the transform of x[2 j] + i x[2 j + 1], twice the transform
   of the x at k and at n - k; c and s are the cosine and the sine of pi k / n, and -c goes back */
INLINE void NAME(unravel)(POINT* a, POINT* b, VEC c, VEC s) {
    VEC e_re = a->re + b->re, e_im = a->im - b->im, d_re = a->re - b->re, d_im = a->im + b->im;
    VEC o_re = c * d_im - s * d_re, o_im = -(c * d_re + s * d_im);
    *a = (POINT){e_re + o_re, e_im + o_im};
    *b = (POINT){e_re - o_re, o_im - e_im};
}

/* The same of n + 1 points in place, of which the first stands for the last one, too; `back`: of
   transforms, with their parts exchanged */
static void NAME(unravel_points)(POINT* x, ptrdiff_t n, const REAL* angles, int back,
                                 int conjugate) {
    POINT first = x[0];
    VEC none = NAME(all)(0), sign = NAME(all)(conjugate ? -1 : 1);
    if (back) {
        x[0] = (POINT){first.re - x[n].re, first.re + x[n].re};
    } else {
        x[0] = (POINT){2 * (first.re + first.im), none};
        x[n] = (POINT){2 * (first.re - first.im), none};
    }
    for (ptrdiff_t k = 1; k <= n / 2; k++) {
        POINT a = x[k], b = x[n - k];
        VEC c = NAME(all)(back ? -angles[k] : angles[k]), s = NAME(all)(angles[n / 2 + 1 + k]);
        if (back) a.im *= sign, b.im *= sign;
        NAME(unravel)(&a, &b, c, s);
        if (!back) a.im *= sign, b.im *= sign;
        x[k] = NAME(exchanged)(a, back);
        x[n - k] = NAME(exchanged)(b, back);
    }
}

INLINE REAL NAME(number)(const char* at) {
    REAL x;
    __builtin_memcpy(&x, at, sizeof(x));
    return x;
}

INLINE void NAME(put)(Place to, ptrdiff_t k, REAL re, REAL im) {
    __builtin_memcpy(to.at + k * to.point, &re, sizeof(re));
    __builtin_memcpy(to.at + k * to.point + to.part, &im, sizeof(im));
}

/* The same of a row of memory, into another one or itself, times a factor, parts as they are */
static void NAME(unravel_row)(Place from, Place to, ptrdiff_t n, const REAL* angles, int back,
                              int conjugate, REAL factor) {
    const REAL first = NAME(number)(from.at);
    const REAL other = NAME(number)(back ? from.at + n * from.point : from.at + from.part);
    const VEC sign = NAME(all)(conjugate ? -1 : 1), sense = NAME(all)(back ? -1 : 1);
    if (back) {
        NAME(put)(to, 0, factor * (first + other), factor * (first - other));
    } else {
        NAME(put)(to, 0, 2 * factor * (first + other), 0);
        NAME(put)(to, n, 2 * factor * (first - other), 0);
    }
    for (ptrdiff_t k = 1; k <= n / 2; k += LANES) {
        ptrdiff_t mirrored = n - k - LANES + 1, left = n / 2 + 1 - k;
        int apart = k + LANES - 1 < mirrored;          /* the blocks have no place in common */
        Place at = {from.at + k * from.point, 0, from.point, from.part, 0};
        Place across = {from.at + mirrored * from.point, 0, from.point, from.part, 0};
        Place to_at = {to.at + k * to.point, 0, to.point, to.part, 0};
        Place to_across = {to.at + mirrored * to.point, 0, to.point, to.part, 0};
        POINT a, b;
        NAME(load)(at, LANES, &a, 1);
        NAME(load)(across, LANES, &b, 1);
        b = (POINT){SHUFFLE(MASK, b.re, b.re, REVERSE), SHUFFLE(MASK, b.im, b.im, REVERSE)};
        if (back) a.im *= sign, b.im *= sign;
        NAME(unravel)(&a, &b, sense * NAME(ordered)(LOAD(angles + k)),
                      NAME(ordered)(LOAD(angles + n / 2 + 1 + k)));
        if (!back) a.im *= sign, b.im *= sign;
        if (apart) {
            b = (POINT){SHUFFLE(MASK, b.re, b.re, REVERSE), SHUFFLE(MASK, b.im, b.im, REVERSE)};
            NAME(store)(to_at, LANES, &a, 1, factor);
            NAME(store)(to_across, LANES, &b, 1, factor);
        } else {
            int lanes = left < LANES ? (int)left : LANES;
            to_across.at = to.at + (n - k) * to.point;
            to_across.lane = -to.point;
            NAME(store)(to_at, lanes, &a, 1, factor);
            NAME(store)(to_across, lanes, &b, 1, factor);
        }
    }
}

/* All numbers of an odd count whose first half is known, with their parts exchanged for `back` */
static void NAME(mirror_points)(POINT* x, ptrdiff_t n, int back) {
    x[0] = NAME(exchanged)((POINT){x[0].re, NAME(all)(0)}, back);
    for (ptrdiff_t k = 1; k <= n / 2; k++) {
        POINT a = x[k];
        x[k] = NAME(exchanged)(a, back);
        x[n - k] = NAME(exchanged)((POINT){a.re, -a.im}, back);
    }
}

static void NAME(mirror_row)(Place from, Place to, ptrdiff_t n) {
    NAME(put)(to, 0, NAME(number)(from.at), 0);
    for (ptrdiff_t k = 1; k <= n / 2; k++) {
        const char* at = from.at + k * from.point;
        NAME(put)(to, k, NAME(number)(at), NAME(number)(at + from.part));
        NAME(put)(to, n - k, NAME(number)(at), -NAME(number)(at + from.part));
    }
}

/* ---- transforms ---- */

/* real numbers, two by two as parts of complex ones, or as real parts alone where n is odd */
INLINE Place NAME(paired)(Place of, ptrdiff_t n) {
    if (n % 2) of.part = 0;
    else of.part = of.point, of.point *= 2;
    return of;
}

/* of up to LANES rows at once */
static void NAME(at_once)(const Job* job, Place from, Place to, int lanes, POINT* rooms) {
    const Plan* plan = job->plan;
    ptrdiff_t n = plan->n, half = job->n / 2;
    POINT *x = rooms, *y = rooms + n + 1, *z;
    int even = job->n % 2 == 0, back = job->backward;
    REAL factor = (REAL)job->factor;
    if (job->kind == COMPLEX_TO_COMPLEX) {
        from.turned = to.turned = back;
        NAME(load)(from, lanes, y, n);
        NAME(store)(to, lanes, NAME(passes)(&plan->first, y, x, y), n, factor);
    } else if (job->kind == REAL_TO_HALF) {
        from = NAME(paired)(from, job->n);
        from.turned = to.turned = back && !even;
        NAME(load)(from, lanes, y, n);
        z = NAME(passes)(&plan->first, y, x, y);
        if (even) NAME(unravel_points)(z, n, plan->angles, 0, back);
        NAME(store)(to, lanes, z, half + 1, even ? factor / 2 : factor);
    } else {
        NAME(load)(from, lanes, y, half + 1);
        if (even) NAME(unravel_points)(y, n, plan->angles, 1, !back);
        else NAME(mirror_points)(y, n, back);
        to = NAME(paired)(to, job->n);
        to.turned = even || back;
        NAME(store)(to, lanes, NAME(passes)(&plan->first, y, x, y), n, factor);
    }
}

/* bytes of two rooms for points, and of a table with a row of complex numbers */
static ptrdiff_t NAME(pitch)(const Plan* plan) {
    return (plan->second.n + 2 * LANES - 1) / LANES * LANES;
}

static ptrdiff_t NAME(points_size)(const Plan* plan) {
    ptrdiff_t longest = plan->first.n > plan->second.n ? plan->first.n : plan->second.n;
    return 2 * (longest + (plan->second.n == 1)) * LINE;
}

static ptrdiff_t NAME(table_size)(const Plan* plan) {
    return plan->second.n == 1 ? 0
        : 2 * (ptrdiff_t)sizeof(REAL) * (plan->first.n * NAME(pitch)(plan) + plan->n);
}

/* The parts of a transform of one row by a table, one after another: what is done before it, to
   some groups of its columns, to some groups of its rows, and what is done after it. */
static void NAME(part)(const Job* job, Place from, Place to, int part, ptrdiff_t begin,
                       ptrdiff_t end, char* shared, char* rooms) {
    const Plan* plan = job->plan;
    ptrdiff_t pitch = NAME(pitch)(plan), wanted = plan->n;
    int even = job->n % 2 == 0, back = job->backward, unravels = 0;
    Place row = {shared + 2 * (ptrdiff_t)sizeof(REAL) * plan->first.n * pitch, 2 * sizeof(REAL), 0,
                 sizeof(REAL), 0};
    Place out = to;
    if (job->kind == COMPLEX_TO_COMPLEX) {
        from.turned = to.turned = back;
    } else if (job->kind == REAL_TO_HALF) {
        from = NAME(paired)(from, job->n);
        from.turned = to.turned = back && !even;
        unravels = even;
        if (!even) wanted = job->n / 2 + 1;
    } else {
        if (part == 0 && even) NAME(unravel_row)(from, row, plan->n, plan->angles, 1, !back, 1);
        else if (part == 0) NAME(mirror_row)(from, row, job->n);
        from = row;
        to = NAME(paired)(to, job->n);
        from.turned = to.turned = even || back;
    }
    if (part == 1)
        NAME(columns)(plan, from, shared, pitch, begin, end, (POINT*)rooms);
    else if (part == 2)
        NAME(rows)(plan, shared, pitch, to, wanted, unravels ? 1 : (REAL)job->factor, begin, end,
                   (POINT*)rooms);
    else if (part == 3 && unravels)
        NAME(unravel_row)(out, out, plan->n, plan->angles, 0, back, (REAL)job->factor / 2);
}

/* of some rows; `room` has first the bytes for points, then those for a table */
static void NAME(transform)(const Job* job, ptrdiff_t count, char* room) {
    const Plan* plan = job->plan;
    Place from = job->from, to = job->to;
    int together = plan->second.n == 1 ? LANES : 1;
    ptrdiff_t groups[4] = {1, (plan->second.n + LANES - 1) / LANES,
                            (plan->first.n + LANES - 1) / LANES, 1};
    for (ptrdiff_t row = 0; row < count; row += together) {
        from.at = job->from.at + row * from.lane;
        to.at = job->to.at + row * to.lane;
        if (together == 1)
            for (int part = 0; part < 4; part++)
                NAME(part)(job, from, to, part, 0, groups[part], room + NAME(points_size)(plan),
                           room);
        else
            NAME(at_once)(job, from, to, count - row < LANES ? (int)(count - row) : LANES,
                          (POINT*)room);
    }
}

#undef LANES
#undef HALF
#undef VEC
#undef POINT
#undef MASK
#undef LOAD
#undef STORE
