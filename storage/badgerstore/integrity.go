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

// lostFile is a text file that describes lost commits. Check fails while it exists.
const lostFile = "LOST"

// revisionBlock is the number of revisions that are reserved at once. If the process ends without closing the
// store, the unused revisions of a block are skipped.
const revisionBlock = 10_000

// Check implements storage.Checker. It fails in these cases:
//
//   - The file LOST exists. Open creates it if commits are lost; an operator removes it.
//   - Records are damaged.
//   - Other users have access to the directory.
func (s *Store) Check(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return errors.Join(s.lossError(), s.damageError(), checkPrivate(s.dir))
}

// Missing implements storage.Checker.
func (s *Store) Missing() (damaged, losses int) {
	if s.lossError() != nil {
		losses = 1
	}
	s.state.RLock()
	defer s.state.RUnlock()
	return len(s.state.damaged), losses
}

// lossError returns an error if the file LOST exists.
func (s *Store) lossError() error {
	path := filepath.Join(s.dir, lostFile)
	if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("commits are lost: read %s, and remove it to accept the loss", path)
}

// damageError returns an error if there are damaged records.
func (s *Store) damageError() error {
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
	return fmt.Errorf("%d records cannot be read; the first: %w", len(s.state.damaged), first)
}

// noteDamage returns err. If err is a *storage.DamagedError for the current record of a key, noteDamage adds it to the
// damaged records and logs it once.
func (s *Store) noteDamage(err error) error {
	var d *storage.DamagedError
	if !errors.As(err, &d) {
		return err
	}
	s.state.Lock()
	_, known := s.state.damaged[d.Key]
	isNew := !known && s.state.index[d.Key] == d.Revision
	if isNew {
		s.state.damaged[d.Key] = d
	}
	s.state.Unlock()
	if isNew {
		s.logger.Error("a record cannot be read; delete it and create it again", "dir", s.dir, "key", d.Key, "revision", int64(d.Revision), "err", d.Err)
	}
	return err
}

// updateWitness writes the published revision and the set of records to the witness. If durable is set, it waits for
// the disk. Otherwise its error can be ignored: an older record in the witness is still correct.
func (s *Store) updateWitness(durable bool) error {
	c := &s.committer
	t := witnessRecord{revision: s.published(), floor: s.floorRevision(), reserved: c.witness.last.reserved, live: c.live}
	write := c.witness.writeRunning
	if durable {
		write = c.witness.writeDurable
	}
	err := write(t)
	if err != nil {
		s.logger.Warn("storage failed to update its witness", "dir", s.dir, "err", err)
	}
	return err
}

// reserveRevisions makes sure that the revisions up to last are recorded as reserved on the disk. It must be called
// before they are used, so that they are not reused after a crash.
func (s *Store) reserveRevisions(last storage.Revision) error {
	c := &s.committer
	if last <= c.witness.last.reserved {
		return nil
	}
	t := c.witness.last
	t.reserved = last + revisionBlock
	s.stats.fsyncs.Add(1)
	return c.witness.writeDurable(t)
}

// finishWitness closes the witness. Unless the store is stopped, it first records exactly which revisions were used,
// so that Open skips none.
func (s *Store) finishWitness() error {
	c := &s.committer
	if c.broken != nil {
		return c.witness.close()
	}
	t := witnessRecord{revision: s.published(), floor: s.floorRevision(), live: c.live}
	t.reserved = max(t.revision, c.next-1)
	return c.witness.writeFinal(t)
}

// reconcile compares the loaded records with the witness and opens a new witness. If commits are lost, it records the
// loss. want is the record of the old witness, and witnessed reports whether it exists. atWitness is the
// set of loaded records at the revision of the witness. pieces is the newest revision that has pieces.
func (s *Store) reconcile(want witnessRecord, witnessed bool, atWitness set, pieces storage.Revision) (err error) {
	c := &s.committer
	found := s.state.revision
	fault := want.compare(found, atWitness)
	c.next = max(found, want.reserved) + 1
	switch used := max(found, pieces); {
	case fault != nil:
		if err := s.recordLoss(fault, c.next-1); err != nil {
			return err
		}
	case !witnessed && used > 0:
		s.logger.Warn("storage has no witness; lost commits cannot be detected", "dir", s.dir, "revision", int64(found))
		c.next = used + revisionBlock + 1 // the last process may have used this many
	case want.reserved == want.revision:
		c.next = found + 1 // the last process closed the store, so no later revision was used
	}
	c.witness, err = openWitness(s.dir, witnessRecord{revision: s.state.revision, floor: s.floorRevision(), reserved: c.next - 1, live: c.live})
	if err != nil || fault == nil {
		return err
	}
	return s.writeMeta([]byte(markKey), mark(s.floorRevision(), s.state.revision))
}

// compare returns an error if commits are lost. found is the newest revision of the store, and atWitness is the set
// of its records at t.revision. A witness of an older release has no set, so only the revision is compared.
func (t witnessRecord) compare(found storage.Revision, atWitness set) error {
	switch {
	case found < t.revision:
		return fmt.Errorf("the newest revision is %d, but revision %d was acknowledged; %[4]d of %[3]d records at that revision exist", found, t.revision, t.live.keys, atWitness.keys)
	case t.live.keys >= 0 && t.live != atWitness:
		return fmt.Errorf("the records at revision %d differ: %d exist, %d were acknowledged", t.revision, atWitness.keys, t.live.keys)
	}
	return nil
}

// recordLoss logs the loss of commits and describes it in the file LOST. The history begins at a revision that no
// commit has used, so every watch gets ErrCompacted and starts over.
func (s *Store) recordLoss(fault error, at storage.Revision) error {
	s.logger.Error("storage has lost commits", "dir", s.dir, "err", fault)
	path := filepath.Join(s.dir, lostFile)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, privateFile)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%s: the log of the store was damaged, and commits are lost: %v. The store serves the remaining records from revision %d on. Remove this file to accept the loss.\n",
		time.Now().UTC().Format(time.RFC3339), fault, at)
	if err = errors.Join(err, f.Sync(), f.Close(), syncDir(s.dir)); err != nil {
		return err
	}
	s.state.revision = at
	s.floor.Store(int64(at))
	s.index.blocked, s.index.tail = at, nil
	return nil
}

// loader visits all versions of all records, sorted by key and from the newest version to the oldest, and collects the
// set of records at a revision.
type loader struct {
	at        storage.Revision // revision of the witness
	floor     storage.Revision // start of the history
	atWitness set              // records at revision at
	key       string           // current key
	begun     bool             // key is set
	below     storage.Revision // the version of key that was visited last
	counted   bool             // the version of key at revision at was visited
}

// visit processes the next version. newest reports whether it is the newest version of its key, and readable whether
// a read at a retained revision can return it.
func (l *loader) visit(key string, revision storage.Revision, deleted bool) (newest, readable bool) {
	newest = !l.begun || key != l.key
	if newest {
		l.key, l.begun, l.counted = key, true, false
	} else if l.below <= l.floor {
		return false, false
	}
	l.below = revision
	if revision <= l.at && !l.counted {
		l.counted = true
		if !deleted {
			l.atWitness.add(key, revision)
		}
	}
	return newest, true
}

// sortReplaced sorts the replaced values by the revision that replaced them, the order that dropPieces needs.
func (p *pieces) sortReplaced() {
	slices.SortFunc(p.replaced, func(a, b large) int { return int(a.by - b.by) })
}
