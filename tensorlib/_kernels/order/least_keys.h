/* The least keys of rows of int64, in order, and the k-th of each row.

   A bound on the least keys is found by bisection: how many keys do not exceed it is counted
   without a branch, four keys at a time with AVX2, and some 15 counts are enough. In a long row
   few keys are counted: the k-th of what is least in each of several groups is a bound that not
   many others reach. */
#pragma once

#include "order/rank_rows.h"

#define RUN 32                 /* keys that are passed over together */
#define FEWEST 16              /* that are found by insertion, at most */
#define GROUPS 512             /* of a long row, at most */
#define CANDIDATES 1024        /* keys of it that are looked at again, at most */

static inline int64_t lesser(int64_t a, int64_t b) { return a < b ? a : b; }

static Py_ssize_t count_to(const int64_t* x, Py_ssize_t n, int64_t bound) {
    int64_t count = 0;
    for (Py_ssize_t i = 0; i < n; i++) count += x[i] <= bound;
    return count;
}

/* The k-th least of n keys, 0 < k <= n, or a lesser bound that exactly k do not exceed: never less
   than the k-th */
static int64_t bound_on(const int64_t* x, Py_ssize_t n, Py_ssize_t k) {
    int64_t low = x[0], high = x[0];
    for (Py_ssize_t i = 0; i < n; i++) {
        low = lesser(x[i], low);
        high = x[i] > high ? x[i] : high;
    }
    while (low < high) {
        int64_t middle = low + (int64_t)(((uint64_t)high - (uint64_t)low) / 2);
        Py_ssize_t count = count_to(x, n, middle);
        if (count == k) return middle;
        if (count < k) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* The next place from i on where RUN keys begin of which one is no more than a bound, or of which
   there are not so many */
static inline Py_ssize_t next_run(const int64_t* x, Py_ssize_t i, Py_ssize_t n, int64_t bound) {
    for (; i + RUN <= n; i += RUN) {
        int64_t found = 0;
        for (int j = 0; j < RUN; j++) found |= x[i + j] <= bound;
        if (found) break;
    }
    return i;
}

/* places := of the keys up to a bound, of which `most` and one more have room; returns how many,
   or most + 1 for more than that */
static Py_ssize_t places_to(const int64_t* x, Py_ssize_t n, int64_t bound, Py_ssize_t most,
                            int64_t* places) {
    Py_ssize_t count = 0, i = 0;
    while ((i = next_run(x, i, n, bound)) < n)
        for (Py_ssize_t end = i + RUN < n ? i + RUN : n; i < end; i++) {
            places[count] = i;
            count += x[i] <= bound;
            if (count > most) return count;
        }
    return count;
}

/* places := of the k least keys, in the order of the places; of equal keys the first are taken */
static void least_places(const int64_t* x, Py_ssize_t n, Py_ssize_t k, int64_t* places) {
    int64_t bound = bound_on(x, n, k);
    Py_ssize_t equal = k, count = 0, i = 0;            /* to the bound, and taken */
    for (Py_ssize_t j = 0; j < n; j++) equal -= x[j] < bound;
    while (count < k && (i = next_run(x, i, n, bound)) < n)
        for (Py_ssize_t end = i + RUN < n ? i + RUN : n; i < end && count < k; i++) {
            int taken = x[i] == bound && equal > 0;
            equal -= taken;
            places[count] = i;
            count += x[i] < bound || taken;
        }
}

/* How many of n keys are found faster by insertion, which most keys end at one comparison */
static Py_ssize_t most_inserted(Py_ssize_t n) { return n <= 128 ? FEWEST : n <= 256 ? 4 : 0; }

/* The same by insertion, in the order of the keys: for k <= FEWEST */
static void insert_least(const int64_t* x, Py_ssize_t n, Py_ssize_t k, int64_t* places) {
    int64_t least[FEWEST];
    Py_ssize_t found = 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        Py_ssize_t place = k - 1;
        if (found < k) place = found++;
        else if (x[i] >= least[place]) continue;
        for (; place > 0 && least[place - 1] > x[i]; place--) {
            least[place] = least[place - 1];
            places[place] = places[place - 1];
        }
        least[place] = x[i];
        places[place] = i;
    }
}

/* The same of a row with several keys for each group; 0 where too many are candidates */
static int least_of_groups(const int64_t* x, Py_ssize_t n, Py_ssize_t k, Py_ssize_t groups,
                           int64_t* places) {
    int64_t least[GROUPS], keys[CANDIDATES], found[CANDIDATES + 1];
    memcpy(least, x, groups * 8);
    for (Py_ssize_t i = groups; i + groups <= n; i += groups)
        for (Py_ssize_t j = 0; j < groups; j++) least[j] = lesser(x[i + j], least[j]);
    Py_ssize_t count = places_to(x, n, bound_on(least, groups, k), CANDIDATES, found);
    if (count > CANDIDATES) return 0;
    for (Py_ssize_t i = 0; i < count; i++) keys[i] = x[found[i]];
    least_places(keys, count, k, places);
    for (Py_ssize_t i = 0; i < k; i++) places[i] = found[places[i]];
    return 1;
}

/* places[r] := of the k <= n least keys of row r, 0 < k: up to RANKED in the order of the keys,
   more in that of the places. Equal keys stay in their order. */
static void least_of_rows(const int64_t* keys, int64_t* places, Py_ssize_t rows, Py_ssize_t n,
                          Py_ssize_t k) {
    Py_ssize_t groups = 2 * k < RUN ? RUN : 2 * k;
    int64_t row[RANKED], order[RANKED], found[RANKED];
    for (; rows > 0; rows--, keys += n, places += k) {
        if (k <= most_inserted(n)) {
            insert_least(keys, n, k, places);
            continue;
        }
        if (n <= RANKED) {
            rank_rows(keys, order, 1, n);
            memcpy(places, order, k * 8);
            continue;
        }
        if (groups > GROUPS || n < 4 * groups || !least_of_groups(keys, n, k, groups, places))
            least_places(keys, n, k, places);
        if (k > RANKED) continue;
        memcpy(found, places, k * 8);
        for (Py_ssize_t i = 0; i < k; i++) row[i] = keys[found[i]];
        rank_rows(row, order, 1, k);
        for (Py_ssize_t i = 0; i < k; i++) places[i] = found[order[i]];
    }
}

/* The place of the k-th least of n keys, 0 < k <= n; equal keys stay in their order */
static Py_ssize_t place_of_least(const int64_t* x, Py_ssize_t n, Py_ssize_t k) {
    int64_t order[RANKED];
    if (n <= NUMBERED) return place_of_rank(x, n, k - 1);
    if (n <= RANKED) {
        rank_rows(x, order, 1, n);
        return order[k - 1];
    }
    int64_t bound = bound_on(x, n, k), key = INT64_MIN;
    for (Py_ssize_t i = 0; i < n; i++) {
        int64_t each = x[i] <= bound ? x[i] : INT64_MIN;
        key = each > key ? each : key;
    }
    Py_ssize_t before = k, i = 0;
    for (Py_ssize_t j = 0; j < n; j++) before -= x[j] < key;
    for (;; i++)
        if (x[i] == key && --before == 0) return i;
}
