package badgerstore

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"

	"orch.io/controlplane/storage"
)

// The witness is a pair of files, separate from the database, that record what the database must contain. Badger
// itself does not detect that it has lost a part of its log or its list of tables.
const (
	// witnessFile is written with fsync when its content must survive a power failure.
	witnessFile = "REVISION"
	// runningFile is written after each batch without fsync, so it survives a kill of the process but
	// perhaps not a power failure. It is removed when the store is closed. Its name sorts first, so a
	// program that copies the files of an open store copies it before the logs, and it does not record
	// commits that the copy lacks.
	runningFile = ".acknowledged"
)

// witnessRecord is the content of the witness.
type witnessRecord struct {
	revision storage.Revision // all commits up to this revision were acknowledged
	floor    storage.Revision // start of the history
	reserved storage.Revision // upper bound of the revisions that were ever used
	live     set              // records at revision
}

// set represents a set of records by its size and a checksum that does not depend on their order.
type set struct {
	keys int64
	sum  uint64
}

func (s *set) add(key string, revision storage.Revision) {
	s.keys++
	s.sum += mix(key, revision)
}

func (s *set) remove(key string, revision storage.Revision) {
	s.keys--
	s.sum -= mix(key, revision)
}

// apply updates the set for an event.
func (s *set) apply(e storage.Event) {
	if e.Prev.Revision != 0 {
		s.remove(e.Key, e.Prev.Revision)
	}
	if !e.Deleted() {
		s.add(e.Key, e.Revision)
	}
}

// mix returns the hash of a record.
func mix(key string, revision storage.Revision) uint64 {
	return xxhash.Sum64String(key + string(binary.BigEndian.AppendUint64(nil, uint64(revision))))
}

// lineBytes is the length of a line. A file of the witness has two lines, which are written alternately, so one of
// them is intact at any time.
const lineBytes = 128

// witness is an open witness. The committer owns it.
type witness struct {
	dir              string
	durable, running lines         // witnessFile and runningFile
	last             witnessRecord // the record that was written last
}

// lines is a file of the witness.
type lines struct {
	*os.File
	turn int64 // index of the line that is written next, 0 or 1
}

// write writes t over the older line. If it fails, the next call writes the same line again.
func (l *lines) write(t witnessRecord, durable bool) error {
	if _, err := l.WriteAt(t.line(), l.turn*lineBytes); err != nil {
		return err
	}
	if durable {
		if err := l.Sync(); err != nil {
			return err
		}
	}
	l.turn = 1 - l.turn
	return nil
}

// line returns t as a line with a checksum.
func (t witnessRecord) line() []byte {
	text := fmt.Sprintf("revision=%d floor=%d reserved=%d keys=%d sum=%016x", t.revision, t.floor, t.reserved, t.live.keys, t.live.sum)
	return fmt.Appendf(nil, "%-*s%08x\n", lineBytes-9, text, crc32.Checksum([]byte(text), castagnoli))
}

// parseRecord parses a line. It returns false if the line is damaged.
func parseRecord(line string) (t witnessRecord, ok bool) {
	if len(line) != lineBytes {
		return t, false
	}
	text, sum := strings.TrimRight(line[:lineBytes-9], " "), line[lineBytes-9:lineBytes-1]
	want, err := strconv.ParseUint(sum, 16, 32)
	if err != nil || uint32(want) != crc32.Checksum([]byte(text), castagnoli) {
		return t, false
	}
	n, err := fmt.Sscanf(text, "revision=%d floor=%d reserved=%d keys=%d sum=%x", &t.revision, &t.floor, &t.reserved, &t.live.keys, &t.live.sum)
	return t, err == nil && n == 5 && t.floor >= 0 && t.floor <= t.revision && t.revision <= t.reserved && t.live.keys >= 0
}

// newerThan reports whether t was written after o.
func (t witnessRecord) newerThan(o witnessRecord) bool {
	return cmp.Or(cmp.Compare(t.revision, o.revision), cmp.Compare(t.floor, o.floor), cmp.Compare(t.reserved, o.reserved)) > 0
}

// errNoWitness is returned if there is no readable witness.
var errNoWitness = errors.New("there is no readable witness, so lost commits cannot be detected")

// readWitness returns the newest record of the witness in dir. The witness of an older release has only the revision;
// then live.keys is -1.
func readWitness(dir string) (witnessRecord, error) {
	var newest witnessRecord
	found := false
	for _, name := range []string{witnessFile, runningFile} {
		data, err := readBounded(filepath.Join(dir, name), 4*lineBytes)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return witnessRecord{}, err
		}
		for at := 0; at+lineBytes <= len(data) && at < 2*lineBytes; at += lineBytes {
			if t, ok := parseRecord(string(data[at : at+lineBytes])); ok && (!found || t.newerThan(newest)) {
				newest, found = t, true
			}
		}
		if revision, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64); err == nil && revision >= 0 && !found {
			r := storage.Revision(revision)
			return witnessRecord{revision: r, reserved: r, live: set{keys: -1}}, nil
		}
	}
	if !found {
		return witnessRecord{}, errNoWitness
	}
	return newest, nil
}

// readBounded returns the content of a file, or nil if it has more than limit bytes.
func readBounded(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > limit {
		return nil, nil // not a file of the store
	}
	return os.ReadFile(path)
}

// openWitness creates new witness files with the record t. The new witnessFile replaces the old files atomically.
func openWitness(dir string, t witnessRecord) (_ *witness, err error) {
	w := &witness{dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	path := filepath.Join(dir, witnessFile)
	if w.durable.File, err = os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_RDWR, privateFile); err != nil {
		return nil, err
	}
	if err = w.writeDurable(t); err != nil {
		return nil, err
	}
	if err = os.Rename(path+".new", path); err != nil {
		return nil, err
	}
	w.running.File, err = os.OpenFile(filepath.Join(dir, runningFile), os.O_CREATE|os.O_TRUNC|os.O_RDWR, privateFile)
	if err != nil {
		return nil, err
	}
	return w, syncDir(dir)
}

// writeRunning writes t to runningFile, without fsync.
func (w *witness) writeRunning(t witnessRecord) error {
	w.last = t
	return w.running.write(t, false)
}

// writeDurable writes t to witnessFile, with fsync.
func (w *witness) writeDurable(t witnessRecord) error {
	if err := w.durable.write(t, true); err != nil {
		return err
	}
	w.last = t
	return nil
}

// writeFinal writes t to both lines of witnessFile, closes the witness and removes runningFile.
func (w *witness) writeFinal(t witnessRecord) error {
	if err := errors.Join(w.writeDurable(t), w.writeDurable(t)); err != nil {
		return errors.Join(err, w.close())
	}
	return errors.Join(w.close(), os.Remove(filepath.Join(w.dir, runningFile)), syncDir(w.dir))
}

// close closes the files. w may be nil.
func (w *witness) close() (err error) {
	if w == nil {
		return nil
	}
	for _, f := range []*os.File{w.durable.File, w.running.File} {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	return err
}

// syncDir waits until created, renamed and removed files of dir are on the disk.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
