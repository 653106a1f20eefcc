package badgerstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/table"

	"orch.io/controlplane/storage"
)

const lockFile = "LOCK"

// survey describes the files of a directory before the database opens them. When Badger opens a directory, it deletes
// tables that its list of tables (the manifest) does not name and truncates damaged logs. A survey changes
// nothing.
type survey struct {
	dir          string
	record       witnessRecord  // record of the witness
	witnessed    bool           // record was read from a file
	tables       []uint64       // tables that the manifest names
	levels       map[uint64]int // their levels
	bytes        int64          // size of all table files
	unlisted     []uint64       // tables that the manifest does not name
	repairable   []uint64       // tables in which only pieces of large values are damaged
	manifestTorn bool           // the manifest ends within an incomplete change
	logs         []logFound
	empty        []string // empty log files, left by a killed process
	faults       []error  // reasons to refuse the directory
}

// logFound is a log file and the end of its readable entries.
type logFound struct {
	path string
	logEnd
}

// surveyDir reads the files of a directory.
func surveyDir(dir string) (*survey, error) {
	v := &survey{dir: dir}
	var err error
	v.record, err = readWitness(dir)
	if v.witnessed = err == nil; !v.witnessed && !errors.Is(err, errNoWitness) {
		return nil, err
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	found := make(map[uint64]bool)
	for _, f := range files {
		name := f.Name()
		if id, ok := table.ParseFileID(name); ok {
			found[id] = true
			v.bytes += fileBytes(f)
		}
		if ext := filepath.Ext(name); ext == ".mem" || ext == ".vlog" {
			if err := v.checkLog(name); err != nil {
				return nil, err
			}
		}
	}
	if err := v.checkManifest(found); err != nil {
		return nil, err
	}
	v.checkKeyRegistry()
	for _, id := range v.tables {
		if !found[id] {
			v.fault("%s names table %s, which is missing", badger.ManifestFilename, filepath.Base(v.path(id)))
			continue
		}
		delete(found, id)
		bad, err := readTable(v.path(id), nil)
		if err == nil && onlyPieces(bad) {
			v.repairable = append(v.repairable, id)
			continue
		}
		for _, b := range bad {
			v.fault("table %s: %w", filepath.Base(v.path(id)), b.err)
		}
		if err != nil {
			v.fault("table %s: %w", filepath.Base(v.path(id)), err)
		}
	}
	for id := range found {
		v.unlisted = append(v.unlisted, id)
	}
	slices.Sort(v.unlisted)
	v.checkLevels()
	return v, nil
}

// fileBytes returns the allocated bytes of a file, 0 if it was removed.
func fileBytes(f os.DirEntry) int64 {
	info, err := f.Info()
	if err != nil {
		return 0
	}
	return allocated(info)
}

func (v *survey) path(id uint64) string { return filepath.Join(v.dir, table.IDToFilename(id)) }

func (v *survey) fault(format string, args ...any) {
	v.faults = append(v.faults, fmt.Errorf(format, args...))
}

// checkLog adds a log to the survey.
func (v *survey) checkLog(name string) error {
	path := filepath.Join(v.dir, name)
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	switch {
	case info.Size() == 0:
		v.empty = append(v.empty, path)
	case !plainLog(path):
		v.fault("%s: the header is damaged", name)
	case strings.HasSuffix(name, ".mem"):
		end, err := readLog(path, nil)
		if err != nil {
			return err
		}
		v.logs = append(v.logs, logFound{path, end})
	}
	return nil
}

// checkManifest reads the list of tables. found has the ids of the table files in the directory.
func (v *survey) checkManifest(found map[uint64]bool) error {
	f, err := os.Open(filepath.Join(v.dir, badger.ManifestFilename))
	if errors.Is(err, os.ErrNotExist) {
		entries := 0
		for _, l := range v.logs {
			entries += l.entries
		}
		if len(found) > 0 || entries > 0 || v.record.revision > 0 {
			v.fault("%s, the list of tables, is missing, but there are %d tables, %d log entries and a witness of revision %d",
				badger.ManifestFilename, len(found), entries, v.record.revision)
		}
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	list, end, err := badger.ReplayManifestFile(f, 0, settings(Options{Dir: v.dir, Logger: slog.New(slog.DiscardHandler)}))
	if err != nil {
		v.fault("%s, the list of tables, cannot be read: %w", badger.ManifestFilename, err)
		return nil
	}
	v.manifestTorn = end < info.Size()
	v.levels = make(map[uint64]int)
	for id, t := range list.Tables {
		v.tables = append(v.tables, id)
		v.levels[id] = int(t.Level)
	}
	slices.Sort(v.tables)
	return nil
}

// remedy is the end of the errors for directories that Open refuses.
const remedy = "the directory was not changed; salvage the readable records into a new directory, or restore a backup"

// errFilesDamaged is returned if tables or the list of tables are missing or damaged.
var errFilesDamaged = errors.New("the files are damaged")

// verifyFiles returns an error if the directory has faults. If there are traces of a crash (unlisted tables or an
// incomplete manifest), it also compares the records with the witness.
func (v *survey) verifyFiles() error {
	if len(v.faults) > 0 {
		return fmt.Errorf("%w: %w; %s", errFilesDamaged, errors.Join(v.faults...), remedy)
	}
	if !v.manifestTorn && len(v.unlisted) == 0 {
		return nil
	}
	c := &census{at: v.record.revision, floor: v.record.floor, newest: map[string]version{}, wanted: map[string]bool{}}
	for _, id := range v.unlisted {
		// If the table cannot be read, the process ended before it was complete: ignore it.
		_, _ = readTable(v.path(id), c.want)
	}
	for _, id := range v.tables {
		if _, err := readTable(v.path(id), c.count); err != nil {
			return fmt.Errorf("%w: table %s: %w; %s", errFilesDamaged, filepath.Base(v.path(id)), err, remedy)
		}
	}
	for _, l := range v.logs {
		if _, err := readLog(l.path, c.count); err != nil {
			return err
		}
	}
	if n := c.missing(); n > 0 {
		return fmt.Errorf("%w: %s does not name %d tables in the directory, which have %d entries that exist nowhere else; %s",
			errFilesDamaged, badger.ManifestFilename, len(v.unlisted), n, remedy)
	}
	if fault := v.record.compare(c.last, c.set()); fault != nil {
		return fmt.Errorf("%w: %s is incomplete: %w; %s", errFilesDamaged, badger.ManifestFilename, fault, remedy)
	}
	return nil
}

// repair removes empty logs, which a killed process has left, and repairs tables in which only pieces of large values
// are damaged.
func (v *survey) repair(log *slog.Logger, o badger.Options) error {
	for _, id := range v.repairable {
		path := v.path(id)
		log.Error("pieces of large values in a table are damaged; the table is replaced and a copy is kept", "path", path, "copy", path+damagedSuffix)
		if err := repairTable(path, o); err != nil {
			return fmt.Errorf("%w: %w; %s", errFilesDamaged, err, remedy)
		}
	}
	for _, path := range v.empty {
		log.Warn("storage removes an empty log of a killed process", "path", path)
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	for _, l := range v.logs {
		if !l.clean {
			log.Warn("a log of the storage ends within an incomplete entry", "path", l.path, "entries", l.entries, "offset", l.offset, "ignoredBytes", l.more)
		}
	}
	return nil
}

// version is a version of a key.
type version struct {
	revision uint64
	deleted  bool
}

// census determines the set of records at a revision from entries in any order, and whether unlisted tables have
// entries that exist nowhere else.
type census struct {
	at     storage.Revision   // revision of the set
	floor  storage.Revision   // start of the history
	last   storage.Revision   // newest revision
	newest map[string]version // newest version up to at, by database key
	wanted map[string]bool    // entries of unlisted tables that were not found elsewhere, by key and version
}

// count adds an entry of a listed table or of a log.
func (c *census) count(e entry) error {
	delete(c.wanted, string(binary.BigEndian.AppendUint64(e.key, e.version)))
	switch {
	case len(e.key) > 0 && string(e.key[:1]) == recordPrefix:
		c.last = max(c.last, storage.Revision(e.version))
		if old := c.newest[string(e.key)]; storage.Revision(e.version) <= c.at && e.version > old.revision {
			c.newest[string(e.key)] = version{e.version, e.deleted}
		}
	case string(e.key) == markKey && len(e.value) == markBytes:
		c.floor = max(c.floor, storage.Revision(binary.BigEndian.Uint64(e.value)))
		c.last = max(c.last, storage.Revision(binary.BigEndian.Uint64(e.value[8:])))
	}
	return nil
}

// want adds an entry of an unlisted table. Only entries of the retained history count, because others may have been
// discarded by a compaction.
func (c *census) want(e entry) error {
	if p := string(e.key[:min(1, len(e.key))]); (p == recordPrefix || p == piecePrefix) && !e.deleted && storage.Revision(e.version) > c.floor {
		c.wanted[string(binary.BigEndian.AppendUint64(e.key, e.version))] = true
	}
	return nil
}

// missing returns the number of entries of the retained history that exist only in unlisted tables.
func (c *census) missing() (n int) {
	for key := range c.wanted {
		if storage.Revision(binary.BigEndian.Uint64([]byte(key[len(key)-8:]))) > c.floor {
			n++
		}
	}
	return n
}

// set returns the set of records at revision c.at.
func (c *census) set() (s set) {
	for key, v := range c.newest {
		if !v.deleted {
			s.add(key[len(recordPrefix):], storage.Revision(v.revision))
		}
	}
	return s
}
