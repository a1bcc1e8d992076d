#ifndef GAVEL_STORE_LOCAL_TROUBLE_H
#define GAVEL_STORE_LOCAL_TROUBLE_H

/* What went wrong with a file, in words for people; fits the text of an event. */
struct trouble {
    char text[160];
};

/* "cannot write /var/lib/gavel/default/a.record: no space left on device". The reason stands
 * first when the path is long. Thread-safe. */
void trouble_set(struct trouble *trouble, const char *what, const char *folder, const char *name,
                 int error_number);
/* The same with the reason in words. */
void trouble_say(struct trouble *trouble, const char *what, const char *folder, const char *name,
                 const char *why);

#endif
