package apiserver

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/backup"
)

// verify is the command that says whether backups are whole.
func (c Command) verify(ctx context.Context, args []string, out io.Writer) error {
	set := c.command("verify", "FILE...", "checks that backups are whole and stand on each other, in the order in which they were made. Of a first one that\n"+
		"was made with --since only what is in it can be checked.")
	files, err := parseCommand(set, args)
	if err != nil {
		return err
	}
	report, err := verifyFiles(ctx, files)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "whole: %s\n", describe(report))
	return nil
}

// maxBump leaves revisions for every store that goes on from there, and is more than any server
// commits.
const maxBump = 1 << 40

// restore is the command that fills an empty store from backups.
func (c Command) restore(ctx context.Context, args []string, out io.Writer) error {
	var to place
	set := c.command("restore", "[flags] FILE...", "fills an empty store from a backup and those that were made on top of it with --since, in that order. A directory may\n"+
		"hold keys and certificates (*.pem), which clients know the server by, but no store.")
	to.define(set, c.Engines, "", "", "directory of the data, for a server that is started later")
	bump := set.Int64("bump-revision", 0, "how many revisions after the backup the store begins, more than were committed since by the server that was lost: clients\n"+
		"that saw those list anew. 0: clients go on where they are, which is right only if they saw nothing newer than the backup")
	files, err := parseCommand(set, args, &to)
	if err != nil {
		return err
	}
	if *bump < 0 || *bump > maxBump {
		return fmt.Errorf("--bump-revision must be between 0 and %d", int64(maxBump))
	}
	if err := to.needed(); err != nil {
		return err
	}
	found, err := verifyFiles(ctx, files)
	if err != nil {
		return err
	}
	if found.Base != (backup.Position{}) {
		return fmt.Errorf("%s was made on top of a backup of revision %d: that one is needed, too", files[0], found.Base.Revision)
	}
	shown := onStderr()
	o := backup.Options{Progress: shown.tell}
	if *bump > 0 {
		o.StartOver = found.Revision + storage.Revision(*bump)
	}
	var report *backup.Report
	err = to.fill(ctx, logFrom(slog.LevelWarn), func(store storage.Backend) error {
		return withFiles(files, func(readers []io.Reader) (err error) {
			report, err = backup.Restore(ctx, store, o, readers...)
			return err
		})
	})
	shown.end()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "restored into %s: %d records. %s\n", &to, report.Keys, goOn(report, o.StartOver != 0))
	if *bump == 0 {
		fmt.Fprintln(out, "If clients may have seen anything newer than that, restore with --bump-revision instead")
	}
	return nil
}

// goOn says what clients notice of a store that was filled.
func goOn(r *backup.Report, startOver bool) string {
	if r.RevisionsKept && !startOver {
		return fmt.Sprintf("The revisions are the same, up to %d, and watches go on", r.DestinationRevision)
	}
	return fmt.Sprintf("The newest revision is %d; clients list anew", r.DestinationRevision)
}

func verifyFiles(ctx context.Context, files []string) (report *backup.Report, err error) {
	shown := onStderr()
	defer shown.end()
	err = withFiles(files, func(readers []io.Reader) (err error) {
		report, err = backup.Verify(ctx, backup.Options{Progress: shown.tell}, readers...)
		return err
	})
	return report, err
}

// withFiles opens files for as long as they are used. Errors number them.
func withFiles(files []string, use func([]io.Reader) error) (err error) {
	var readers []io.Reader
	for _, path := range files {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		readers = append(readers, f)
	}
	if err := use(readers); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(files, " "), err)
	}
	return nil
}
