package backup

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"orch.io/controlplane/storage"
)

// Copy copies all records, the history and the stamps of a store into an empty store. The destination must not be used until
// Copy returns. See the package documentation for revisions and verification.
func Copy(ctx context.Context, from, to storage.Backend, o Options) (*Report, error) {
	report, err := move(ctx, from, to, o)
	if err != nil {
		return report, fmt.Errorf("copy: %w", err)
	}
	return report, nil
}

func move(ctx context.Context, from, to storage.Backend, o Options) (*Report, error) {
	o = o.metered()
	s := &source{store: from, o: o, report: &Report{}, twice: true}
	if err := checkComplete(ctx, from); err != nil {
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
	d.checkSource = s.checkUnchanged
	if err := d.fill(ctx, s.oldest, s.versions(ctx)); err != nil {
		return s.report, err
	}
	s.reportProgress(Verifying)
	return s.report, d.finish(ctx, s.report.Revision, s.now, s.report, Options{Progress: s.o.Progress})
}

// versions returns the result of read as a sequence. An error is its last element. read also compares the source with the
// first reading, before the destination publishes anything.
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

// checkUnchanged returns an error if the source was written to after its writers should have stopped.
func (s *source) checkUnchanged(ctx context.Context) error {
	at := s.report.Revision
	s.emit = func(storage.Record) error {
		return fmt.Errorf("the source was written to after revision %d, when its writers should have been stopped: do not use the copy", at)
	}
	return s.catchUp(ctx)
}

// checkComplete returns an error if the source is incomplete, see storage.IncompleteKey.
func checkComplete(ctx context.Context, from storage.Backend) error {
	_, err := from.Get(ctx, storage.IncompleteKey, 0)
	switch {
	case err == nil:
		return errors.New("the source is incomplete: a copy or restore into it was interrupted and never finished")
	case errors.Is(err, storage.ErrNotFound):
		return nil
	}
	return err
}

// stampsOf returns the stamps of a store, nil if it is not a storage.Stamper.
func stampsOf(ctx context.Context, from storage.Backend) (map[string]string, error) {
	switch s := from.(type) {
	case storage.StampReader:
		return s.Stamps(ctx)
	case storage.Stamper:
		return nil, errors.New("the source does not implement storage.StampReader, so its stamps cannot be copied")
	}
	return nil, nil
}

// destination is the store that is being filled.
type destination struct {
	store  storage.Backend
	stamps map[string]string
	plain  *plain // nil if the store is a storage.Importer

	checkSource func(context.Context) error // last check of the source; may be nil
}

// prepare checks that the destination has no other values of the stamps. If it is not a storage.Importer, prepare also
// raises its revision to newest, which may take long.
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
	return fmt.Errorf("%w: stamp %q has the value %q instead of %q", storage.ErrNotEmpty, name, have, want)
}

// stamp sets the stamps of a destination that is not a storage.Importer, right before its mark is removed.
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

// finish compares the destination with the records that were sent: want is their digest, and at their newest revision.
func (d *destination) finish(ctx context.Context, at storage.Revision, want digest, report *Report, o Options) (err error) {
	report.RevisionsKept = d.plain == nil
	if d.plain != nil {
		if err := d.plain.raise(ctx, at+1); err != nil {
			return err
		}
	}
	if report.DestinationRevision, err = d.store.Revision(ctx); err != nil {
		return err
	}
	if report.DestinationRevision < at || report.RevisionsKept && report.DestinationRevision != at {
		return fmt.Errorf("the newest revision of the destination is %d instead of %d", report.DestinationRevision, at)
	}
	if err := verify(ctx, d.store, report.DestinationRevision, want, report.RevisionsKept, o); err != nil {
		return fmt.Errorf("the destination differs from the source, do not use it: %w", err)
	}
	if d.checkSource != nil {
		if err := d.checkSource(ctx); err != nil {
			return err
		}
	}
	if d.plain == nil {
		return nil
	}
	if err := d.stamp(ctx); err != nil {
		return err
	}
	report.DestinationRevision, err = d.plain.finish(ctx)
	return err
}

// verify compares the records of a store at a revision with a digest. It compares the revisions of the records only if
// kept is set.
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

// isScratch reports whether a key is used only while a store is being filled.
func isScratch(key string) bool {
	return key == storage.IncompleteKey || strings.HasPrefix(key, scratchPrefix)
}
