package apiserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/backup"
)

// copy implements the command that copies a store without writers into an empty one.
func (c Command) copy(ctx context.Context, args []string, out io.Writer) error {
	var from, to location
	set := c.flagSet("copy", "[flags]", "copies everything from one store into an empty one, of any engine. No server may use either store. To move the\n"+
		"directory of a server while it serves, start the server with the --to- flags.")
	from.define(set, c.Engines, "", "./controlplane-data", "data directory of a server that is not running")
	to.define(set, c.Engines, "to-", "", "directory to copy to")
	rest, err := parseCommand(set, args, &from, &to)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return fmt.Errorf("unexpected argument %q", rest[0])
	}
	if err := to.check(); err != nil {
		return err
	}
	source, err := from.openFilled(ctx, newLogger(slog.LevelWarn))
	if err != nil {
		return adviseInUse(err, "to move the store of a running server, start the server with the --to- flags")
	}
	shown := newProgress()
	report, err := copyStore(ctx, source, &from, &to, backup.Options{Progress: shown.report})
	shown.end()
	if err = errors.Join(err, source.Close()); err != nil {
		return err
	}
	fmt.Fprintf(out, "copied into %s: %d records. %s\n", &to, report.Keys, describeEffect(report, false))
	return nil
}

// copyStore fills an empty store from another one. If both are in directories, it first copies the keys
// of the server, so that the new directory is never complete without them.
func copyStore(ctx context.Context, source storage.Backend, from, to *location, o backup.Options) (report *backup.Report, err error) {
	err = to.fill(ctx, newLogger(slog.LevelWarn), func(store storage.Backend) error {
		newest, err := store.Revision(ctx)
		if err == nil && newest == 0 && from.storage == directory && to.storage == directory {
			err = copyKeys(to.dataDir, from.dataDir)
		}
		if err != nil {
			return err
		}
		report, err = backup.Copy(ctx, source, store, o)
		return err
	})
	return report, err
}
