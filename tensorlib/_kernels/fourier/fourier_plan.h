/* What a Fourier transform of n points is made of, and where its numbers lie.

   A guard, and no `#pragma once`: the translator puts a copy beside its output, and to Clang that
   is another file. */
#ifndef FOURIER_PLAN
#define FOURIER_PLAN
#include <stddef.h>

#ifdef __AVX512F__
#define LINE 128                        /* bytes of a point of all lanes */
#define MOST_POINTS 16                  /* the largest factor: so many points are in registers */
#else
#define LINE 64
#define MOST_POINTS 13
#endif
#define MOST_FACTORS 32
#define MOST_ODD 13

/* n points by passes of the factors; the angles of all passes follow one another */
typedef struct {
    ptrdiff_t n;
    int count;
    int factors[MOST_FACTORS];
    const void* angles;
} Passes;

/* A transform of n points: of all at once where second.n is 1; or first of each column of a table
   of first.n by second.n points, and then, turned by `turns`, of each of its rows. For each group
   of columns these are a point for each row, or where `fine` is not 0, for so many rows, and then
   for every fine-th one: in a long transform it takes less to multiply than to read.

   Where `inner` is not NULL, n has large prime factors: see fourier_chirp.h.

   Where `striped` is not 0, the columns are so few that the lanes have all of them, of one table or
   of several ones: they are 2 or more, and a power of two. */
typedef struct Plan {
    ptrdiff_t n;
    Passes first, second;
    ptrdiff_t fine;
    int striped;
    const void* turns;
    const void* angles;                 /* cosines of pi k / n for k to n / 2, then the sines */
    const struct Plan* inner;           /* that of a convolution with the chirp, or NULL, */
    const void* chirp;                  /* its n numbers, then its spectrum */
} Plan;

/* where numbers lie: the bytes from one point to the next, from one lane to the next, and from a
   real part to the imaginary one, or 0 where there are real parts alone */
typedef struct {
    char* at;
    ptrdiff_t point, lane, part;
    int turned;                         /* the imaginary parts have the other sign */
} Place;

/* Transforms of rows, which are the lanes of the places. Of `n` real numbers the plan takes n / 2
   complex ones where n is even. */
enum { COMPLEX_TO_COMPLEX, REAL_TO_HALF, HALF_TO_REAL };
typedef struct {
    const Plan* plan;
    int kind, backward;
    ptrdiff_t n;
    double factor;
    Place from, to;
} Job;
#endif
