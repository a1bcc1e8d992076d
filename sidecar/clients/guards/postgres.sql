-- A fence for PostgreSQL: writes of a leader that has been replaced are refused, however late they
-- come. Once:
CREATE TABLE IF NOT EXISTS gavel_fence (
    election    text   PRIMARY KEY,
    fence_token bigint NOT NULL
);

-- First in each transaction that writes: SELECT gavel_fence('billing', $token);
-- It stays locked until the transaction ends, so that no older token can come in between; have a
-- leader that was paused in the middle cut off by SET idle_in_transaction_session_timeout = '5s'.
-- Until a new leader has committed its first one, the old one's writes are taken: read what a write is
-- based on after the call, in the same transaction, or call it once and commit before you read.
CREATE OR REPLACE FUNCTION gavel_fence(of_election text, token bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    -- 0 is what clients give who do not lead; one that is greater would shut out everybody after it.
    IF token IS NULL OR token NOT BETWEEN 1 AND 100000000000000 THEN
        RAISE EXCEPTION 'no fencing token: %', token USING ERRCODE = 'invalid_parameter_value';
    END IF;
    INSERT INTO gavel_fence AS fence (election, fence_token) VALUES (of_election, token)
    ON CONFLICT (election) DO UPDATE SET fence_token = EXCLUDED.fence_token
        WHERE fence.fence_token <= EXCLUDED.fence_token;
    IF NOT FOUND THEN -- not a code that is retried by frameworks: the token stays stale
        RAISE EXCEPTION 'stale fencing token % for %', token, of_election
            USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'another leader has written since';
    END IF;
END $$;

-- Or, where each row has its own column, in the statement itself; no row: refused.
--   ALTER TABLE invoice ADD COLUMN fence_token bigint NOT NULL DEFAULT 0;
--   UPDATE invoice SET total = $1, fence_token = $2
--    WHERE id = $3 AND fence_token <= $2 AND $2 BETWEEN 1 AND 100000000000000;
-- That guards each row by itself: one that the new leader has not written yet takes a late write of the
-- old one. INSERT and DELETE are not guarded: the token of a row that is gone is forgotten.
