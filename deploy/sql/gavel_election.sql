-- The table of gavel's elections in PostgreSQL: what is remembered of the last grant of each. The
-- lock itself is an advisory lock, with the key that is this table's primary key.
--
-- The sidecar makes it where its role may. Where it may not, run this file once in each database
-- that elections are held in, as a role that may create tables there, and then grants.sql:
--
--     psql -d DATABASE -f deploy/sql/gavel_election.sql
--
-- For another schema (--pg-schema) replace "public.". Nothing here may be dropped or emptied while
-- an election is held: tokens would rest on the servers' clocks alone.
CREATE TABLE IF NOT EXISTS public.gavel_election (
    lock_classid   oid         NOT NULL, -- the lock's key, as pg_locks shows it
    lock_objid     oid         NOT NULL,
    lock_objsubid  smallint    NOT NULL,
    namespace      text        NOT NULL,
    name           text        NOT NULL,
    token          bigint      NOT NULL, -- the fencing token of the last grant
    holder         text        NOT NULL, -- who got it, and for which grant
    nonce          text        NOT NULL,
    backend        integer     NOT NULL, -- the process of the server that held the lock
    ttl_ms         bigint      NOT NULL,
    longest_ttl_ms bigint      NOT NULL, -- of all since the last clean end
    granted        timestamptz NOT NULL, -- since when
    seen           timestamptz NOT NULL, -- the last probe that wrote (--pg-synchronous)
    clean          boolean     NOT NULL, -- its holder said that it had stopped
    prior          text        NOT NULL, -- how the grant before ended
    server         text        NOT NULL, -- system identifier, timeline, start of the server
    PRIMARY KEY (lock_classid, lock_objid, lock_objsubid)
) WITH (fillfactor = 50);
