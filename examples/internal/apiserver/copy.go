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

// copy is the command that copies a store that nobody writes to into an empty one.
func (c Command) copy(ctx context.Context, args []string, out io.Writer) error {
	var from, to place
	set := c.command("copy", "[flags]", "copies everything from a store into an empty one, of whatever engine. The servers of both must not run; to move the\n"+
		"directory of a server while it serves, start the server with the --to- flags.")
	from.define(set, c.Engines, "", "./controlplane-data", "directory of the data of a server that does not run")
	to.define(set, c.Engines, "to-", "", "directory to copy to")
	rest, err := parseCommand(set, args, &from, &to)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return fmt.Errorf("unexpected argument %q", rest[0])
	}
	if err := to.needed(); err != nil {
		return err
	}
	source, err := from.openFilled(ctx, logFrom(slog.LevelWarn))
	if err != nil {
		return inUse(err, "to move the store of a running server start it with the --to- flags")
	}
	shown := onStderr()
	report, err := copyStore(ctx, source, &from, &to, backup.Options{Progress: shown.tell})
	shown.end()
	if err = errors.Join(err, source.Close()); err != nil {
		return err
	}
	fmt.Fprintf(out, "copied into %s: %d records. %s\n", &to, report.Keys, goOn(report, false))
	return nil
}

// copyStore fills a store from another one and, if both are in directories, brings the keys along, so
// that they are there before the store is.
func copyStore(ctx context.Context, source storage.Backend, from, to *place, o backup.Options) (report *backup.Report, err error) {
	err = to.fill(ctx, logFrom(slog.LevelWarn), func(store storage.Backend) error {
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
