#ifndef GAVEL_PUBLISH_HTTP_ANSWER_H
#define GAVEL_PUBLISH_HTTP_ANSWER_H

#include "base/httpd.h"
#include "publish/board.h"

#define HTTP_ALLOW "GET, HEAD, OPTIONS"

/*
 * The replies of the application's API. Each computes its answer when it is called, and the board
 * notes what it promises. They fill in status, body and headers.
 */

/* One election as JSON, with its headers. `by_role`: 503 unless this replica leads. */
void http_answer_election(struct httpd_reply *reply, struct board *board, struct board_entry *entry,
                          bool by_role);

/* {"elections":[...]} */
void http_answer_list(struct httpd_reply *reply, struct board *board);

/* {"name":"HOLDER"}, empty while nobody is known to lead. */
void http_answer_name(struct httpd_reply *reply, struct board *board, struct board_entry *entry);

/* An error as RFC 9457 has it; `detail` is text for people. */
void http_problem(struct httpd_reply *reply, unsigned status, const char *detail);

#endif
