package badgerstore

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dgraph-io/badger/v4"

	"orch.io/controlplane/storage"
)

// Report is what is found in the directory of a store.
type Report struct {
	// Faults say what is wrong; none means that nothing is.
	Faults []string
	// Notes say what is unusual but no loss, such as what a kill leaves.
	Notes []string
	// Damaged are the newest records that cannot be read, by key. Among them are
	// those in the value log of an older release, which nobody has read.
	Damaged []storage.DamagedError
	// Records is how many can be read, in whatever file they are.
	Records int
	// Revision is the newest one that is found, Acknowledged the one that the
	// store had told somebody, 0 if nobody knows.
	Revision, Acknowledged storage.Revision
}

// Whole reports whether nothing is wrong.
func (r *Report) Whole() bool { return len(r.Faults) == 0 && len(r.Damaged) == 0 }

func (r *Report) fault(format string, args ...any) {
	r.Faults = append(r.Faults, fmt.Sprintf(format, args...))
}

// Inspect reads the directory of a store that is not open, without the
// database, and changes nothing in it. It fails with ErrInUse if somebody has the
// store open.
func Inspect(ctx context.Context, dir string) (*Report, error) {
	return examine(ctx, dir, func(storage.Record) error { return nil }, func(*ruin) error { return nil })
}

// Salvage makes a store in the directory to, which must be empty or not exist,
// from every record that can be read in dir, also from tables that the list does
// not name any more. Records keep their revisions, their history is left behind,
// and no revision is used again. What was deleted may be there again if its
// deletion is lost.
func Salvage(ctx context.Context, dir, to string) (*Report, error) {
	if files, err := os.ReadDir(to); err == nil && len(files) > 0 {
		return nil, fmt.Errorf("salvage into %s: it is not empty", to)
	}
	if err := writable(to); err != nil {
		return nil, fmt.Errorf("salvage into %s: %w", to, err)
	}
	report, err := salvageInto(ctx, dir, to)
	if err != nil {
		return report, fmt.Errorf("salvage from %s into %s: %w", dir, to, err)
	}
	_, err = openAndClose(to)
	return report, err
}

func salvageInto(ctx context.Context, dir, to string) (_ *Report, err error) {
	unlock, err := lock(to)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	shield(to, slog.New(slog.DiscardHandler))
	set := settings(Options{Dir: to})
	set.Logger = nil
	db, err := badger.OpenManaged(set)
	if err != nil {
		return nil, err
	}
	out := &salvage{db: db, piece: pieceSize(set)}
	report, err := examine(ctx, dir, out.put, out.finish)
	return report, errors.Join(err, db.Close())
}

// openAndClose proves that a directory can be served.
func openAndClose(dir string) (Stats, error) {
	s, err := Open(Options{Dir: dir, Retain: -1})
	if err != nil {
		return Stats{}, err
	}
	return s.Stats(), s.Close()
}

// examine reads a directory: what Open would see, compared with the witness,
// and then each record that can be read, which it gives to each.
func examine(ctx context.Context, dir string, each func(storage.Record) error, finish func(*ruin) error) (_ *Report, err error) {
	if _, err := os.Stat(dir); err != nil {
		return nil, err
	}
	unlock, err := hold(dir)
	if err != nil {
		return nil, fmt.Errorf("inspect %s: %w", dir, err)
	}
	defer func() { err = errors.Join(err, unlock()) }()
	v, err := look(dir)
	if err != nil {
		return nil, err
	}
	r := &ruin{survey: v, ctx: ctx, report: &Report{Acknowledged: v.told.revision}}
	if err := r.summarize(); err != nil {
		return nil, err
	}
	if err := r.collect(); err != nil {
		return nil, err
	}
	if err := r.readRecords(each); err != nil {
		return r.report, err
	}
	return r.report, finish(r)
}

// ruin is a directory that is read without the database.
type ruin struct {
	*survey
	ctx    context.Context
	report *Report
	newest map[string]version // of every key
	stamps map[string]stamp   // by key
	groups map[string]entry   // commits of several writes, by key
	marked uint64             // the revision in the mark
}

type stamp struct {
	version uint64
	value   []byte
}

// summarize says what Open would say, and what it would not find.
func (r *ruin) summarize() error {
	for _, fault := range r.faults {
		r.report.fault("%v", fault)
	}
	if err := unfinishedImport(r.dir); err != nil {
		r.report.fault("%v", err)
	}
	if !r.witnessed {
		r.report.Notes = append(r.report.Notes, errNoWitness.Error())
	}
	if err := exposed(r.dir); err != nil {
		r.report.Notes = append(r.report.Notes, err.Error())
	}
	if r.torn {
		r.report.Notes = append(r.report.Notes, badger.ManifestFilename+" ends within a change")
	}
	for _, id := range r.strays {
		r.report.Notes = append(r.report.Notes, filepath.Base(r.path(id))+" is named nowhere")
	}
	for _, path := range r.empty {
		r.report.Notes = append(r.report.Notes, filepath.Base(path)+" is empty, as a kill leaves it")
	}
	for _, l := range r.logs {
		if !l.clean {
			r.report.Notes = append(r.report.Notes, fmt.Sprintf("%s: after %d entries, at byte %d, %d bytes cannot be read", filepath.Base(l.path), l.entries, l.offset, l.more))
		}
	}
	if text, err := readBounded(filepath.Join(r.dir, lostFile), 1<<20); err == nil {
		r.report.fault("%s: %s", lostFile, strings.TrimSpace(string(text)))
	}
	c := &census{at: r.told.revision, floor: r.told.floor, newest: map[string]version{}, wanted: map[string]bool{}}
	for _, id := range r.strays {
		_, _ = readTable(r.path(id), c.want)
	}
	if err := r.each(r.tables, c.count, nil); err != nil {
		return err
	}
	if n := c.missing(); n > 0 {
		r.report.fault("%d entries are only in tables that %s does not name", n, badger.ManifestFilename)
	}
	if fault := r.told.compare(c.last, c.set()); fault != nil {
		r.report.fault("the store is not what it was: %v", fault)
	}
	return nil
}

// each visits the entries of tables and of all logs. bad, if there is one, gets
// the blocks that cannot be read.
func (r *ruin) each(tables []uint64, visit func(entry) error, bad func(table string, b badBlock)) error {
	var stop error // of the visitor; what is wrong with a table is in the survey
	checked := func(e entry) error {
		if stop = r.ctx.Err(); stop == nil {
			stop = visit(e)
		}
		return stop
	}
	for _, id := range tables {
		blocks, _ := readTable(r.path(id), checked)
		if stop != nil {
			return stop
		}
		for _, b := range blocks {
			if bad != nil {
				bad(filepath.Base(r.path(id)), b)
			}
		}
	}
	for _, l := range r.logs {
		if _, err := readLog(l.path, checked); err != nil {
			return err
		}
	}
	return r.eachOfGroups(checked)
}

// eachOfGroups visits the entries that Open makes if they are missing.
func (r *ruin) eachOfGroups(visit func(entry) error) error {
	for _, g := range r.groups {
		if g.version <= r.marked {
			continue
		}
		entries, ok := decodeGroup(storage.Revision(g.version), g.value)
		if !ok {
			r.report.fault("what was committed at revision %d cannot be read", g.version)
			continue
		}
		for _, e := range entries {
			if err := visit(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// collectGroups finds the commits of several writes that may not be finished.
func (r *ruin) collectGroups() error {
	groups := map[string]entry{}
	err := r.each(append(slices.Clone(r.tables), r.strays...), func(e entry) error {
		key := string(e.key)
		switch {
		case strings.HasPrefix(key, groupPrefix) && e.version > groups[key].version:
			e.key, e.value = nil, slices.Clone(e.value)
			groups[key] = e
		case key == markKey && len(e.value) == markBytes:
			r.marked = max(r.marked, binary.BigEndian.Uint64(e.value[8:]))
		}
		return nil
	}, nil)
	r.groups = groups
	return err
}

// collect finds the newest version of every key in all files.
func (r *ruin) collect() error {
	if err := r.collectGroups(); err != nil {
		return err
	}
	r.newest, r.stamps = map[string]version{}, map[string]stamp{}
	return r.each(append(slices.Clone(r.tables), r.strays...), func(e entry) error {
		key := string(e.key)
		switch {
		case strings.HasPrefix(key, recordPrefix):
			if old, ok := r.newest[key]; !ok || e.version > old.revision {
				r.newest[key] = version{e.version, e.deleted}
			}
			r.report.Revision = max(r.report.Revision, storage.Revision(e.version))
		case strings.HasPrefix(key, stampPrefix) && !e.deleted:
			if old, ok := r.stamps[key]; !ok || e.version > old.version {
				r.stamps[key] = stamp{e.version, slices.Clone(e.value)}
			}
		}
		return nil
	}, func(table string, b badBlock) {
		r.report.fault("%s: what lies between the keys %q and %q cannot be read", table, b.first, b.next)
	})
}

// value is one that is put together from pieces.
type value struct {
	key   string
	head  []byte
	parts [][]byte
	left  int
}

// readRecords gives the newest record of each key that can be read to each, and
// says which cannot be.
func (r *ruin) readRecords(each func(storage.Record) error) error {
	done := make(map[string]bool)
	faults := make(map[string]error)
	read := func(key string, at storage.Revision, form byte, stored []byte, parts [][]byte) error {
		name := strings.TrimPrefix(key, recordPrefix)
		data, err := unseal(name, at, form, stored, func(i int) ([]byte, error) { return parts[i], nil })
		if err != nil {
			faults[key] = err
			return nil
		}
		done[key] = true
		r.report.Records++
		return each(storage.Record{Key: name, Value: data, Revision: at})
	}
	large := make(map[storage.Revision]*value)
	files := append(slices.Clone(r.tables), r.strays...)
	err := r.each(files, func(e entry) error {
		key := string(e.key)
		if v, ok := r.newest[key]; !ok || v.deleted || e.deleted || v.revision != e.version || done[key] {
			return nil
		}
		at := storage.Revision(e.version)
		switch n := piecesOf(e.form, e.value); {
		case e.value == nil:
			faults[key] = errors.New("its value is in the value log of an older release, which is not read here; the store itself reads it")
		case n > 0:
			large[at] = &value{key: key, head: slices.Clone(e.value), parts: make([][]byte, n), left: n}
		default:
			return read(key, at, e.form, slices.Clone(e.value), nil)
		}
		return nil
	}, nil)
	if err != nil {
		return err
	}
	err = r.each(files, func(e entry) error {
		at, i, ok := pieceOf(e.key)
		v := large[at]
		if !ok || v == nil || e.deleted || i >= len(v.parts) || v.parts[i] != nil {
			return nil
		}
		v.parts[i] = slices.Clone(e.value)
		if v.left--; v.left > 0 {
			return nil
		}
		delete(large, at)
		return read(v.key, at, formPieces, v.head, v.parts)
	}, nil)
	for _, v := range large { // the rest
		faults[v.key] = fmt.Errorf("%d of its %d pieces are missing", v.left, len(v.parts))
	}
	r.nameDamaged(done, faults)
	return err
}

// nameDamaged reports the records that were not read, and why.
func (r *ruin) nameDamaged(done map[string]bool, faults map[string]error) {
	for _, key := range slices.Sorted(maps.Keys(r.newest)) {
		v := r.newest[key]
		if v.deleted || done[key] {
			continue
		}
		r.report.Damaged = append(r.report.Damaged, storage.DamagedError{
			Key: strings.TrimPrefix(key, recordPrefix), Revision: storage.Revision(v.revision), Err: cmp.Or(faults[key], errNoValue),
		})
	}
}

// salvage writes records into a new database.
type salvage struct {
	db    *badger.DB
	piece int
}

func (s *salvage) put(rec storage.Record) error {
	head, pieces := seal(rec, s.piece)
	batch := s.db.NewManagedWriteBatch()
	defer batch.Cancel()
	for _, e := range append(pieces, head) {
		if err := batch.SetEntryAt(e, uint64(rec.Revision)); err != nil {
			return err
		}
	}
	return batch.Flush()
}

// finish writes what the store knows about itself. The history begins behind
// every revision that was ever used.
func (s *salvage) finish(r *ruin) error {
	at := max(r.report.Revision, r.told.revision, r.told.reserved)
	batch := s.db.NewManagedWriteBatch()
	defer batch.Cancel()
	last := uint64(1)
	for key, v := range r.stamps {
		last = max(last, v.version)
		if err := batch.SetEntryAt(badger.NewEntry([]byte(key), v.value), v.version); err != nil {
			return err
		}
	}
	if at > 0 && at < math.MaxInt64 {
		if err := batch.SetEntryAt(badger.NewEntry([]byte(markKey), mark(at, at)), last); err != nil {
			return err
		}
	}
	return batch.Flush()
}
