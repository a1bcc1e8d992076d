#include "page_read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LOOK_EVERY_NS INT64_C(100000000)

struct gavel_page {
    page_word *words; /* NULL: none is mapped */
    dev_t device;
    ino_t inode;
    struct page_place place;
    bool placed; /* `place` is known */
    enum gavel_page_problem problem;
    int64_t looked_ns; /* BOOTTIME of the last look at the path */
    int64_t doubted_ns;
    char path[];
};

static int64_t read_clock(enum page_clock clock) {
    static const clockid_t clocks[] = {CLOCK_BOOTTIME, CLOCK_REALTIME, CLOCK_REALTIME_COARSE};
    struct timespec time;
    if (clock_gettime(clocks[clock], &time) != 0) {
        return INT64_MAX; /* later than any deadline */
    }
    return (int64_t)time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static bool read_boot_id(uint64_t id[2]) {
    char text[64];
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t length = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0) {
        (void)close(fd);
    }
    unsigned char bytes[16] = {0};
    size_t digits = 0;
    for (ssize_t i = 0; i < length && digits < 32; i++) {
        const char *hex = "0123456789abcdef";
        const char *found = text[i] != '\0' ? strchr(hex, text[i]) : NULL;
        if (found != NULL) {
            bytes[digits / 2] = (unsigned char)(bytes[digits / 2] << 4 | (found - hex));
            digits++;
        }
    }
    memcpy(id, bytes, sizeof bytes);
    return digits == 32;
}

/* A kernel that knows no time namespaces has no such file. */
static bool read_time_namespace(uint64_t *inode) {
    struct stat found;
    *inode = 0;
    if (stat("/proc/self/ns/time", &found) == 0) {
        *inode = found.st_ino;
        return true;
    }
    return errno == ENOENT && access("/proc/self/ns", F_OK) == 0;
}

static void unmap(struct gavel_page *page) {
    if (page->words != NULL) {
        (void)munmap((void *)(uintptr_t)page->words, GAVEL_PAGE_BYTES);
        page->words = NULL;
    }
    page->doubted_ns = 0;
}

/* Takes the file of an open descriptor in place of the one before. */
static void take_file(struct gavel_page *page, int fd) {
    struct stat found;
    if (fstat(fd, &found) != 0 || !S_ISREG(found.st_mode) || found.st_size < GAVEL_PAGE_BYTES) {
        unmap(page);
        page->problem = GAVEL_PAGE_NOT_A_PAGE;
        return;
    }
    void *memory = mmap(NULL, GAVEL_PAGE_BYTES, PROT_READ, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) {
        return; /* what was mapped stays */
    }
    unmap(page);
    page->problem = page_validate(memory, &page->place);
    page->device = found.st_dev;
    page->inode = found.st_ino;
    if (page->problem == GAVEL_PAGE_GOOD) {
        page->words = memory;
    } else {
        (void)munmap(memory, GAVEL_PAGE_BYTES);
    }
}

/* Looks at the path: a sidecar that starts puts a new file there. */
static void look(struct gavel_page *page) {
    struct stat found;
    if (!page->placed) {
        page->placed =
            read_boot_id(page->place.boot_id) && read_time_namespace(&page->place.time_namespace);
        if (!page->placed) {
            page->problem = GAVEL_PAGE_NO_PROC;
            return;
        }
    }
    bool there = stat(page->path, &found) == 0;
    if (page->words != NULL &&
        (!there || (found.st_dev == page->device && found.st_ino == page->inode))) {
        return;
    }
    int fd = there ? open(page->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : -1;
    if (fd < 0) {
        page->problem = page->words != NULL ? page->problem : GAVEL_PAGE_NO_FILE;
        return;
    }
    if (page->words == NULL) {
        page->problem = GAVEL_PAGE_NO_FILE; /* unless it is taken */
    }
    take_file(page, fd);
    (void)close(fd);
}

struct gavel_page *gavel_page_create(const char *path) {
    size_t size = strlen(path) + 1;
    struct gavel_page *page = calloc(1, sizeof *page + size);
    if (page == NULL) {
        return NULL;
    }
    memcpy(page->path, path, size);
    page->looked_ns = read_clock(PAGE_CLOCK_BOOTTIME);
    look(page);
    return page;
}

void gavel_page_destroy(struct gavel_page *page) {
    if (page != NULL) {
        unmap(page);
        free(page);
    }
}

static void read_once(struct gavel_page *page, struct gavel_page_answer *answer, char *holder) {
    if (page->words != NULL) {
        page_read(page->words, read_clock, &page->doubted_ns, answer, holder);
        return;
    }
    *answer = (struct gavel_page_answer){.state = GAVEL_PAGE_UNKNOWN, .problem = page->problem};
    if (holder != NULL) {
        holder[0] = '\0';
    }
}

/* A leader's page needs no look: whoever replaces it has to wait until its deadline. (In efficiency
 * mode a sidecar that was killed and is back may lead at once, with a newer token than is read
 * here.) */
static void read_or_look(struct gavel_page *page, struct gavel_page_answer *answer, char *holder) {
    read_once(page, answer, holder);
    if (answer->leader) {
        return;
    }
    int64_t now_ns = read_clock(PAGE_CLOCK_BOOTTIME);
    if (now_ns - page->looked_ns < LOOK_EVERY_NS) {
        return;
    }
    page->looked_ns = now_ns;
    look(page);
    read_once(page, answer, holder);
}

bool gavel_page_check(struct gavel_page *page, struct gavel_page_answer *answer) {
    struct gavel_page_answer scratch;
    answer = answer != NULL ? answer : &scratch;
    read_or_look(page, answer, NULL);
    return answer->leader;
}

void gavel_page_holder(struct gavel_page *page, char *holder, size_t size) {
    struct gavel_page_answer answer;
    char text[GAVEL_PAGE_HOLDER_BYTES + 1];
    read_or_look(page, &answer, text);
    if (size > 0) {
        (void)snprintf(holder, size, "%s", text);
    }
}

const char *gavel_page_problem_text(enum gavel_page_problem problem) {
    switch (problem) {
    case GAVEL_PAGE_GOOD:
        return "none";
    case GAVEL_PAGE_NO_FILE:
        return "the file is not there, or cannot be opened: is the sidecar running?";
    case GAVEL_PAGE_NOT_A_PAGE:
        return "the file is not a page of gavel";
    case GAVEL_PAGE_OTHER_VERSION:
        return "the page has another layout version: this reader and the sidecar do not match";
    case GAVEL_PAGE_OTHER_BOOT:
        return "the page was written before a reboot, or on another kernel";
    case GAVEL_PAGE_OTHER_CLOCK:
        return "the sidecar is in another time namespace: its clock is not this one";
    case GAVEL_PAGE_NO_PROC:
        return "/proc does not tell the boot id and the time namespace";
    case GAVEL_PAGE_BUSY:
        return "the page stayed half-written";
    }
    return "unknown";
}
