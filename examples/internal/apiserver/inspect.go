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

// errNotWhole is the answer about a directory with which something is wrong.
var errNotWhole = errors.New("the directory is damaged")

// inspect is the command for the directory of a server that does not run: what
// is wrong with it, and what can be read of it into a new one.
func inspect(ctx context.Context, args []string, out io.Writer) error {
	set := flag.NewFlagSet("apiserver inspect", flag.ContinueOnError)
	dir := set.String("data-dir", "./controlplane-data", "directory of the data of a server that does not run; nothing in it is changed")
	to := set.String("salvage", "", "new directory for everything that can be read: objects with their resourceVersions, keys and certificates")
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
	tell(out, report)
	if *to != "" {
		fmt.Fprintf(out, "salvaged %d objects into %s\n", report.Records, *to)
	}
	if !report.Intact() {
		return errNotWhole
	}
	return nil
}

func tell(out io.Writer, r *badgerstore.Report) {
	fmt.Fprintf(out, "objects that can be read: %d\n", r.Records)
	fmt.Fprintf(out, "newest revision: %d found", r.Revision)
	if r.Acknowledged > 0 {
		fmt.Fprintf(out, ", %d acknowledged", r.Acknowledged)
	}
	fmt.Fprintln(out)
	for _, note := range r.Notes {
		fmt.Fprintln(out, "note:", note)
	}
	for _, fault := range r.Problems {
		fmt.Fprintln(out, "fault:", fault)
	}
	for i := range r.Damaged {
		fmt.Fprintln(out, "fault:", &r.Damaged[i])
	}
	if r.Intact() {
		fmt.Fprintln(out, "nothing is wrong")
	}
}

// copyKeys copies what the server keeps beside its store, so that certificates
// and tokens stay valid. Others that are there already are not replaced.
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
			return fmt.Errorf("%s is there, with other contents than %s", target, path)
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
