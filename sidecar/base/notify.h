#ifndef GAVEL_BASE_NOTIFY_H
#define GAVEL_BASE_NOTIFY_H

#include <stdint.h>

/*
 * systemd's readiness protocol, sd_notify(3): one datagram a message to the socket that
 * NOTIFY_SOCKET names. Does nothing where there is none. Loop thread only.
 */
struct notify {
    int fd;                  /* -1: nobody listens */
    int64_t watchdog_ns;     /* half of WATCHDOG_USEC; 0: no watchdog */
    int64_t watchdog_due_ns; /* BOOTTIME */
};

/* Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID. */
void notify_init(struct notify *notify);
/* "READY=1"; never blocks, a message that cannot be sent is dropped. */
void notify_send(struct notify *notify, const char *message);
void notify_finish(struct notify *notify);

#endif
