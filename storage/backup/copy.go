package backup

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"orch.io/controlplane/storage"
)

// Copy moves everything from one store into an empty one, stamps included. Nobody may use
// the destination until it has returned; then the program goes on with that. What is said
// of revisions and checks in the package's documentation holds.
func Copy(ctx context.Context, from, to storage.Backend, o Options) (*Report, error) {
	report, err := move(ctx, from, to, o)
	if err != nil {
		return report, fmt.Errorf("transfer: %w", err)
	}
	return report, nil
}

func move(ctx context.Context, from, to storage.Backend, o Options) (*Report, error) {
	o = o.metered()
	s := &source{store: from, o: o, report: &Report{}, twice: true}
	if err := finished(ctx, from); err != nil {
		return s.report, err
	}
	stamps, err := stampsOf(ctx, from)
	if err != nil {
		return s.report, err
	}
	newest, err := from.Revision(ctx)
	if err != nil {
		return s.report, err
	}
	d, err := prepare(ctx, to, stamps, newest, o)
	if err != nil {
		return s.report, err
	}
	if err := s.begin(ctx); err != nil {
		return s.report, err
	}
	defer s.stop()
	if err := s.count(ctx); err != nil {
		return s.report, err
	}
	d.settled = s.settled
	if err := d.fill(ctx, s.oldest, s.versions(ctx)); err != nil {
		return s.report, err
	}
	s.tell(Verifying)
	return s.report, d.finish(ctx, s.report.Revision, s.now, s.report, Options{Progress: s.o.Progress})
}

// versions is read as a sequence, in which the source is compared with what was read of it: the
// destination shows nothing before. An error is the last thing in it.
func (s *source) versions(ctx context.Context) iter.Seq2[storage.Record, error] {
	return func(yield func(storage.Record, error) bool) {
		enough := errors.New("enough")
		s.emit = func(rec storage.Record) error {
			if !yield(rec, nil) {
				return enough
			}
			return nil
		}
		err := s.read(ctx)
		if err != nil && !errors.Is(err, enough) {
			yield(storage.Record{}, err)
		}
	}
}

// settled makes sure that nobody has written to the source since its writers should have stopped.
func (s *source) settled(ctx context.Context) error {
	at := s.report.Revision
	s.emit = func(storage.Record) error {
		return fmt.Errorf("the source was written to after revision %d, where its writers should have stopped: do not use the copy", at)
	}
	return s.catchUp(ctx)
}

// finished refuses a source that has only a part of what it should have.
func finished(ctx context.Context, from storage.Backend) error {
	_, err := from.Get(ctx, storage.UnfinishedKey, 0)
	switch {
	case err == nil:
		return errors.New("the source was itself filled in part, and never finished")
	case errors.Is(err, storage.ErrNotFound):
		return nil
	}
	return err
}

// stampsOf returns none of a store that keeps none.
func stampsOf(ctx context.Context, from storage.Backend) (map[string]string, error) {
	switch s := from.(type) {
	case storage.StampReader:
		return s.Stamps(ctx)
	case storage.Stamper:
		return nil, errors.New("the stamps of the source cannot be listed: it is no storage.StampReader")
	}
	return nil, nil
}

// destination is a store that is filled.
type destination struct {
	store  storage.Backend
	stamps map[string]string
	plain  *plain // nil: it is a storage.Importer

	settled func(context.Context) error // the last check; nil: there is none
}

// prepare looks whether the destination has other stamps and, if it chooses its revisions by
// itself, raises them to the given one, which takes time.
func prepare(ctx context.Context, to storage.Backend, stamps map[string]string, newest storage.Revision, o Options) (*destination, error) {
	if s, ok := to.(storage.StampReader); ok {
		have, err := s.Stamps(ctx)
		if err != nil {
			return nil, err
		}
		for name, value := range stamps {
			if other, ok := have[name]; ok && other != value {
				return nil, otherStamp(name, other, value)
			}
		}
	}
	if _, ok := to.(storage.Importer); ok {
		return &destination{store: to, stamps: stamps}, nil
	}
	p := &plain{to: to, written: map[string]written{}, pending: map[string]storage.Record{}}
	if err := p.begin(ctx); err != nil {
		return nil, err
	}
	for p.reached < newest {
		if o.Progress != nil {
			o.Progress(Progress{Phase: Raising, Revision: p.reached, Versions: int64(p.reached), Total: int64(newest)})
		}
		if err := p.raise(ctx, min(newest, p.reached+raiseStep)); err != nil {
			return nil, err
		}
	}
	return &destination{store: to, stamps: stamps, plain: p}, nil
}

func otherStamp(name, have, want string) error {
	return fmt.Errorf("%w: its stamp %q says %q, not %q", storage.ErrNotEmpty, name, have, want)
}

// stamp is the last thing before a store that chooses its revisions by itself is shown.
func (d *destination) stamp(ctx context.Context) error {
	s, ok := d.store.(storage.Stamper)
	if !ok {
		return nil
	}
	for name, value := range d.stamps {
		have, err := s.Stamp(ctx, name, value)
		if err != nil {
			return err
		}
		if have != value {
			return otherStamp(name, have, value)
		}
	}
	return nil
}

func (d *destination) fill(ctx context.Context, oldest storage.Revision, records iter.Seq2[storage.Record, error]) error {
	if d.plain != nil {
		return d.plain.fill(ctx, records)
	}
	return d.store.(storage.Importer).Import(ctx, d.stamps, oldest, records)
}

// finish compares what arrived with what was sent, whose newest revision is at.
func (d *destination) finish(ctx context.Context, at storage.Revision, want digest, report *Report, o Options) (err error) {
	report.Kept = d.plain == nil
	if d.plain != nil {
		if err := d.plain.raise(ctx, at+1); err != nil {
			return err
		}
	}
	if report.Reached, err = d.store.Revision(ctx); err != nil {
		return err
	}
	if report.Reached < at || report.Kept && report.Reached != at {
		return fmt.Errorf("the destination ends at revision %d, not %d", report.Reached, at)
	}
	if err := verify(ctx, d.store, report.Reached, want, report.Kept, o); err != nil {
		return fmt.Errorf("what arrived is not what was sent, do not use it: %w", err)
	}
	if d.settled != nil {
		if err := d.settled(ctx); err != nil {
			return err
		}
	}
	if d.plain == nil {
		return nil
	}
	if err := d.stamp(ctx); err != nil {
		return err
	}
	report.Reached, err = d.plain.finish(ctx)
	return err
}

// verify compares the records of a store at a revision with a digest, their own revisions
// only if they are kept.
func verify(ctx context.Context, b storage.Backend, at storage.Revision, want digest, kept bool, o Options) error {
	_, records, err := b.Scan(ctx, "", "", at)
	if err != nil {
		return err
	}
	var found digest
	var pace pace
	p := Progress{Phase: Verifying, Revision: at, Total: want.keys}
	for rec, err := range records {
		var damaged *storage.DamagedError
		switch {
		case errors.As(err, &damaged) && o.SkipDamaged:
			continue
		case err != nil:
			return err
		case !kept && isScratch(rec.Key):
			continue
		}
		found.add(rec)
		p.Versions, p.Bytes = p.Versions+1, p.Bytes+int64(len(rec.Key)+len(rec.Value))
		if o.Progress != nil && pace.due(p.Versions, p.Bytes) {
			o.Progress(p)
		}
	}
	if !kept {
		found.records, want.records = sum{}, sum{}
	}
	return found.compare(want)
}

// isScratch reports whether a key belongs to the filling itself.
func isScratch(key string) bool {
	return key == storage.UnfinishedKey || strings.HasPrefix(key, scratchPrefix)
}
