-- What the leader writes to. Nobody writes with a token below the one that is there.
CREATE TABLE counter (
    id          integer PRIMARY KEY,
    value       bigint  NOT NULL,
    fence_token bigint  NOT NULL,
    writer      text    NOT NULL
);
INSERT INTO counter VALUES (1, 0, 0, 'nobody');
