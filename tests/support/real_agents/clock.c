/* Preloaded into a process: its wall clock is ahead by REWIND_LAB_CLOCK seconds. Clocks that only measure are left
 * alone, and so is every wait. That is why it is not libfaketime: told to leave those clocks alone, that one makes
 * time.sleep() of Python fail. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long ahead(void) {
    static long seconds = -1;
    if (seconds < 0) {
        const char *text = getenv("REWIND_LAB_CLOCK");
        seconds = text ? atol(text) : 0;
    }
    return seconds;
}

int clock_gettime(clockid_t clock, struct timespec *into) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real)
        real = dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real ? real(clock, into) : (int)syscall(SYS_clock_gettime, clock, into);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        into->tv_sec += ahead();
    return failed;
}

int gettimeofday(struct timeval *into, void *zone) {
    (void)zone;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    into->tv_sec = now.tv_sec;
    into->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *into) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (into)
        *into = now.tv_sec;
    return now.tv_sec;
}
