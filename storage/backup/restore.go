package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"orch.io/controlplane/storage"
)

// Restore fills an empty store from a full backup and the incremental backups based on it, in the order in which they were
// made. The store publishes no record unless all files are valid and each is based on the previous file. The newest
// revision of the store is then the revision of the last file, unless Options.StartOver is larger.
func Restore(ctx context.Context, to storage.Backend, o Options, files ...io.Reader) (*Report, error) {
	c := &chain{o: o.metered(), report: &Report{}}
	if err := c.restore(ctx, to, files); err != nil {
		return c.report, fmt.Errorf("restore: %w", err)
	}
	return c.report, nil
}

// Verify reads and checks backup files without a store. The files are a backup and the incremental backups based on it, in the
// order in which they were made. If the first file is itself incremental, Verify does not check the values that it takes
// from an earlier file. The report does not name damaged records that were omitted from the backups.
func Verify(ctx context.Context, o Options, files ...io.Reader) (*Report, error) {
	c := &chain{o: Options{Progress: o.Progress}.metered(), report: &Report{RevisionsKept: true}, partial: true}
	if err := c.verify(ctx, files); err != nil {
		return c.report, fmt.Errorf("verify: %w", err)
	}
	return c.report, nil
}

// chain is a list of files, each based on the previous file. The last file has the whole state, with references to values in
// earlier files. The files are read from the last to the first.
type chain struct {
	o       Options
	partial bool // the first file may be incremental
	report  *Report
	files   []*reader
	wanted  map[version]struct{} // references to values that were not found yet
	found   contents
	pace    pace
}

type version struct {
	key      string
	revision storage.Revision
}

func (c *chain) restore(ctx context.Context, to storage.Backend, files []io.Reader) error {
	if err := c.open(files); err != nil {
		return err
	}
	last := c.last()
	oldest := max(last.header.Oldest, c.o.StartOver)
	d, err := prepare(ctx, to, last.header.Stamps, oldest, c.o)
	if err != nil {
		return err
	}
	if err := d.fill(ctx, oldest, c.versions(ctx)); err != nil {
		return err
	}
	c.reportProgress(Verifying)
	return d.finish(ctx, max(oldest, last.trailer.Revision), last.trailer.digest(), c.report, Options{Progress: c.o.Progress})
}

func (c *chain) verify(ctx context.Context, files []io.Reader) error {
	if err := c.open(files); err != nil {
		return err
	}
	for _, err := range c.versions(ctx) {
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *chain) last() *reader { return c.files[len(c.files)-1] }

// open reads the headers of the files and checks which of them are incremental.
func (c *chain) open(files []io.Reader) error {
	if len(files) == 0 {
		return errors.New("no files")
	}
	for i, file := range files {
		r, err := newReader(file)
		if err != nil {
			return fmt.Errorf("file %d: %w", i+1, err)
		}
		switch since := r.header.Since; {
		case i > 0 && since == Position{}:
			return fmt.Errorf("file %d: %w: it is a full backup", i+1, ErrWrongBase)
		case i == 0 && since != Position{} && !c.partial:
			return fmt.Errorf("file %d: %w: it is based on the backup of revision %d (%.12s), which is missing", i+1, ErrWrongBase, since.Revision, since.ID)
		}
		c.files = append(c.files, r)
	}
	c.report.Oldest, c.report.Base = max(c.last().header.Oldest, c.o.StartOver), c.files[0].header.Since
	return nil
}

// versions yields the records of the files. Its last element is an error unless all files are valid, each is based on the
// previous file, and the records match the state of the last trailer.
func (c *chain) versions(ctx context.Context) iter.Seq2[storage.Record, error] {
	return func(yield func(storage.Record, error) bool) {
		c.wanted, c.found = make(map[version]struct{}), make(contents)
		for i := len(c.files) - 1; i >= 0; i-- {
			more, err := c.file(ctx, i, yield)
			if err != nil {
				yield(storage.Record{}, fmt.Errorf("file %d: %w", i+1, err))
			}
			if err != nil || !more {
				return
			}
		}
		if err := c.complete(); err != nil {
			yield(storage.Record{}, err)
		}
	}
}

// complete compares the records with the last trailer and completes the report.
func (c *chain) complete() error {
	if c.files[0].header.Since == (Position{}) {
		for v := range c.wanted {
			return damaged("the values of %d records are missing, such as %.80q of revision %d", len(c.wanted), v.key, v.revision)
		}
	}
	t := c.last().trailer
	if err := c.found.check(t.digest()); err != nil {
		return err
	}
	r := c.report
	r.Revision, r.DestinationRevision, r.Keys, r.Position = t.Revision, t.Revision, t.Keys, Position{t.Revision, t.ID}
	return nil
}

// file yields the records of file i: all of the last file, and of earlier files those that are wanted. It returns false if
// the consumer has stopped.
func (c *chain) file(ctx context.Context, i int, yield func(storage.Record, error) bool) (more bool, err error) {
	r, last := c.files[i], i == len(c.files)-1
	for {
		e, ok, err := r.next()
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return false, err
		}
		if !ok {
			break
		}
		v := version{e.Key, e.Revision}
		if !last {
			if _, ok := c.wanted[v]; !ok || e.Value == nil {
				continue
			}
			delete(c.wanted, v)
		}
		if err := c.found.add(e); err != nil {
			return false, err
		}
		if e.earlier {
			c.wanted[v] = struct{}{}
			continue
		}
		c.report.Versions++
		c.report.Bytes += int64(len(e.Key) + len(e.Value))
		if c.pace.due(c.report.Versions, c.report.Bytes) {
			c.report.Revision = max(c.report.Revision, e.Revision)
			c.reportProgress(Copying)
		}
		if !yield(e.Record, nil) {
			return false, nil
		}
	}
	if !last {
		at, next := Position{r.trailer.Revision, r.trailer.ID}, c.files[i+1].header.Since
		if at != next {
			return false, fmt.Errorf("%w: it ends at revision %d (%.12s), but the next file is based on revision %d (%.12s)",
				ErrWrongBase, at.Revision, at.ID, next.Revision, next.ID)
		}
	}
	return true, nil
}

func (c *chain) reportProgress(phase Phase) {
	if c.o.Progress != nil {
		p := Progress{Phase: phase, Versions: c.report.Versions, Bytes: c.report.Bytes, Revision: c.report.Revision, Total: c.last().header.Versions}
		if phase == Verifying {
			p.Versions, p.Bytes, p.Total = 0, 0, c.report.Keys
		}
		c.o.Progress(p)
	}
}
