package backup

import (
	"context"
	"fmt"
	"io"

	"orch.io/controlplane/storage"
)

// Backup writes a backup of a store, including the retained history, to w. The store can be written to meanwhile. The
// backup contains at least all commits that were acknowledged before the call. With Options.Base it is an
// incremental backup; it fails with ErrWrongBase if the store is older than that position.
//
// If Backup fails, the written data is not a usable backup. The caller must make sure that the file is on the disk.
func Backup(ctx context.Context, from storage.Backend, w io.Writer, o Options) (*Report, error) {
	o.Cutover = nil
	s := &source{store: from, o: o.metered(), report: &Report{RevisionsKept: true, Base: o.Base}}
	if err := s.backup(ctx, w); err != nil {
		return s.report, fmt.Errorf("backup: %w", err)
	}
	return s.report, nil
}

func (s *source) backup(ctx context.Context, to io.Writer) error {
	if err := checkComplete(ctx, s.store); err != nil {
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
	since := s.o.Base
	newest, err := s.store.Revision(ctx)
	if err != nil {
		return err
	}
	if since.Revision > newest {
		return fmt.Errorf("%w: the previous backup ends at revision %d, the store at %d", ErrWrongBase, since.Revision, newest)
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
	s.report.DestinationRevision = s.report.Revision
	id, err := w.end(s.report.Revision, s.now)
	s.report.Position = Position{s.report.Revision, id}
	return err
}
