package backup

import (
	"context"
	"fmt"
	"io"

	"orch.io/controlplane/storage"
)

// Backup writes everything that a store holds, up to a revision that it reaches meanwhile,
// with the history that it retains. Writes go on; every one that was acknowledged before
// Backup was called is in it. With Options.Since it leaves out what an earlier backup has.
//
// A file counts as a backup once it is whole and on the disk, which the caller sees to.
func Backup(ctx context.Context, from storage.Backend, w io.Writer, o Options) (*Report, error) {
	o.Cutover = nil
	s := &source{store: from, o: o.metered(), report: &Report{Kept: true, Since: o.Since}}
	if err := s.backup(ctx, w); err != nil {
		return s.report, fmt.Errorf("backup: %w", err)
	}
	return s.report, nil
}

func (s *source) backup(ctx context.Context, to io.Writer) error {
	if err := finished(ctx, s.store); err != nil {
		return err
	}
	stamps, err := stampsOf(ctx, s.store)
	if err != nil {
		return err
	}
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.stop()
	since := s.o.Since
	newest, err := s.store.Revision(ctx)
	if err != nil {
		return err
	}
	if since.Revision > newest {
		return fmt.Errorf("%w: that one ends at revision %d, the store at %d", ErrNotOnTop, since.Revision, newest)
	}
	if err := s.count(ctx); err != nil {
		return err
	}
	w, err := newWriter(to, header{Format: formatVersion, Oldest: s.oldest, Since: since, Versions: s.total, Stamps: stamps})
	if err != nil {
		return err
	}
	s.emit = func(rec storage.Record) error {
		e := entry{Record: rec}
		if rec.Value != nil && rec.Revision <= since.Revision {
			e.Value, e.earlier = nil, true
		}
		return w.entry(e)
	}
	if err := s.read(ctx); err != nil {
		return err
	}
	s.report.Reached = s.report.Revision
	id, err := w.end(s.report.Revision, s.now)
	s.report.Position = Position{s.report.Revision, id}
	return err
}
