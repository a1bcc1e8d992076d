#ifndef GAVEL_CLIENTS_C_GAVEL_H
#define GAVEL_CLIENTS_C_GAVEL_H

/*
 * gavel for C: does this replica lead now, and with which fencing token? libc and its threads only.
 *
 *     struct gavel *gavel = gavel_create(NULL, "");
 *     if (gavel_is_leader(gavel)) { ... }    // ask before each effect; any doubt is false
 *     uint64_t token;
 *     if (gavel_require_leader(gavel, &token) == 0) { ... } // send it along with the effect
 *     gavel_run(gavel, work, context);       // attaches; work runs while this replica leads
 *
 * A yes is good for the answer's VALID_MS, counted from before the question was sent, less a
 * margin: by the smaller remainder of CLOCK_BOOTTIME (never behind the monotonic clock) and
 * CLOCK_REALTIME. To be compiled with pkg-config's `gavel`. For checks without a system call see
 * gavel_page.h, which is in the same library.
 *
 * All functions may be called from any thread, also at the same time, but for gavel_destroy(), and
 * gavel_run() one at a time. Times are nanoseconds.
 *
 * A child made by fork() is not attached, it asks the sidecar. But it holds the attachment open
 * until it calls exec or ends, so that the parent's end would go unseen: let no such child outlive
 * it. All else it cannot do: gavel_attach(), gavel_run() and gavel_on_change() fail with ECHILD
 * there, gavel_detach() and gavel_stop() do nothing, leadership is cancelled, and gavel_destroy()
 * only frees.
 */

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gavel;
struct gavel_leadership;

/* path: NULL is $GAVEL_SOCKET, else /run/gavel/gavel.sock. election: "" where the sidecar has one.
 * Both are copied; nothing is connected yet. NULL: errno is ENOMEM, ENAMETOOLONG (path), EINVAL
 * (election) or EMFILE. */
struct gavel *gavel_create(const char *path, const char *election);
/* Detaches and ends the threads; gavel_run() has returned before. NULL is allowed. */
void gavel_destroy(struct gavel *gavel);

/* How long to wait for an answer, 1 s; how much earlier than its end a promise is given up, 20 ms.
 * To be set before anything else is called. */
void gavel_set_times(struct gavel *gavel, int64_t timeout_ns, int64_t margin_ns);

/* An attached application is answered from the lease that it was told; else the sidecar is asked
 * each time. */
bool gavel_is_leader(struct gavel *gavel);
/* The fencing token while this replica leads, else 0. */
uint64_t gavel_token(struct gavel *gavel);
/* 0 and the token, else -1 and errno EPERM. */
int gavel_require_leader(struct gavel *gavel, uint64_t *token);

/* Calls back in a thread of its own: now, and at each change. Once a client. 0, else errno. */
int gavel_on_change(struct gavel *gavel,
                    void (*callback)(void *context, bool leader, uint64_t token), void *context);

/*
 * From now on this stands for the whole application: the sidecar leads only while it is attached,
 * and gives leadership away when the process ends. It is attached again after the sidecar was
 * restarted, and does not lead meanwhile. on_revoke (NULL: none) is called in a thread of its own
 * when leadership is about to end: it must stop all work and then return, after which the sidecar
 * is told that it is done. Returns at once: 0, else errno (EAGAIN: no thread can be had), and then
 * nothing has changed.
 */
int gavel_attach(struct gavel *gavel, void (*on_revoke)(void *context, uint64_t token),
                 void *context);
/* Ends the attachment, and gives leadership away at once: all work must have ended. What
 * gavel_run() and on_revoke still do is cancelled, and waited for. Not to be called from a callback
 * or work. */
void gavel_detach(struct gavel *gavel);

/*
 * Attaches, and calls work each time that this replica leads, in the calling thread. It is
 * cancelled a tenth to a fifth of ttl before leadership ends, and has to return soon after that: it
 * cannot be killed (`gavelctl exec` can). When it returns by itself, leadership is given away, and
 * gavel_run() gives what it returned; -1 with errno if it could not start (EBUSY: another has not
 * ended yet), or after gavel_stop() or gavel_detach() (ECANCELED).
 */
int gavel_run(struct gavel *gavel, int (*work)(struct gavel_leadership *leadership, void *context),
              void *context);
/* Cancels the work, and has gavel_run() return: this one, and each later one at once. */
void gavel_stop(struct gavel *gavel);

/* For work: the token; whether to stop now; a descriptor that becomes readable then, for poll(2);
 * and a sleep that ends then, which gives whether to stop. */
uint64_t gavel_leadership_token(const struct gavel_leadership *leadership);
bool gavel_leadership_cancelled(struct gavel_leadership *leadership);
int gavel_leadership_fd(const struct gavel_leadership *leadership);
bool gavel_leadership_wait(struct gavel_leadership *leadership, int64_t sleep_ns);

#ifdef __cplusplus
}
#endif

#endif
