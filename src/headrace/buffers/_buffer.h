/* What Cython cannot express: the clock, a number that two threads look at, bytes to a socket, what `await` calls. */
#ifndef HEADRACE_BUFFER_H
#define HEADRACE_BUFFER_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* ppoll */
#endif
#include <Python.h>
#include <stdint.h>
#include <time.h>
#ifndef _WIN32
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <unistd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#ifdef __linux__
#include <limits.h>
#include <linux/futex.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#define HEADRACE_HAS_EPOLL 1
#endif
#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0 /* macOS; Python ignores SIGPIPE */
#endif
#endif

#define HEADRACE_MOST_FILES 16
#define HEADRACE_MOST_EVENTS 64
#ifndef HEADRACE_HAS_EPOLL
#define HEADRACE_HAS_EPOLL 0
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
#define headrace_add(p, x) ((void)__atomic_add_fetch((p), (x), __ATOMIC_SEQ_CST))
#else
#define headrace_load(p) (*(volatile int *)(p))
#define headrace_store(p, x) (*(volatile int *)(p) = (x))
#define headrace_add(p, x) ((void)(*(volatile int *)(p) += (x)))
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

/* Wait until one of these files has bytes, or the time is over: 2 if the first one has, and 1 if others have, added up;
   -1 for a signal. */
static inline int headrace_poll(const int *files, int count, double seconds) {
#ifdef __linux__
    struct pollfd all[HEADRACE_MOST_FILES];
    struct timespec timeout;
    int index, found = 0;
    if (seconds > 1e6) seconds = 1e6;
    timeout.tv_sec = (time_t)seconds;
    timeout.tv_nsec = (long)((seconds - (double)timeout.tv_sec) * 1e9);
    for (index = 0; index < count; index++) {
        all[index].fd = files[index];
        all[index].events = POLLIN;
        all[index].revents = 0;
    }
    if (ppoll(all, (nfds_t)count, &timeout, NULL) < 0) return errno == EINTR ? -1 : 1;
    for (index = 0; index < count; index++)
        if (all[index].revents) found |= index ? 1 : 2;
    return found;
#else
    return 2;
#endif
}

/* The turns of loops that are under way, and the threads that wait until one is over. */
struct headrace_turns {
    int under_way, waiting;
};

/* Whether this thread is in such a turn. */
#if HEADRACE_HAS_EPOLL
static __thread int headrace_in_turn;
#else
#define headrace_in_turn 0
#endif

static inline void headrace_begin_turn(struct headrace_turns *turns) {
#if HEADRACE_HAS_EPOLL
    headrace_in_turn = 1;
    headrace_add(&turns->under_way, 1);
#endif
}

static inline void headrace_end_turn(struct headrace_turns *turns) {
#if HEADRACE_HAS_EPOLL
    headrace_in_turn = 0;
    headrace_add(&turns->under_way, -1);
    if (headrace_load(&turns->waiting)) syscall(SYS_futex, &turns->under_way, FUTEX_WAKE_PRIVATE, INT_MAX, NULL);
#endif
}

/* Sleep until a turn has begun or ended since so many were under way, a signal comes or the time is over. */
static inline void headrace_await_turn(struct headrace_turns *turns, int under_way, int64_t timeout_ns) {
#if HEADRACE_HAS_EPOLL
    struct timespec timeout = {0, (long)timeout_ns};
    headrace_add(&turns->waiting, 1);
    syscall(SYS_futex, &turns->under_way, FUTEX_WAIT_PRIVATE, under_way, &timeout);
    headrace_add(&turns->waiting, -1);
#endif
}

/* Wait for the files of an epoll: how many have something, which ones, and whether that is to read (1), to write (2) or
   both; -1 with errno. */
static inline int headrace_epoll(int epoll, int milliseconds, int *files, int *ready) {
#if HEADRACE_HAS_EPOLL
    struct epoll_event events[HEADRACE_MOST_EVENTS];
    int index, found = epoll_wait(epoll, events, HEADRACE_MOST_EVENTS, milliseconds);
    for (index = 0; index < found; index++) {
        files[index] = events[index].data.fd;
        ready[index] = (events[index].events & ~(uint32_t)EPOLLOUT ? 1 : 0)
            | (events[index].events & ~(uint32_t)EPOLLIN ? 2 : 0);
    }
    return found;
#else
    return -1;
#endif
}

/* Wait a moment where nobody can know whether another thread wants to go on. */
static inline void headrace_pause(int64_t nanoseconds) {
#ifndef _WIN32
    struct timespec moment = {0, (long)nanoseconds};
    nanosleep(&moment, NULL);
#endif
}

/* Receive what is there: how many bytes, 0 at the end, -1 for nothing yet, -2 when the connection is gone. */
static inline int64_t headrace_receive(int file, uint8_t *data, size_t size) {
#ifdef _WIN32
    return -2;
#else
    ssize_t count = recv(file, data, size, MSG_DONTWAIT);
    return count >= 0 ? count : errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? -1 : -2;
#endif
}

/* Forget what was written to a file that wakes. */
static inline void headrace_drain(int wake) {
#ifndef _WIN32
    uint64_t count;
    ssize_t got = read(wake, &count, sizeof count);
    (void)got;
#endif
}

/* A file that can be read from a time on, in nanoseconds as headrace_clock() counts; -1 with errno. */
static inline int headrace_alarm(void) {
#if HEADRACE_HAS_EPOLL
    return timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
#else
    errno = ENOSYS;
    return -1;
#endif
}

static inline void headrace_set_alarm(int file, int64_t at_ns) {
#if HEADRACE_HAS_EPOLL
    struct itimerspec when = {{0, 0}, {at_ns / 1000000000, at_ns % 1000000000}};
    timerfd_settime(file, TFD_TIMER_ABSTIME, &when, NULL);
#endif
}

/* Seconds as time.monotonic() counts them on the systems that have the files above. */
static inline double headrace_clock(void) {
#ifdef _WIN32
    return 0.0;
#else
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
#endif
}

/* Give a type with `__await__` what `await` calls first; Cython cannot express it. */
static inline void headrace_set_send(PyObject *type, int (*send)(PyObject *, PyObject *, PyObject **)) {
    ((PyTypeObject *)type)->tp_as_async->am_send = (sendfunc)(void (*)(void))send;
}

#endif
