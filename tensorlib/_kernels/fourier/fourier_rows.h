/* Fourier transforms of rows in memory: of complex numbers, of real ones, and to real ones.

   Included once for each type after fourier.h. An even number of real numbers is transformed as
   half as many complex ones, whose transform holds those of the even and of the odd places. */

/* The transforms of points of memory, in one of two rooms or, in several passes, in memory */
static POINT* NAME(passes_from)(const Passes* of, Place from, int lanes, ptrdiff_t ahead,
                                const BESIDE* to, POINT* rooms) {
    POINT *x = rooms, *y = rooms + of->n + 1;
    BESIDE source = NAME(beside_of)(from, ahead, 1);
    int reads = of->count > 1 && DIRECT(of->factors[0]) && NAME(lie_beside)(from, lanes);
    if (!reads) NAME(load)(from, lanes, y, of->n);
    return NAME(passes)(of, reads ? &source : NULL, to, y, x, y);
}

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
    POINT* z;
    Place place = {of.at, of.point * columns, of.point, of.part, of.turned};
    Place into = {table, ROOM * pitch, ROOM, sizeof(REAL), 0};
    for (group = begin; group < end; group++) {
        const POINT* turns = (const POINT*)plan->turns + group * NAME(turns_count)(plan);
        ptrdiff_t left = columns - group * LANES;
        place.at = of.at + group * LANES * of.point;
        into.at = table + group * LINE;
        z = NAME(passes_from)(&plan->first, place, left < LANES ? (int)left : LANES,
                              SOON * place.point, NULL, rooms);
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
    POINT* z;
    Place place = {(char*)table, ROOM, ROOM * pitch, sizeof(REAL), 0};
    Place into = {of.at, of.point * rows, of.point, of.part, of.turned};
    for (group = begin; group < end; group++) {
        ptrdiff_t first = group * LANES, left = rows - first, complete;
        int lanes = left < LANES ? (int)left : LANES;
        place.at = (char*)table + first * place.lane;
        into.at = of.at + first * of.point;
        z = NAME(passes_from)(&plan->second, place, lanes, 0, NULL, rooms);
        complete = wanted < first + lanes ? 0 : (wanted - first - lanes) / rows + 1;
        NAME(store)(into, lanes, z, complete, factor);
        left = wanted - first - complete * rows;       /* of the point after these, if any */
        if (complete < columns && left > 0) {
            into.at += complete * into.point;
            NAME(store)(into, (int)left, z + complete, 1, factor);
        }
    }
}

/* ---- rows whose points the lanes share ---- */

/* a point of the same place in `count` rows, or less than `together`, that share the lanes */
INLINE POINT NAME(joined)(const char* at, ptrdiff_t row, const int together, int count) {
    const char* other = at + (count > 1 ? row : 0);
    _Pragma("GCC unroll 4")
    for (int i = 0; i < together; i++) __builtin_prefetch(at + (together + i) * row, 0, 2);
    if (together == 2) return NAME(split)(LOAD(at), LOAD(other));
    const char* third = at + (count > 2 ? 2 * row : 0);
    const char* fourth = at + (count > 3 ? 3 * row : 0);
    return NAME(split)(NAME(of_halves)(at, other), NAME(of_halves)(third, fourth));
}

/* The transforms of `count` rows, which are as many as fill the lanes or less, times a factor: of
   their columns by passes, and of their rows in registers. */
INLINE void NAME(stripes)(const Plan* plan, Place from, Place to, const int together, int count,
                          REAL factor, POINT* rooms) {
    const int columns = LANES / together;
    ptrdiff_t rows = plan->first.n, k;
    const POINT* turns = (const POINT*)plan->turns;
    POINT *y = rooms + rows + 1, *z;
    Place place = {from.at, ROOM * columns, ROOM, sizeof(REAL), from.turned};
    BESIDE target = NAME(beside_of)(to, to.lane * together, factor);
    VEC sign = NAME(sign)(from.turned);
    if (together == 1) {
        z = NAME(passes_from)(&plan->first, place, LANES, from.lane, NULL, rooms);
    } else {
        for (k = 0; k < rows; k++) {
            y[k] = NAME(joined)(from.at + k * place.point, from.lane, together, count);
            y[k].im *= sign;
        }
        z = NAME(passes)(&plan->first, NULL, NULL, y, rooms, y);
    }
    for (ptrdiff_t begin = 0; begin < rows; begin += LANES) {
        POINT a[LANES];
        VEC re[LANES], im[LANES];
        k = begin + LANES <= rows ? begin : rows - LANES;
        _Pragma("GCC unroll 16")
        for (int i = 0; i < LANES; i++) {
            POINT b = NAME(turned)(z[k + i], turns[k + i].re, turns[k + i].im);
            re[i] = b.re, im[i] = b.im;
        }
        NAME(transpose_parts)(re);
        NAME(transpose_parts)(im);
        _Pragma("GCC unroll 16")
        for (int l = 0; l < LANES; l++) a[l] = (POINT){re[l], im[l]};
        _Pragma("GCC unroll 8")
        for (int row = 0; row < together; row++) {
            if (row == count) break;
            POINT* b = a + row * columns;
            if (columns == 2) NAME(of_2)(b);
            else if (columns == 4) NAME(of_4)(b);
            else if (columns == 8) NAME(of_8)(b);
#if LANES == 16
            else NAME(of_16)(b);
#endif
            target.at = to.at + row * to.lane;
            _Pragma("GCC unroll 16")
            for (int j = 0; j < columns; j++) NAME(write)(&target, k + rows * j, b[j]);
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
   transforms, conjugated */
static void NAME(unravel_points)(POINT* x, ptrdiff_t n, const REAL* angles, int back,
                                 int conjugate) {
    POINT first = x[0];
    VEC none = NAME(all)(0), sign = NAME(sign)(conjugate), sense = NAME(sign)(back);
    if (back) {
        x[0] = (POINT){first.re + x[n].re, x[n].re - first.re};
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
        x[k] = (POINT){a.re, a.im * sense};
        x[n - k] = (POINT){b.re, b.im * sense};
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
    const VEC sign = NAME(sign)(conjugate), sense = NAME(sign)(back);
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

/* The same of a row of 2 LANES numbers or more, side by side, into other memory: the last block
   begins in the one before it, if it has to */
static void NAME(unravel_side)(const char* from, char* to, ptrdiff_t n, const REAL* angles,
                               int back, int conjugate, REAL factor) {
    const Place target = {to, ROOM, 0, sizeof(REAL), 0};
    const VEC sign = NAME(sign)(conjugate), sense = NAME(sign)(back), all = NAME(all)(factor);
    const REAL first = NAME(number)(from);
    const REAL other = NAME(number)(back ? from + n * ROOM : from + sizeof(REAL));
    const VEC before = back ? sign : NAME(all)(1), after = back ? all : all * sign;
    if (back) {
        NAME(put)(target, 0, factor * (first + other), factor * (first - other));
    } else {
        NAME(put)(target, 0, 2 * factor * (first + other), 0);
        NAME(put)(target, n, 2 * factor * (first - other), 0);
    }
    for (ptrdiff_t begin = 1; begin <= n / 2; begin += LANES) {
        ptrdiff_t k = begin + LANES <= n / 2 + 1 ? begin : n / 2 + 1 - LANES;
        ptrdiff_t mirrored = n - k - LANES + 1;
        const char *low = from + k * ROOM, *high = from + mirrored * ROOM;
        POINT a = NAME(split)(LOAD(low), LOAD(low + LINE / 2));
        POINT b = NAME(split)(LOAD(high), LOAD(high + LINE / 2));
        b = (POINT){SHUFFLE(MASK, b.re, b.re, REVERSE), SHUFFLE(MASK, b.im, b.im, REVERSE)};
        a.im *= before, b.im *= before;
        NAME(unravel)(&a, &b, sense * NAME(ordered)(LOAD(angles + k)),
                      NAME(ordered)(LOAD(angles + n / 2 + 1 + k)));
        b = (POINT){SHUFFLE(MASK, b.re, b.re, REVERSE), SHUFFLE(MASK, b.im, b.im, REVERSE)};
        a = (POINT){a.re * all, a.im * after}, b = (POINT){b.re * all, b.im * after};
        char *to_low = to + k * ROOM, *to_high = to + mirrored * ROOM;
        STORE(to_low, NAME(lower)(a));
        STORE(to_low + LINE / 2, NAME(upper)(a));
        STORE(to_high, NAME(lower)(b));
        STORE(to_high + LINE / 2, NAME(upper)(b));
    }
}

/* All numbers of an odd count whose first half is known, conjugated for `back` */
static void NAME(mirror_points)(POINT* x, ptrdiff_t n, int back) {
    VEC sign = NAME(sign)(back);
    x[0].im = NAME(all)(0);
    for (ptrdiff_t k = 1; k <= n / 2; k++) {
        POINT a = x[k];
        x[k].im = a.im * sign;
        x[n - k] = (POINT){a.re, -x[k].im};
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
        BESIDE target = NAME(beside_of)(to, SOON * to.point, factor);
        int writes = plan->first.count > 1 && NAME(lie_beside)(to, lanes)
            && DIRECT(plan->first.factors[plan->first.count - 1]);
        z = NAME(passes_from)(&plan->first, from, lanes, SOON * from.point,
                              writes ? &target : NULL, rooms);
        if (!writes) NAME(store)(to, lanes, z, n, factor);
    } else if (job->kind == REAL_TO_HALF) {
        from = NAME(paired)(from, job->n);
        from.turned = to.turned = back && !even;
        NAME(load)(from, lanes, y, n);
        z = NAME(passes)(&plan->first, NULL, NULL, y, x, y);
        if (even) NAME(unravel_points)(z, n, plan->angles, 0, back);
        NAME(store)(to, lanes, z, half + 1, even ? factor / 2 : factor);
    } else {
        NAME(load)(from, lanes, y, half + 1);
        if (even) NAME(unravel_points)(y, n, plan->angles, 1, !back);
        else NAME(mirror_points)(y, n, back);
        to = NAME(paired)(to, job->n);
        to.turned = even || back;
        NAME(store)(to, lanes, NAME(passes)(&plan->first, NULL, NULL, y, x, y), n, factor);
    }
}

/* bytes of two rooms for points, and of a table with a row of complex numbers */
static ptrdiff_t NAME(pitch)(const Plan* plan) {
    return (plan->second.n + 2 * LANES - 1) / LANES * LANES;
}

static ptrdiff_t NAME(chirp_size)(const Plan* plan);

static ptrdiff_t NAME(points_size)(const Plan* plan) {
    if (plan->inner) return NAME(chirp_size)(plan) + NAME(points_size)(plan->inner);
    ptrdiff_t longest = plan->first.n > plan->second.n ? plan->first.n : plan->second.n;
    return 2 * (longest + 1) * LINE;
}

/* bytes of a table, and of the row that half a spectrum is completed to */
static ptrdiff_t NAME(table_size)(const Plan* plan, int kind) {
    if (plan->inner) return NAME(table_size)(plan->inner, COMPLEX_TO_COMPLEX);
    if (plan->second.n == 1) return 0;
    if (plan->striped) return LANES / plan->second.n * plan->n * ROOM;
    return ROOM * (plan->first.n * NAME(pitch)(plan) + (kind == HALF_TO_REAL ? plan->n : 0));
}

/* of some rows whose points the lanes share; the room for points comes first */
static void NAME(striped)(const Job* job, Place from, Place to, int count, char* room) {
    const Plan* plan = job->plan;
    int back = job->backward, together = LANES / plan->second.n;
    Place row = {room + NAME(points_size)(plan), ROOM, ROOM * plan->n, sizeof(REAL), 0}, out = to;
    REAL factor = (REAL)job->factor;
    if (job->kind == REAL_TO_HALF) {
        from = NAME(paired)(from, 2);
        to = row;
        factor = 1;
    } else if (job->kind == HALF_TO_REAL) {
        for (int i = 0; i < count; i++, from.at += from.lane, row.at += row.lane)
            NAME(unravel_side)(from.at, row.at, plan->n, plan->angles, 1, !back, 1);
        row.at -= count * row.lane;
        from = row;
        to = NAME(paired)(to, 2);
    }
    from.turned = to.turned = job->kind == COMPLEX_TO_COMPLEX ? back : job->kind == HALF_TO_REAL;
    if (together == 1) NAME(stripes)(plan, from, to, 1, count, factor, (POINT*)room);
    else if (together == 2) NAME(stripes)(plan, from, to, 2, count, factor, (POINT*)room);
#if LANES >= 8
    else NAME(stripes)(plan, from, to, 4, count, factor, (POINT*)room);
#endif
    if (job->kind == REAL_TO_HALF)
        for (int i = 0; i < count; i++, row.at += row.lane, out.at += out.lane)
            NAME(unravel_side)(row.at, out.at, plan->n, plan->angles, 0, back,
                               (REAL)job->factor / 2);
}

/* The parts of a transform of one row by a table, one after another: what is done before it, to
   some groups of its columns, to some groups of its rows, and what is done after it. */
static void NAME(part)(const Job* job, Place from, Place to, int part, ptrdiff_t begin,
                       ptrdiff_t end, char* shared, char* rooms) {
    const Plan* plan = job->plan;
    ptrdiff_t pitch = NAME(pitch)(plan), wanted = plan->n;
    int even = job->n % 2 == 0, back = job->backward, unravels = 0;
    Place row = {shared + ROOM * plan->first.n * pitch, ROOM, 0,
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

#include "fourier/fourier_chirp.h"

/* of some rows; `room` has first the bytes for points, then those for a table */
static void NAME(transform)(const Job* job, ptrdiff_t count, char* room) {
    const Plan* plan = job->plan;
    Place from = job->from, to = job->to;
    if (plan->inner) {
        NAME(chirped)(job, count, room);
        return;
    }
    int together = plan->striped || plan->second.n == 1 ? LANES / plan->second.n : 1;
    ptrdiff_t groups[4] = {1, (plan->second.n + LANES - 1) / LANES,
                            (plan->first.n + LANES - 1) / LANES, 1};
    for (ptrdiff_t row = 0; row < count; row += together) {
        from.at = job->from.at + row * from.lane;
        to.at = job->to.at + row * to.lane;
        int rows = count - row < together ? (int)(count - row) : together;
        if (plan->striped)
            NAME(striped)(job, from, to, rows, room);
        else if (together == 1)
            for (int part = 0; part < 4; part++)
                NAME(part)(job, from, to, part, 0, groups[part], room + NAME(points_size)(plan),
                           room);
        else
            NAME(at_once)(job, from, to, rows, (POINT*)room);
    }
}

#undef LANES
#undef ROOM
#undef HALF
#undef VEC
#undef POINT
#undef MASK
#undef LOAD
#undef STORE
#undef BESIDE
#undef EXCHANGE
