package backup

import (
	"context"
	"errors"
	"time"

	"orch.io/controlplane/storage"
)

// metered returns the options with a Progress function that adds Rate and Left.
func (o Options) metered() Options {
	report := o.Progress
	if report == nil {
		return o
	}
	var phase Phase
	var begun time.Time
	var before int64 // Versions when the phase began
	o.Progress = func(p Progress) {
		now := time.Now()
		if p.Phase != phase {
			phase, begun, before = p.Phase, now, p.Versions
		}
		if took := now.Sub(begun); took > 0 {
			p.Rate = float64(p.Versions-before) / took.Seconds()
		}
		if p.Total > 0 {
			p.Total = max(p.Total, p.Versions)
		}
		if p.Total > p.Versions && p.Rate > 0 {
			p.Left = time.Duration(float64(p.Total-p.Versions) / p.Rate * float64(time.Second))
		}
		report(p)
	}
	return o
}

// count sets total for the progress callback: the number of records, and about one version for each revision of
// the history. It leaves the history out for a store that does not implement storage.Importer, because such a
// store may have gaps between its revisions. Without a callback, count does nothing.
func (s *source) count(ctx context.Context) error {
	if s.o.Progress == nil {
		return nil
	}
	n, err := countRecords(ctx, s.store)
	if err != nil {
		return err
	}
	newest, err := s.store.Revision(ctx)
	if err != nil {
		return err
	}
	if s.total = n; n > 0 {
		if _, dense := s.store.(storage.Importer); dense {
			s.total += int64(newest - s.oldest)
		}
	}
	s.reportProgress(Copying)
	return nil
}

// countRecords returns the approximate number of records in a store. It may miss records that are written
// concurrently.
func countRecords(ctx context.Context, b storage.Backend) (n int64, err error) {
	for from, whole := "", false; !whole; {
		_, records, err := b.Scan(ctx, "", from, 0)
		if err != nil {
			return n, err
		}
		whole = true
		for rec, err := range records {
			var damaged *storage.DamagedError
			switch {
			case errors.As(err, &damaged): // reported later, when the record is read
				rec.Key = damaged.Key
			case errors.Is(err, storage.ErrCompacted): // continue at a newer revision
				whole = false
			case err != nil:
				return n, err
			}
			if !whole {
				break
			}
			n, from = n+1, rec.Key+"\x00"
		}
	}
	return n, nil
}
