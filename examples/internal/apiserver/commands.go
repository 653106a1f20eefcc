package apiserver

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"

	"orch.io/controlplane/storage/backup"
	"orch.io/controlplane/storage/badgerstore"
)

// commands are what the program does beside serving.
func (c Command) commands() map[string]func(context.Context, []string, io.Writer) error {
	return map[string]func(context.Context, []string, io.Writer) error{
		"inspect": inspect, "backup": c.backup, "verify": c.verify, "restore": c.restore, "copy": c.copy,
	}
}

// command returns the flags of a command, whose help begins with what it does.
func (c Command) command(name, args, does string) *flag.FlagSet {
	set := flag.NewFlagSet(cmp.Or(c.Name, "apiserver")+" "+name, flag.ContinueOnError)
	set.Usage = func() {
		fmt.Fprintf(set.Output(), "%s %s\n%s\n\nFlags:\n", set.Name(), args, does)
		set.PrintDefaults()
	}
	return set
}

// parseCommand returns the arguments of a command that are no flags, and refuses flags of engines that
// were not chosen.
func parseCommand(set *flag.FlagSet, args []string, places ...*place) ([]string, error) {
	if err := parse(set, args); err != nil {
		return nil, err
	}
	var faults []error
	for _, p := range places {
		faults = append(faults, p.validate(set)...)
	}
	return set.Args(), errors.Join(faults...)
}

// logFrom logs to standard error what is of a level or graver.
func logFrom(level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
}

// inUse says what to do about the directory of a server that runs.
func inUse(err error, instead string) error {
	if errors.Is(err, badgerstore.ErrInUse) {
		return fmt.Errorf("%w: %s", err, instead)
	}
	return err
}

func describe(r *backup.Report) string {
	text := fmt.Sprintf("%d records of revision %d, with the history since %d, %s", r.Keys, r.Revision, r.Oldest, size(r.Bytes))
	if r.Base != (backup.Position{}) {
		text += fmt.Sprintf(", on top of a backup of revision %d", r.Base.Revision)
	}
	return text
}

func size(bytes int64) string {
	if bytes < 1<<20 {
		return fmt.Sprintf("%.1f KiB", float64(bytes)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
}
