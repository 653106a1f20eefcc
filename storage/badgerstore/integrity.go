package badgerstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"orch.io/controlplane/storage"
)

// lostFile says in words what the store has lost. Check fails while it is there.
const lostFile = "LOST"

// reserveBlock is how many revisions are reserved at once. After an end that was
// not in order the rest of a block is never used.
const reserveBlock = 10_000

// Check implements storage.Checker. It fails while records are damaged, while
// the file LOST is there, which says what was lost when the store was
// opened and is to be removed when it was read, and while other users can look into
// the directory.
func (s *Store) Check(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return errors.Join(s.lost(), s.anyDamaged(), exposed(s.dir))
}

// Missing implements storage.Checker.
func (s *Store) Missing() (damaged, losses int) {
	if s.lost() != nil {
		losses = 1
	}
	s.state.RLock()
	defer s.state.RUnlock()
	return len(s.state.damaged), losses
}

func (s *Store) lost() error {
	path := filepath.Join(s.dir, lostFile)
	if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("commits are lost, as %s says; remove it to go on with what is left", path)
}

func (s *Store) anyDamaged() error {
	s.state.RLock()
	defer s.state.RUnlock()
	var first *storage.DamagedError
	for _, d := range s.state.damaged {
		if first == nil || d.Key < first.Key {
			first = d
		}
	}
	if first == nil {
		return nil
	}
	return fmt.Errorf("%d records cannot be read, the first is %w", len(s.state.damaged), first)
}

// damage notes a damaged record that is still the newest of its key, and
// returns the error that it is given.
func (s *Store) damage(err error) error {
	var d *storage.DamagedError
	if !errors.As(err, &d) {
		return err
	}
	s.state.Lock()
	_, known := s.state.damaged[d.Key]
	news := !known && s.state.index[d.Key] == d.Revision
	if news {
		s.state.damaged[d.Key] = d
	}
	s.state.Unlock()
	if news {
		s.logger.Error("a record cannot be read; delete it and write it anew", "dir", s.dir, "key", d.Key, "revision", int64(d.Revision), "err", d.Err)
	}
	return err
}

// testify tells the witness what is acknowledged from now on. Unless it is to be
// durable a failure only makes the witness know less.
func (s *Store) testify(durable bool) error {
	c := &s.committer
	t := testimony{revision: s.published(), floor: s.discarded(), reserved: c.witness.said.reserved, live: c.live}
	say := c.witness.say
	if durable {
		say = c.witness.swear
	}
	err := say(t)
	if err != nil {
		s.logger.Warn("storage could not note what it holds", "dir", s.dir, "err", err)
	}
	return err
}

// reserve makes sure that a revision was reserved on the disk before it is used.
func (s *Store) reserve(last storage.Revision) error {
	c := &s.committer
	if last <= c.witness.said.reserved {
		return nil
	}
	t := c.witness.said
	t.reserved = last + reserveBlock
	s.stats.fsyncs.Add(1)
	return c.witness.swear(t)
}

// rest notes an end in order: which revisions were used.
func (s *Store) rest() error {
	c := &s.committer
	if c.broken != nil {
		return c.witness.close()
	}
	t := testimony{revision: s.published(), floor: s.discarded(), live: c.live}
	t.reserved = max(t.revision, c.next-1)
	return c.witness.rest(t)
}

// settle holds what was loaded against the witness, and begins a new one. was is
// the set of records at the witness's revision, pieces the newest one of pieces.
func (s *Store) settle(told testimony, witnessed bool, was set, pieces storage.Revision) (err error) {
	c := &s.committer
	found := s.state.revision
	fault := told.compare(found, was)
	c.next = max(found, told.reserved) + 1
	switch used := max(found, pieces); {
	case fault != nil:
		if err := s.lose(fault, c.next-1); err != nil {
			return err
		}
	case !witnessed && used > 0:
		s.logger.Warn("storage has no note of what it must hold, so nobody knows whether commits are lost", "dir", s.dir, "revision", int64(found))
		c.next = used + reserveBlock + 1 // that many may have been used
	case told.reserved == told.revision:
		c.next = found + 1 // the end was in order
	}
	c.witness, err = openWitness(s.dir, testimony{revision: s.state.revision, floor: s.discarded(), reserved: c.next - 1, live: c.live})
	if err != nil || fault == nil {
		return err
	}
	return s.note([]byte(markKey), mark(s.discarded(), s.state.revision))
}

// compare says what is missing from a store that ends at a revision and had a
// set of records at the witness's. One of an older release knows no set.
func (t testimony) compare(found storage.Revision, was set) error {
	switch {
	case found < t.revision:
		return fmt.Errorf("it ends at revision %d, but %d was acknowledged; of %d records at that revision %d are there", found, t.revision, t.live.keys, was.keys)
	case t.live.keys >= 0 && t.live != was:
		return fmt.Errorf("of %d records at revision %d it has %d, or others", t.live.keys, t.revision, was.keys)
	}
	return nil
}

// lose says in the log and in a file that commits are lost. The history begins
// anew at a revision that none of them had, so that every watch starts over.
func (s *Store) lose(fault error, at storage.Revision) error {
	s.logger.Error("storage has lost commits", "dir", s.dir, "err", fault)
	path := filepath.Join(s.dir, lostFile)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, privateFile)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%s: the log of the store was damaged: %v. What is left is served from revision %d on. Remove this file when you have seen to it.\n",
		time.Now().UTC().Format(time.RFC3339), fault, at)
	if err = errors.Join(err, f.Sync(), f.Close(), syncDir(s.dir)); err != nil {
		return err
	}
	s.state.revision = at
	s.floor.Store(int64(at))
	s.index.blocked, s.index.tail = at, nil
	return nil
}

// loader follows the entries of the records, each key's newest first.
type loader struct {
	at    storage.Revision // of the witness
	floor storage.Revision
	was   set
	key   string
	begun bool
	below storage.Revision // the version of key that was visited last
	shown bool             // the witness's state of key was visited
}

// visit takes in one entry and says whether it is the newest of its key, and
// whether anybody can read it.
func (l *loader) visit(key string, revision storage.Revision, deleted bool) (newest, readable bool) {
	newest = !l.begun || key != l.key
	if newest {
		l.key, l.begun, l.shown = key, true, false
	} else if l.below <= l.floor {
		return false, false
	}
	l.below = revision
	if revision <= l.at && !l.shown {
		l.shown = true
		if !deleted {
			l.was.add(key, revision)
		}
	}
	return newest, true
}

// sortReplaced orders what load found.
func (p *pieces) sortReplaced() {
	slices.SortFunc(p.replaced, func(a, b large) int { return int(a.by - b.by) })
}
