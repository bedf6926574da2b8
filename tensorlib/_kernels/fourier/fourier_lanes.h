/* How vectors of LANES numbers are taken apart: included once for each type by fourier.h.

   EVEN and ODD are the real and the imaginary parts of two vectors of complex numbers, LOWER and
   UPPER the way back, ORDER the lanes in the order of the parts, which for some vectors is that
   which takes one instruction, and LOW_n and HIGH_n what two vectors have in alternate blocks of n
   numbers. */
#undef EVEN
#undef ODD
#undef LOWER
#undef UPPER
#undef ALL
#undef ORDER
#undef REVERSE
#undef LOW_1
#undef HIGH_1
#undef LOW_2
#undef HIGH_2
#undef LOW_4
#undef HIGH_4
#undef LOW_8
#undef HIGH_8

#if LANES == 16
#define EVEN 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30
#define ODD 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31
#define LOWER 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define UPPER 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#define ALL 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
#define ORDER ALL
#define REVERSE 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0
#define LOW_1 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30
#define HIGH_1 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31
#define LOW_2 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29
#define HIGH_2 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31
#define LOW_4 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27
#define HIGH_4 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31
#define LOW_8 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23
#define HIGH_8 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31
#elif LANES == 8
#define EVEN 0, 2, 8, 10, 4, 6, 12, 14
#define ODD 1, 3, 9, 11, 5, 7, 13, 15
#define LOWER 0, 8, 1, 9, 4, 12, 5, 13
#define UPPER 2, 10, 3, 11, 6, 14, 7, 15
#define ALL 0, 1, 2, 3, 4, 5, 6, 7
#define ORDER 0, 1, 4, 5, 2, 3, 6, 7
#define REVERSE 7, 6, 5, 4, 3, 2, 1, 0
#define LOW_1 0, 8, 2, 10, 4, 12, 6, 14
#define HIGH_1 1, 9, 3, 11, 5, 13, 7, 15
#define LOW_2 0, 1, 8, 9, 4, 5, 12, 13
#define HIGH_2 2, 3, 10, 11, 6, 7, 14, 15
#define LOW_4 0, 1, 2, 3, 8, 9, 10, 11
#define HIGH_4 4, 5, 6, 7, 12, 13, 14, 15
#else
#define EVEN 0, 4, 2, 6
#define ODD 1, 5, 3, 7
#define LOWER 0, 4, 2, 6
#define UPPER 1, 5, 3, 7
#define ORDER 0, 2, 1, 3
#define ALL 0, 1, 2, 3
#define REVERSE 3, 2, 1, 0
#define LOW_1 0, 4, 2, 6
#define HIGH_1 1, 5, 3, 7
#define LOW_2 0, 1, 4, 5
#define HIGH_2 2, 3, 6, 7
#endif
