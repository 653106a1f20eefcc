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

// commands returns the commands of the program other than serving, by name.
func (c Command) commands() map[string]func(context.Context, []string, io.Writer) error {
	return map[string]func(context.Context, []string, io.Writer) error{
		"inspect": inspect, "backup": c.backup, "verify": c.verify, "restore": c.restore, "copy": c.copy,
	}
}

// flagSet returns the flag set of a command. Its help begins with description.
func (c Command) flagSet(name, args, description string) *flag.FlagSet {
	set := flag.NewFlagSet(cmp.Or(c.Name, "apiserver")+" "+name, flag.ContinueOnError)
	set.Usage = func() {
		fmt.Fprintf(set.Output(), "%s %s\n%s\n\nFlags:\n", set.Name(), args, description)
		set.PrintDefaults()
	}
	return set
}

// parseCommand parses args and returns the arguments that are not flags. It rejects flags of engines
// that were not selected.
func parseCommand(set *flag.FlagSet, args []string, places ...*location) ([]string, error) {
	if err := parse(set, args); err != nil {
		return nil, err
	}
	var faults []error
	for _, p := range places {
		faults = append(faults, p.validate(set)...)
	}
	return set.Args(), errors.Join(faults...)
}

// newLogger returns a logger that writes records of at least the given level to standard error.
func newLogger(level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
}

// adviseInUse adds advice to the error about a directory that a running server uses.
func adviseInUse(err error, instead string) error {
	if errors.Is(err, badgerstore.ErrInUse) {
		return fmt.Errorf("%w: %s", err, instead)
	}
	return err
}

func describe(r *backup.Report) string {
	text := fmt.Sprintf("%d records at revision %d, with history since %d, %s", r.Keys, r.Revision, r.Oldest, size(r.Bytes))
	if r.Base != (backup.Position{}) {
		text += fmt.Sprintf(", based on a backup of revision %d", r.Base.Revision)
	}
	return text
}

func size(bytes int64) string {
	if bytes < 1<<20 {
		return fmt.Sprintf("%.1f KiB", float64(bytes)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
}
