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

// Report describes the state of the directory of a store.
type Report struct {
	// Problems describe damage and losses.
	Problems []string
	// Notes describe unusual findings that are not a loss, such as the traces of a killed process.
	Notes []string
	// Damaged are the current records that cannot be read, sorted by key. They include records whose
	// value is in the value log of an older release, which Inspect does not read.
	Damaged []storage.DamagedError
	// Records is the number of current records that can be read.
	Records int
	// Revision is the newest revision that was found. Acknowledged is the newest revision that the
	// witness has recorded as acknowledged, 0 if there is no witness.
	Revision, Acknowledged storage.Revision
}

// Intact reports whether there are no faults and no damaged records.
func (r *Report) Intact() bool { return len(r.Problems) == 0 && len(r.Damaged) == 0 }

func (r *Report) fault(format string, args ...any) {
	r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
}

// Inspect examines the directory of a store that is not open. It reads the files without the database and does
// not change them. It fails with ErrInUse if the store is open.
func Inspect(ctx context.Context, dir string) (*Report, error) {
	return inspectDir(ctx, dir, func(storage.Record) error { return nil }, func(*inspection) error { return nil })
}

// Salvage creates a store in the directory to, which must be empty or not exist, from all current records that
// can be read in dir. It also reads tables that the list of tables does not name. Records keep their
// revisions, and the new store never reuses a revision of the old store. The history is not copied. A
// deleted record may reappear if its deletion is lost.
func Salvage(ctx context.Context, dir, to string) (*Report, error) {
	if files, err := os.ReadDir(to); err == nil && len(files) > 0 {
		return nil, fmt.Errorf("salvage into %s: the directory is not empty", to)
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

// salvageInto writes the readable records of dir to a new database in to.
func salvageInto(ctx context.Context, dir, to string) (_ *Report, err error) {
	unlock, err := lock(to)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	makeDirPrivate(to, slog.New(slog.DiscardHandler))
	set := settings(Options{Dir: to})
	set.Logger = nil
	db, err := badger.OpenManaged(set)
	if err != nil {
		return nil, err
	}
	out := &salvage{db: db, piece: pieceSize(set)}
	report, err := inspectDir(ctx, dir, out.put, out.finish)
	return report, errors.Join(err, db.Close())
}

// openAndClose verifies that the store in dir can be opened, and returns its statistics.
func openAndClose(dir string) (Stats, error) {
	s, err := Open(Options{Dir: dir, Retain: -1})
	if err != nil {
		return Stats{}, err
	}
	return s.Stats(), s.Close()
}

// inspectDir locks dir and examines it: it compares the state that Open would find with the witness, calls each for
// every readable current record, and finally calls finish.
func inspectDir(ctx context.Context, dir string, each func(storage.Record) error, finish func(*inspection) error) (_ *Report, err error) {
	if _, err := os.Stat(dir); err != nil {
		return nil, err
	}
	unlock, err := lockDir(dir)
	if err != nil {
		return nil, fmt.Errorf("inspect %s: %w", dir, err)
	}
	defer func() { err = errors.Join(err, unlock()) }()
	v, err := surveyDir(dir)
	if err != nil {
		return nil, err
	}
	r := &inspection{survey: v, ctx: ctx, report: &Report{Acknowledged: v.record.revision}}
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

// inspection is an examination of a directory without the database.
type inspection struct {
	*survey
	ctx    context.Context
	report *Report
	newest map[string]version // newest version of each record, by database key
	stamps map[string]stamp   // by database key
	groups map[string]entry   // groups, by database key
	marked uint64             // the revision in the mark
}

type stamp struct {
	version uint64
	value   []byte
}

// summarize reports the faults for which Open would refuse the directory, and losses.
func (r *inspection) summarize() error {
	for _, fault := range r.faults {
		r.report.fault("%v", fault)
	}
	if err := unfinishedImport(r.dir); err != nil {
		r.report.fault("%v", err)
	}
	if !r.witnessed {
		r.report.Notes = append(r.report.Notes, errNoWitness.Error())
	}
	if err := checkPrivate(r.dir); err != nil {
		r.report.Notes = append(r.report.Notes, err.Error())
	}
	if r.manifestTorn {
		r.report.Notes = append(r.report.Notes, badger.ManifestFilename+" ends within an incomplete change")
	}
	for _, id := range r.unlisted {
		r.report.Notes = append(r.report.Notes, filepath.Base(r.path(id))+" is not named in "+badger.ManifestFilename)
	}
	for _, path := range r.empty {
		r.report.Notes = append(r.report.Notes, filepath.Base(path)+" is empty; its process was killed")
	}
	for _, l := range r.logs {
		if !l.clean {
			r.report.Notes = append(r.report.Notes, fmt.Sprintf("%s: after %d entries, at byte %d, %d bytes cannot be read", filepath.Base(l.path), l.entries, l.offset, l.more))
		}
	}
	if text, err := readBounded(filepath.Join(r.dir, lostFile), 1<<20); err == nil {
		r.report.fault("%s: %s", lostFile, strings.TrimSpace(string(text)))
	}
	c := &census{at: r.record.revision, floor: r.record.floor, newest: map[string]version{}, wanted: map[string]bool{}}
	for _, id := range r.unlisted {
		_, _ = readTable(r.path(id), c.want)
	}
	if err := r.visitEntries(r.tables, c.count, nil); err != nil {
		return err
	}
	if n := c.missing(); n > 0 {
		r.report.fault("%d entries exist only in tables that %s does not name", n, badger.ManifestFilename)
	}
	if fault := r.record.compare(c.last, c.set()); fault != nil {
		r.report.fault("commits are lost: %v", fault)
	}
	return nil
}

// visitEntries calls visit for the entries of the given tables, of all logs and of the groups. If bad is not nil, it
// is called for each damaged block.
func (r *inspection) visitEntries(tables []uint64, visit func(entry) error, bad func(table string, b badBlock)) error {
	var stop error // error of visit; errors of tables are already in the survey
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
	return r.visitGroups(checked)
}

// visitGroups calls visit for the entries that Open would write if they are missing, see finishGroups.
func (r *inspection) visitGroups(visit func(entry) error) error {
	for _, g := range r.groups {
		if g.version <= r.marked {
			continue
		}
		entries, ok := decodeGroup(storage.Revision(g.version), g.value)
		if !ok {
			r.report.fault("the group of revision %d cannot be read", g.version)
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

// collectGroups finds the groups and the revision in the mark.
func (r *inspection) collectGroups() error {
	groups := map[string]entry{}
	err := r.visitEntries(append(slices.Clone(r.tables), r.unlisted...), func(e entry) error {
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

// collect finds the newest version of each record and stamp in all files.
func (r *inspection) collect() error {
	if err := r.collectGroups(); err != nil {
		return err
	}
	r.newest, r.stamps = map[string]version{}, map[string]stamp{}
	return r.visitEntries(append(slices.Clone(r.tables), r.unlisted...), func(e entry) error {
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
		r.report.fault("%s: the entries between the keys %q and %q cannot be read", table, b.first, b.next)
	})
}

// value is a value of which some pieces have been read.
type value struct {
	key   string
	head  []byte
	parts [][]byte
	left  int // number of pieces that are missing
}

// readRecords calls each for every current record that can be read, and reports the others as damaged. Values in
// pieces take a second pass over the files, because pieces are not next to their heads.
func (r *inspection) readRecords(each func(storage.Record) error) error {
	done := make(map[string]bool)
	faults := make(map[string]error)
	read := func(key string, at storage.Revision, encoding byte, stored []byte, parts [][]byte) error {
		name := strings.TrimPrefix(key, recordPrefix)
		data, err := unseal(name, at, encoding, stored, func(i int) ([]byte, error) { return parts[i], nil })
		if err != nil {
			faults[key] = err
			return nil
		}
		done[key] = true
		r.report.Records++
		return each(storage.Record{Key: name, Value: data, Revision: at})
	}
	large := make(map[storage.Revision]*value)
	files := append(slices.Clone(r.tables), r.unlisted...)
	err := r.visitEntries(files, func(e entry) error {
		key := string(e.key)
		if v, ok := r.newest[key]; !ok || v.deleted || e.deleted || v.revision != e.version || done[key] {
			return nil
		}
		at := storage.Revision(e.version)
		switch n := piecesOf(e.encoding, e.value); {
		case e.value == nil:
			faults[key] = errors.New("value is in the value log of an older release, which Inspect does not read; open the store to read it")
		case n > 0:
			large[at] = &value{key: key, head: slices.Clone(e.value), parts: make([][]byte, n), left: n}
		default:
			return read(key, at, e.encoding, slices.Clone(e.value), nil)
		}
		return nil
	}, nil)
	if err != nil {
		return err
	}
	err = r.visitEntries(files, func(e entry) error {
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
		return read(v.key, at, encodingPieces, v.head, v.parts)
	}, nil)
	for _, v := range large { // values with missing pieces
		faults[v.key] = fmt.Errorf("%d of its %d pieces are missing", v.left, len(v.parts))
	}
	r.nameDamaged(done, faults)
	return err
}

// nameDamaged adds the records that are not in done to the report, with their errors.
func (r *inspection) nameDamaged(done map[string]bool, faults map[string]error) {
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

// salvage writes records to a new database.
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

// finish writes the stamps and the mark. The history begins after every revision that the old store may have used.
func (s *salvage) finish(r *inspection) error {
	at := max(r.report.Revision, r.record.revision, r.record.reserved)
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
