-- Everybody may run this at any time: the row's lock decides, the others take the next job or none.
BEGIN;
WITH taken AS (
    UPDATE job SET done_at = now()
     WHERE id = (SELECT id FROM job WHERE done_at IS NULL ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED)
    RETURNING id)
INSERT INTO outbox (job_id) SELECT id FROM taken;
COMMIT;
