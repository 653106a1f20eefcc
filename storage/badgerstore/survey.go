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

// survey is what the files of a directory say before the database opens them,
// which deletes tables that its list does not name and cuts off logs. Making it
// changes nothing.
type survey struct {
	dir       string
	told      testimony
	witnessed bool
	tables    []uint64 // that the list names
	levels    map[uint64]int
	bytes     int64    // in tables
	strays    []uint64 // that it does not name
	spoilt    []uint64 // tables that lost parts of large values
	torn      bool     // the list ends in the middle of a change
	logs      []logFound
	empty     []string // logs that a kill left without a byte
	faults    []error  // for which the directory is refused
}

type logFound struct {
	path string
	logEnd
}

// look reads a directory.
func look(dir string) (*survey, error) {
	v := &survey{dir: dir}
	var err error
	v.told, err = readWitness(dir)
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
			if err := v.lookAtLog(name); err != nil {
				return nil, err
			}
		}
	}
	if err := v.lookAtList(found); err != nil {
		return nil, err
	}
	v.lookAtKeys()
	for _, id := range v.tables {
		if !found[id] {
			v.fault("%s names table %s, which is missing", badger.ManifestFilename, filepath.Base(v.path(id)))
			continue
		}
		delete(found, id)
		bad, err := readTable(v.path(id), nil)
		if err == nil && onlyPieces(bad) {
			v.spoilt = append(v.spoilt, id)
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
		v.strays = append(v.strays, id)
	}
	slices.Sort(v.strays)
	v.lookAtLevels()
	return v, nil
}

// fileBytes returns how much of the disk a file takes, 0 if it was removed.
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

func (v *survey) lookAtLog(name string) error {
	path := filepath.Join(v.dir, name)
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	switch {
	case info.Size() == 0:
		v.empty = append(v.empty, path)
	case !plainLog(path):
		v.fault("%s: its head is damaged", name)
	case strings.HasSuffix(name, ".mem"):
		end, err := readLog(path, nil)
		if err != nil {
			return err
		}
		v.logs = append(v.logs, logFound{path, end})
	}
	return nil
}

// lookAtList reads the list of tables.
func (v *survey) lookAtList(found map[uint64]bool) error {
	f, err := os.Open(filepath.Join(v.dir, badger.ManifestFilename))
	if errors.Is(err, os.ErrNotExist) {
		entries := 0
		for _, l := range v.logs {
			entries += l.entries
		}
		if len(found) > 0 || entries > 0 || v.told.revision > 0 {
			v.fault("%s, the list of tables, is missing, while there are %d tables, %d entries in logs and a note of revision %d",
				badger.ManifestFilename, len(found), entries, v.told.revision)
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
	v.torn = end < info.Size()
	v.levels = make(map[uint64]int)
	for id, t := range list.Tables {
		v.tables = append(v.tables, id)
		v.levels[id] = int(t.Level)
	}
	slices.Sort(v.tables)
	return nil
}

// wayOut ends the errors about directories that are not opened.
const wayOut = "nothing in it was changed; inspect the directory and salvage what is left into a new one, or put back a copy"

// errTablesLost says that tables, or the list of them, are not what they were.
var errTablesLost = errors.New("the files are damaged")

// prove refuses a directory whose tables are not all there. Where a crash may
// have left traces, its records are compared with what the witness says.
func (v *survey) prove() error {
	if len(v.faults) > 0 {
		return fmt.Errorf("%w: %w; %s", errTablesLost, errors.Join(v.faults...), wayOut)
	}
	if !v.torn && len(v.strays) == 0 {
		return nil
	}
	c := &census{at: v.told.revision, floor: v.told.floor, newest: map[string]version{}, wanted: map[string]bool{}}
	for _, id := range v.strays {
		// A table that cannot be read was not finished when the process ended.
		_, _ = readTable(v.path(id), c.want)
	}
	for _, id := range v.tables {
		if _, err := readTable(v.path(id), c.count); err != nil {
			return fmt.Errorf("%w: table %s: %w; %s", errTablesLost, filepath.Base(v.path(id)), err, wayOut)
		}
	}
	for _, l := range v.logs {
		if _, err := readLog(l.path, c.count); err != nil {
			return err
		}
	}
	if n := c.missing(); n > 0 {
		return fmt.Errorf("%w: %s does not name %d tables in the directory, in which are %d entries that are nowhere else; %s",
			errTablesLost, badger.ManifestFilename, len(v.strays), n, wayOut)
	}
	if fault := v.told.compare(c.last, c.set()); fault != nil {
		return fmt.Errorf("%w: %s is not whole: %w; %s", errTablesLost, badger.ManifestFilename, fault, wayOut)
	}
	return nil
}

// repair removes the logs that a kill left before anything was in them, and
// makes tables readable that lost parts of large values.
func (v *survey) repair(log *slog.Logger, o badger.Options) error {
	for _, id := range v.spoilt {
		path := v.path(id)
		log.Error("a table of the storage has lost parts of large values; it is kept beside", "path", path, "kept", path+spoiltSuffix)
		if err := mendTable(path, o); err != nil {
			return fmt.Errorf("%w: %w; %s", errTablesLost, err, wayOut)
		}
	}
	for _, path := range v.empty {
		log.Warn("storage removes an empty log that its last process left", "path", path)
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	for _, l := range v.logs {
		if !l.clean {
			log.Warn("a log of the storage ends within an entry", "path", l.path, "entries", l.entries, "offset", l.offset, "after", l.more)
		}
	}
	return nil
}

// version is the newest version of a key that was seen.
type version struct {
	revision uint64
	deleted  bool
}

// census counts the records that entries make, in whatever order they come.
type census struct {
	at     storage.Revision // the set is of this revision
	floor  storage.Revision // of the history
	last   storage.Revision
	newest map[string]version // at or below at
	wanted map[string]bool    // entries of strays that were seen nowhere else
}

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

// want notes an entry of history, which nothing may have discarded.
func (c *census) want(e entry) error {
	if p := string(e.key[:min(1, len(e.key))]); (p == recordPrefix || p == piecePrefix) && !e.deleted && storage.Revision(e.version) > c.floor {
		c.wanted[string(binary.BigEndian.AppendUint64(e.key, e.version))] = true
	}
	return nil
}

// missing returns how many entries of the history are in strays alone.
func (c *census) missing() (n int) {
	for key := range c.wanted {
		if storage.Revision(binary.BigEndian.Uint64([]byte(key[len(key)-8:]))) > c.floor {
			n++
		}
	}
	return n
}

func (c *census) set() (s set) {
	for key, v := range c.newest {
		if !v.deleted {
			s.add(key[len(recordPrefix):], storage.Revision(v.revision))
		}
	}
	return s
}
