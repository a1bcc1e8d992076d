-- What the role of gavel's sidecars needs, beside CONNECT on the database:
--
--     psql -d DATABASE -v role=app -f deploy/sql/grants.sql
--
-- For another schema (--pg-schema) replace "public". Nothing else: the functions and views that
-- are used (pg_try_advisory_lock, pg_locks, pg_control_system, ...) are everybody's by default.
GRANT USAGE ON SCHEMA public TO :"role";
GRANT SELECT, INSERT, UPDATE ON public.gavel_election TO :"role";
-- With --pg-token sequence:SCHEMA.NAME also:
--     GRANT USAGE, SELECT ON SEQUENCE SCHEMA.NAME TO :"role";
