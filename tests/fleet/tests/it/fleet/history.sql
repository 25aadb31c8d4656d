-- Every write to the tables of the state store, in the order in which it was made, written down in its own transaction.
-- The writes to one instance's rows come one after another, because each holds the lock of its epoch row.
CREATE TABLE fleet_history (
    seq BIGSERIAL PRIMARY KEY,
    what TEXT NOT NULL,
    ns TEXT NOT NULL,
    id TEXT NOT NULL,
    tray TEXT NOT NULL,
    -- Of an acquisition: the new epoch. Of a row: what its writer claims (see `Signed` of the worker).
    epoch BIGINT,
    pid BIGINT,
    session TEXT NOT NULL DEFAULT current_setting('application_name')
);

CREATE FUNCTION fleet_note_epoch() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        INSERT INTO fleet_history (what, ns, id, tray) VALUES ('forgotten', OLD.ns, OLD.id, '');
    ELSE
        INSERT INTO fleet_history (what, ns, id, tray, epoch) VALUES ('acquired', NEW.ns, NEW.id, '', NEW.epoch);
    END IF;
    RETURN NULL;
END $$;

CREATE FUNCTION fleet_note_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        INSERT INTO fleet_history (what, ns, id, tray) VALUES ('deleted', OLD.ns, OLD.id, OLD.tray_ns || '/' || OLD.tray_id);
    ELSE
        INSERT INTO fleet_history (what, ns, id, tray, epoch, pid) VALUES (
            'written', NEW.ns, NEW.id, NEW.tray_ns || '/' || NEW.tray_id,
            (NEW.doc -> 'writer' ->> 'epoch')::bigint, (NEW.doc -> 'writer' ->> 'pid')::bigint
        );
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER fleet_note_epoch AFTER INSERT OR UPDATE OR DELETE ON pinned_epoch
    FOR EACH ROW EXECUTE FUNCTION fleet_note_epoch();
CREATE TRIGGER fleet_note_row AFTER INSERT OR UPDATE OR DELETE ON pinned_tray_index
    FOR EACH ROW EXECUTE FUNCTION fleet_note_row();
