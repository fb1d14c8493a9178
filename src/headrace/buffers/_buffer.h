/* What Cython cannot express: the clock, a number that two threads look at, bytes to a socket, what `await` calls. */
#ifndef HEADRACE_BUFFER_H
#define HEADRACE_BUFFER_H

#include <Python.h>
#include <stdint.h>
#include <time.h>
#ifndef _WIN32
#include <sched.h>
#include <sys/socket.h>
#include <sys/uio.h>
#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0 /* macOS; Python ignores SIGPIPE */
#endif
#endif

/* Nanoseconds since the epoch. */
static inline int64_t headrace_now_ns(void) {
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

#ifdef _WIN32
#define headrace_yield() ((void)0)
#else
#define headrace_yield() sched_yield()
#endif
#ifdef __GNUC__
#define headrace_load(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define headrace_store(p, x) __atomic_store_n((p), (x), __ATOMIC_RELEASE)
#else
#define headrace_load(p) (*(volatile int *)(p))
#define headrace_store(p, x) (*(volatile int *)(p) = (x))
#endif

/* Watch a number that another thread changes while it is `value`, at most so long; others may have the processor. */
static inline void headrace_watch(const int *number, int value, int64_t timeout_ns) {
    int64_t began_ns = headrace_now_ns(), passed_ns = 0;
    while (headrace_load(number) == value && passed_ns >= 0 && passed_ns < timeout_ns) {
        headrace_yield();
        passed_ns = headrace_now_ns() - began_ns;
    }
}

/* Write three pieces to a socket without waiting: how many bytes it took, or -1. */
static inline int64_t headrace_send(int file, const uint8_t *head, size_t head_size, const uint8_t *data, size_t size,
                                    const uint8_t *tail, size_t tail_size) {
#ifdef _WIN32
    return -1;
#else
    struct iovec pieces[3] = {{(void *)head, head_size}, {(void *)data, size}, {(void *)tail, tail_size}};
    struct msghdr message = {0};
    message.msg_iov = pieces;
    message.msg_iovlen = tail_size ? 3 : 2;
    return sendmsg(file, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
#endif
}

/* Give a type with `__await__` what `await` calls first; Cython cannot express it. */
static inline void headrace_set_send(PyObject *type, int (*send)(PyObject *, PyObject *, PyObject **)) {
    ((PyTypeObject *)type)->tp_as_async->am_send = (sendfunc)(void (*)(void))send;
}

#endif
