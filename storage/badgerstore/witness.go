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

// Files that say beside the database what the database must hold. A database
// that lost a part of its log, or its list of tables, does not notice.
const (
	// witnessFile is written where it matters that it is on the disk.
	witnessFile = "REVISION"
	// runningFile is written after each batch without a wait for the disk, which
	// keeps it if the process is killed. It is removed when the store is closed.
	// By its name it comes first in a copy of an open store, so that it does not
	// know more than the copy has.
	runningFile = ".acknowledged"
)

// testimony is what a witness says.
type testimony struct {
	revision storage.Revision // acknowledged, and everything before it
	floor    storage.Revision // start of the history
	reserved storage.Revision // no larger revision was ever given to a commit
	live     set              // of the records at revision
}

// set is a set of records, by number and a sum that does not depend on their order.
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

func (s *set) apply(e storage.Event) {
	if e.Prev.Revision != 0 {
		s.remove(e.Key, e.Prev.Revision)
	}
	if !e.Deleted() {
		s.add(e.Key, e.Revision)
	}
}

func mix(key string, revision storage.Revision) uint64 {
	return xxhash.Sum64String(key + string(binary.BigEndian.AppendUint64(nil, uint64(revision))))
}

// A file holds two lines of text of the same length, written in turn, so that one
// of them is whole at any moment.
const lineBytes = 128

// witness is the open files. It belongs to the committing goroutine.
type witness struct {
	dir              string
	durable, running lines
	said             testimony
}

// lines is one file.
type lines struct {
	*os.File
	turn int64 // of the line that is written next
}

// write replaces the older line. One that may not be whole is replaced again.
func (l *lines) write(t testimony, durable bool) error {
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

func (t testimony) line() []byte {
	text := fmt.Sprintf("revision=%d floor=%d reserved=%d keys=%d sum=%016x", t.revision, t.floor, t.reserved, t.live.keys, t.live.sum)
	return fmt.Appendf(nil, "%-*s%08x\n", lineBytes-9, text, crc32.Checksum([]byte(text), castagnoli))
}

func parseTestimony(line string) (t testimony, ok bool) {
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

func (t testimony) after(o testimony) bool {
	return cmp.Or(cmp.Compare(t.revision, o.revision), cmp.Compare(t.floor, o.floor), cmp.Compare(t.reserved, o.reserved)) > 0
}

// errNoWitness says that there is no file, or none that can be read.
var errNoWitness = errors.New("there is no readable note of what the store must hold")

// readWitness returns what the witness in a directory says. One of an older
// release knows the revision alone; then live.keys is -1.
func readWitness(dir string) (testimony, error) {
	var newest testimony
	found := false
	for _, name := range []string{witnessFile, runningFile} {
		data, err := readBounded(filepath.Join(dir, name), 4*lineBytes)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return testimony{}, err
		}
		for at := 0; at+lineBytes <= len(data) && at < 2*lineBytes; at += lineBytes {
			if t, ok := parseTestimony(string(data[at : at+lineBytes])); ok && (!found || t.after(newest)) {
				newest, found = t, true
			}
		}
		if revision, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64); err == nil && revision >= 0 && !found {
			r := storage.Revision(revision)
			return testimony{revision: r, reserved: r, live: set{keys: -1}}, nil
		}
	}
	if !found {
		return testimony{}, errNoWitness
	}
	return newest, nil
}

// readBounded reads a file of at most limit bytes.
func readBounded(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > limit {
		return nil, nil // none of ours
	}
	return os.ReadFile(path)
}

// openWitness makes the files anew and keeps them open.
func openWitness(dir string, t testimony) (_ *witness, err error) {
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
	if err = w.swear(t); err != nil {
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

// say writes a line.
func (w *witness) say(t testimony) error {
	w.said = t
	return w.running.write(t, false)
}

// swear writes a line and waits until it is on the disk.
func (w *witness) swear(t testimony) error {
	if err := w.durable.write(t, true); err != nil {
		return err
	}
	w.said = t
	return nil
}

// rest is the last word of a store that ends in order.
func (w *witness) rest(t testimony) error {
	if err := errors.Join(w.swear(t), w.swear(t)); err != nil {
		return errors.Join(err, w.close())
	}
	return errors.Join(w.close(), os.Remove(filepath.Join(w.dir, runningFile)), syncDir(w.dir))
}

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

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
