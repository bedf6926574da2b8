/* The most frequent element of short rows of int64, in the compiler's vector types.

   How often each element is there takes n * n comparisons and no branch, of which a vector does
   many at once: rows of 4 take 10 ns, where to sort them and to look for the longest run took 40.
   Rows of 16 that have positions in their keys are sorted in less. */
#pragma once

#include "order/rank_rows.h"

#define FREQUENT 8             /* elements that a row has at most */

/* places[r] := the last position of the most frequent key of row r, of several the least. Keys
   begin above `bits` bits. `unknown`, if there may be such, differs from itself: where no key is
   there twice, the first of it is found. */
static void frequent_of_rows(const int64_t* keys, int64_t* places, Py_ssize_t rows, Py_ssize_t n,
                             int bits, int floating, int64_t unknown) {
    int64_t row[FREQUENT] = {0}, counts[FREQUENT];
    for (; rows > 0; rows--, keys += n, places++) {
        for (Py_ssize_t i = 0; i < n; i++) row[i] = keys[i] >> bits;
        for (Py_ssize_t i = 0; i < n; i += RANK_LANES) {
            rank_vector x = *(const rank_vector*)(row + i), count = {0};
            for (Py_ssize_t j = 0; j < n; j++) count -= x == (rank_vector){0} + row[j];
            if (floating) count &= x != (rank_vector){0} + unknown;
            *(rank_vector*)(counts + i) = count;
        }
        int64_t most = counts[0], least = row[0], place = 0;
        for (Py_ssize_t i = 1; i < n; i++) {
            /* all bits or none: a choice that cannot be predicted would be a branch */
            int64_t better = -((int64_t)(counts[i] > most)
                               | ((int64_t)(counts[i] == most) & (int64_t)(row[i] <= least)));
            most ^= (most ^ counts[i]) & better;
            least ^= (least ^ row[i]) & better;
            place ^= (place ^ i) & better;
        }
        if (floating && most < 2)
            for (Py_ssize_t i = n; i-- > 0;) place = row[i] == unknown ? i : place;
        *places = place;
    }
}
