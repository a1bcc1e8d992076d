-- Read the row with its version, work as long as you like, write only what nobody has changed since.
-- No row: read again, and do the work again on what is there now.
UPDATE account SET balance = :balance, version = version + 1
 WHERE id = :id AND version = :version
RETURNING version;
