/* Choose, at import, the form of _compiled.c that this processor runs fastest.

For x86-64, _compiled.c is compiled once for each level (1, 3 and 4), each under the name of its level instead of
PyInit__compiled. Level 1 runs everywhere, 3 has AVX2, 4 has AVX-512. Compilers can make such clones by themselves, but not all
of them, and only where the C library is glibc; this works on every system. All forms give the same answers to the last bit.
*/

#include <cpuid.h>

typedef struct _object PyObject;
PyObject *kubesched_level_1(void);
PyObject *kubesched_level_3(void);
PyObject *kubesched_level_4(void);

/* leaf 1, ecx: FMA, MOVBE, OSXSAVE, AVX, F16C */
static const unsigned LEAF_1 = 1u << 12 | 1u << 22 | 1u << 27 | 1u << 28 | 1u << 29;
/* leaf 7, ebx: BMI1, AVX2, BMI2; and for level 4: AVX512 F, DQ, CD, BW, VL */
static const unsigned LEAF_7 = 1u << 3 | 1u << 5 | 1u << 8;
static const unsigned LEAF_7_AVX512 = 1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31;
/* leaf 0x80000001, ecx: LZCNT */
static const unsigned LEAF_8_1 = 1u << 5;
/* What the operating system saves: registers xmm and ymm; for AVX-512 also masks and both parts of zmm. */
static const unsigned YMM = 0x06, ZMM = 0xe6;

static int
level(void)
{
    unsigned a, b, c, d, seven, saved, unused;
    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & LEAF_1) != LEAF_1 || !__get_cpuid_count(7, 0, &a, &seven, &c, &d) ||
        (seven & LEAF_7) != LEAF_7 || !__get_cpuid(0x80000001, &a, &b, &c, &d) || !(c & LEAF_8_1))
        return 1;
    __asm__ volatile("xgetbv" : "=a"(saved), "=d"(unused) : "c"(0));
    if ((saved & YMM) != YMM)
        return 1;
    return (seven & LEAF_7_AVX512) == LEAF_7_AVX512 && (saved & ZMM) == ZMM ? 4 : 3;
}

#ifdef _WIN32
__declspec(dllexport)
#else
__attribute__((visibility("default")))
#endif
PyObject *
PyInit__compiled(void)
{
    switch (level()) {
    case 4:
        return kubesched_level_4();
    case 3:
        return kubesched_level_3();
    default:
        return kubesched_level_1();
    }
}
