package apiserver

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"orch.io/controlplane/storage/badgerstore"
)

// errNotWhole is returned for a damaged directory.
var errNotWhole = errors.New("the directory is damaged")

// inspect implements the command that reports damage in the data directory of a server that is not
// running, and can salvage the readable data into a new directory.
func inspect(ctx context.Context, args []string, out io.Writer) error {
	set := flag.NewFlagSet("apiserver inspect", flag.ContinueOnError)
	dir := set.String("data-dir", "./controlplane-data", "data directory of a server that is not running; it is not changed")
	to := set.String("salvage", "", "new directory for the readable data: objects with their resourceVersions, keys and certificates")
	if err := set.Parse(args); err != nil {
		return err
	}
	if set.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", set.Arg(0))
	}
	var report *badgerstore.Report
	var err error
	if *to == "" {
		report, err = badgerstore.Inspect(ctx, *dir)
	} else if report, err = badgerstore.Salvage(ctx, *dir, *to); err == nil {
		err = copyKeys(*to, *dir)
	}
	if err != nil {
		return err
	}
	printReport(out, report)
	if *to != "" {
		fmt.Fprintf(out, "salvaged %d objects into %s\n", report.Records, *to)
	}
	if !report.Intact() {
		return errNotWhole
	}
	return nil
}

func printReport(out io.Writer, r *badgerstore.Report) {
	fmt.Fprintf(out, "readable objects: %d\n", r.Records)
	fmt.Fprintf(out, "newest revision: %d found", r.Revision)
	if r.Acknowledged > 0 {
		fmt.Fprintf(out, ", %d acknowledged", r.Acknowledged)
	}
	fmt.Fprintln(out)
	for _, note := range r.Notes {
		fmt.Fprintln(out, "note:", note)
	}
	for _, fault := range r.Problems {
		fmt.Fprintln(out, "damage:", fault)
	}
	for i := range r.Damaged {
		fmt.Fprintln(out, "damage:", &r.Damaged[i])
	}
	if r.Intact() {
		fmt.Fprintln(out, "no damage found")
	}
}

// copyKeys copies the keys and certificates of the server, so that certificates and tokens stay valid.
// It fails if a file exists in the target with other content.
func copyKeys(to, from string) error {
	files, err := filepath.Glob(filepath.Join(from, "*.pem"))
	if err != nil {
		return err
	}
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, filepath.Base(path))
		switch have, err := os.ReadFile(target); {
		case err == nil && bytes.Equal(have, data):
			continue
		case err == nil:
			return fmt.Errorf("%s already exists with other content than %s", target, path)
		}
		err = save(target, func(w io.Writer) error {
			_, err := w.Write(data)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
