/* What Cython cannot express: checksums with the processor's own instruction, hashes, whole pages.
 *
 * CRC-32C: three streams at a time hide the latency of the crc32 instruction; their sums are joined by shifting one
 * over the length of the next with tables. The tables are made once, by headrace_setup(), from the polynomial.
 */
#ifndef HEADRACE_BATCH_H
#define HEADRACE_BATCH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#ifdef _WIN32
#include <stdlib.h>
#else
#include <sys/mman.h>
#endif

/* Seconds as Python's time.monotonic() counts them, or -1 where that is another clock. */
static inline double headrace_monotonic(void) {
#ifdef __linux__
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
#else
    return -1.0;
#endif
}

#if defined(__GNUC__) && defined(__x86_64__)
#define HEADRACE_X86 1
#include <nmmintrin.h>
#elif defined(__GNUC__) && defined(__aarch64__)
#define HEADRACE_ARM 1
#include <arm_acle.h>
#if defined(__linux__)
#include <sys/auxv.h>
#endif
#endif

#define CRC32C_POLY 0x82F63B78u
#define CRC32_POLY 0xEDB88320u
#define LONG_STREAM 4096u
#define SHORT_STREAM 256u

static uint32_t crc32c_slices[8][256];
static uint32_t crc32_table[256];
static uint32_t shift_long[4][256];
static uint32_t shift_short[4][256];

static void make_table(uint32_t poly, uint32_t *table) {
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++) crc = (crc >> 1) ^ (crc & 1 ? poly : 0);
        table[byte] = crc;
    }
}

/* Tables that take a CRC over `length` zero bytes, four lookups for any 32-bit value. */
static void make_shift(uint32_t length, uint32_t table[4][256]) {
    uint32_t of_bit[32];
    for (int bit = 0; bit < 32; bit++) {
        uint32_t crc = 1u << bit;
        for (uint32_t at = 0; at < length; at++) crc = (crc >> 8) ^ crc32c_slices[0][crc & 0xFF];
        of_bit[bit] = crc;
    }
    for (int part = 0; part < 4; part++)
        for (int byte = 0; byte < 256; byte++) {
            uint32_t crc = 0;
            for (int bit = 0; bit < 8; bit++) if (byte >> bit & 1) crc ^= of_bit[8 * part + bit];
            table[part][byte] = crc;
        }
}

static inline uint32_t apply_shift(uint32_t table[4][256], uint32_t crc) {
    return table[0][crc & 0xFF] ^ table[1][crc >> 8 & 0xFF] ^ table[2][crc >> 16 & 0xFF] ^ table[3][crc >> 24];
}

static inline uint64_t load64(const uint8_t *p) { uint64_t x; memcpy(&x, p, 8); return x; }

/* Eight bytes a step; needs no byte order. */
static uint32_t crc32c_portable(uint32_t crc, const uint8_t *p, size_t size) {
    while (size >= 8) {
        uint32_t low = crc ^ ((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24);
        crc = crc32c_slices[7][low & 0xFF] ^ crc32c_slices[6][low >> 8 & 0xFF] ^ crc32c_slices[5][low >> 16 & 0xFF]
            ^ crc32c_slices[4][low >> 24] ^ crc32c_slices[3][p[4]] ^ crc32c_slices[2][p[5]]
            ^ crc32c_slices[1][p[6]] ^ crc32c_slices[0][p[7]];
        p += 8;
        size -= 8;
    }
    while (size--) crc = (crc >> 8) ^ crc32c_slices[0][(crc ^ *p++) & 0xFF];
    return crc;
}

#if defined(HEADRACE_X86) || defined(HEADRACE_ARM)
#if defined(HEADRACE_X86)
#define CRC_TARGET __attribute__((target("sse4.2")))
#define CRC_8(crc, p) ((uint32_t)_mm_crc32_u64((crc), load64(p)))
#define CRC_1(crc, byte) _mm_crc32_u8((crc), (byte))
#else
#define CRC_TARGET __attribute__((target("+crc")))
#define CRC_8(crc, p) __crc32cd((crc), load64(p))
#define CRC_1(crc, byte) __crc32cb((crc), (byte))
#endif

#define THREE_STREAMS(STREAM, TABLE)                                                     \
    while (size >= 3 * STREAM) {                                                         \
        uint32_t second = 0, third = 0;                                                  \
        for (const uint8_t *stop = p + STREAM; p < stop; p += 64) {                      \
            for (int stream = 0; stream < 3; stream++)                                   \
                __builtin_prefetch(p + (3 + stream) * STREAM);                           \
            for (int at = 0; at < 64; at += 8) {                                         \
                crc = CRC_8(crc, p + at);                                                \
                second = CRC_8(second, p + STREAM + at);                                 \
                third = CRC_8(third, p + 2 * STREAM + at);                               \
            }                                                                            \
        }                                                                                \
        crc = apply_shift(TABLE, apply_shift(TABLE, crc) ^ second) ^ third;              \
        p += 2 * STREAM;                                                                 \
        size -= 3 * STREAM;                                                              \
    }

CRC_TARGET static uint32_t crc32c_hardware(uint32_t crc, const uint8_t *p, size_t size) {
    THREE_STREAMS(LONG_STREAM, shift_long)
    THREE_STREAMS(SHORT_STREAM, shift_short)
    for (; size >= 8; p += 8, size -= 8) crc = CRC_8(crc, p);
    while (size--) crc = CRC_1(crc, *p++);
    return crc;
}
#endif

static uint32_t (*crc32c_update)(uint32_t, const uint8_t *, size_t) = crc32c_portable;

static int headrace_has_crc(void) {
#if defined(HEADRACE_X86)
    __builtin_cpu_init();
    return __builtin_cpu_supports("sse4.2");
#elif defined(HEADRACE_ARM) && defined(__linux__)
    return (getauxval(AT_HWCAP) & (1 << 7)) != 0;
#elif defined(HEADRACE_ARM) && defined(__APPLE__)
    return 1;
#else
    return 0;
#endif
}

/* Called once, when the module is imported. */
static void headrace_setup(int portable_only) {
    make_table(CRC32_POLY, crc32_table);
    make_table(CRC32C_POLY, crc32c_slices[0]);
    for (int byte = 0; byte < 256; byte++)
        for (int slice = 1; slice < 8; slice++) {
            uint32_t crc = crc32c_slices[slice - 1][byte];
            crc32c_slices[slice][byte] = (crc >> 8) ^ crc32c_slices[0][crc & 0xFF];
        }
    make_shift(LONG_STREAM, shift_long);
    make_shift(SHORT_STREAM, shift_short);
#if defined(HEADRACE_X86) || defined(HEADRACE_ARM)
    if (!portable_only && headrace_has_crc()) crc32c_update = crc32c_hardware;
#else
    (void)portable_only;
#endif
}

static inline uint32_t headrace_crc32c(uint32_t value, const uint8_t *p, size_t size) {
    return ~crc32c_update(~value, p, size);
}

static inline uint32_t headrace_crc32c_portable(uint32_t value, const uint8_t *p, size_t size) {
    return ~crc32c_portable(~value, p, size);
}

static inline uint32_t headrace_crc32(const uint8_t *p, size_t size) {
    uint32_t crc = 0xFFFFFFFFu;
    while (size--) crc = (crc >> 8) ^ crc32_table[(crc ^ *p++) & 0xFF];
    return ~crc;
}

static inline uint32_t headrace_murmur2(const uint8_t *p, size_t size) {
    const uint32_t m = 0x5BD1E995u;
    uint32_t h = 0x9747B28Cu ^ (uint32_t)size;
    for (; size >= 4; p += 4, size -= 4) {
        uint32_t k = ((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24) * m;
        h = (h * m) ^ ((k ^ k >> 24) * m);
    }
    if (size) {
        uint32_t tail = 0;
        for (size_t at = 0; at < size; at++) tail |= (uint32_t)p[at] << (8 * at);
        h = (h ^ tail) * m;
    }
    h = (h ^ h >> 13) * m;
    return h ^ h >> 15;
}

static inline uint32_t headrace_fnv1a(const uint8_t *p, size_t size) {
    uint32_t h = 0x811C9DC5u;
    while (size--) h = (h ^ *p++) * 0x01000193u;
    return h & 0x80000000u ? 0u - h : h;
}

static inline int64_t headrace_micros(int64_t ms) {
    if (ms > INT64_MAX / 1000) return INT64_MAX;
    if (ms < INT64_MIN / 1000) return INT64_MIN;
    return ms * 1000;
}

/* What is not in Cython: the slot of a class that `await` calls, and an error that is left for the caller. */
static inline void headrace_set_send(PyTypeObject *kind, sendfunc send) {
    kind->tp_as_async->am_send = send;
    PyType_Modified(kind);
}

static inline void headrace_raise(PyObject *error) { PyErr_SetObject((PyObject *)Py_TYPE(error), error); }

/* Whole pages, straight from the system and straight back: the heap would give them back at every pause. */
static inline void *headrace_map(size_t size) {
#ifdef _WIN32
    return malloc(size);
#else
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
#endif
}

static inline void headrace_unmap(void *p, size_t size) {
#ifdef _WIN32
    (void)size;
    free(p);
#else
    munmap(p, size);
#endif
}

/* Memory of any size, its own pages where it is large: the heap keeps pages as long as something behind them lives. */
#define HEADRACE_MAPPED_BYTES 262144

static inline void *headrace_take(size_t size) {
    return size < HEADRACE_MAPPED_BYTES ? malloc(size) : headrace_map(size);
}

static inline void headrace_drop(void *p, size_t size) {
    if (size < HEADRACE_MAPPED_BYTES) free(p);
    else headrace_unmap(p, size);
}

/* As realloc: the old memory is gone unless NULL comes back. */
static inline void *headrace_grow(void *p, size_t size, size_t grown_size) {
    if (grown_size < HEADRACE_MAPPED_BYTES) return realloc(p, grown_size);
#ifdef __linux__
    if (size >= HEADRACE_MAPPED_BYTES) {
        p = mremap(p, size, grown_size, MREMAP_MAYMOVE);
        return p == MAP_FAILED ? NULL : p;
    }
#endif
    void *grown = headrace_map(grown_size);
    if (grown == NULL) return NULL;
    if (p != NULL) memcpy(grown, p, size);
    headrace_drop(p, size);
    return grown;
}

#endif
