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

// verify implements the command that checks backups.
func (c Command) verify(ctx context.Context, args []string, out io.Writer) error {
	set := c.flagSet("verify", "FILE...", "checks that backups are complete and based on each other, in the order in which they were made. If the first backup\n"+
		"was made with --since, only its own content is checked.")
	files, err := parseCommand(set, args)
	if err != nil {
		return err
	}
	report, err := verifyFiles(ctx, files)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "complete: %s\n", describe(report))
	return nil
}

// maxBump is more than any server commits, and leaves enough revisions for every store.
const maxBump = 1 << 40

// restore implements the command that fills an empty store from backups.
func (c Command) restore(ctx context.Context, args []string, out io.Writer) error {
	var to location
	set := c.flagSet("restore", "[flags] FILE...", "fills an empty store from a backup and the later backups that were made with --since, in that order. The directory may\n"+
		"contain keys and certificates (*.pem), so that clients recognize the server, but no store.")
	to.define(set, c.Engines, "", "", "data directory for a new server")
	bump := set.Int64("bump-revision", 0, "number to add to the newest revision of the backup; must be larger than the number of commits that the lost server made since the\n"+
		"backup. Clients list again. With 0, clients continue at their revision, which is correct only if they saw nothing newer than the backup")
	files, err := parseCommand(set, args, &to)
	if err != nil {
		return err
	}
	if *bump < 0 || *bump > maxBump {
		return fmt.Errorf("--bump-revision must be between 0 and %d", int64(maxBump))
	}
	if err := to.check(); err != nil {
		return err
	}
	found, err := verifyFiles(ctx, files)
	if err != nil {
		return err
	}
	if found.Base != (backup.Position{}) {
		return fmt.Errorf("%s is based on a backup of revision %d, which is also needed", files[0], found.Base.Revision)
	}
	shown := newProgress()
	o := backup.Options{Progress: shown.report}
	if *bump > 0 {
		o.StartOver = found.Revision + storage.Revision(*bump)
	}
	var report *backup.Report
	err = to.fill(ctx, newLogger(slog.LevelWarn), func(store storage.Backend) error {
		return withFiles(files, func(readers []io.Reader) (err error) {
			report, err = backup.Restore(ctx, store, o, readers...)
			return err
		})
	})
	shown.end()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "restored into %s: %d records. %s\n", &to, report.Keys, describeEffect(report, o.StartOver != 0))
	if *bump == 0 {
		fmt.Fprintln(out, "If clients may have seen a newer revision, restore with --bump-revision instead")
	}
	return nil
}

// describeEffect describes the effect of a restore or copy on clients.
func describeEffect(r *backup.Report, startOver bool) string {
	if r.RevisionsKept && !startOver {
		return fmt.Sprintf("Revisions are unchanged, up to %d, and watches continue", r.DestinationRevision)
	}
	return fmt.Sprintf("The newest revision is %d; clients list again", r.DestinationRevision)
}

func verifyFiles(ctx context.Context, files []string) (report *backup.Report, err error) {
	shown := newProgress()
	defer shown.end()
	err = withFiles(files, func(readers []io.Reader) (err error) {
		report, err = backup.Verify(ctx, backup.Options{Progress: shown.report}, readers...)
		return err
	})
	return report, err
}

// withFiles calls use with the opened files. Its error names the files, because use refers to them by
// number.
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
