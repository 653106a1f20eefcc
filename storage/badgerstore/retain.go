package badgerstore

import (
	"encoding/binary"
	"math"
	"sync"
	"time"

	"github.com/dgraph-io/badger/v4"

	"orch.io/controlplane/storage"
)

// agesKey is the key of the commit times of the history. They are persisted so that the time while the store
// is closed counts for the retention.
const agesKey = "ages"

// ages is the storage.Retention of the store, with a lock.
type ages struct {
	sync.Mutex
	storage.Retention
	saved storage.Revision // newest revision with a commit time on the disk; used by the committer only
}

func (a *ages) committed(now time.Time, rev storage.Revision) {
	a.Lock()
	defer a.Unlock()
	a.Committed(now, rev)
}

func (a *ages) oldest(now time.Time) storage.Revision {
	a.Lock()
	defer a.Unlock()
	return a.Oldest(now)
}

// encode returns the value of agesKey: begin, end and last revision of each span, big-endian. upTo is the
// last revision of the last span.
func (a *ages) encode() (data []byte, upTo storage.Revision) {
	a.Lock()
	defer a.Unlock()
	for _, s := range a.Spans() {
		data = binary.BigEndian.AppendUint64(data, uint64(s.Begin.UnixNano()))
		data = binary.BigEndian.AppendUint64(data, uint64(s.End.UnixNano()))
		data = binary.BigEndian.AppendUint64(data, uint64(s.Last))
		upTo = s.Last
	}
	return data, upTo
}

const spanBytes = 24

// decodeSpans decodes the value of agesKey.
func decodeSpans(data []byte) (spans []storage.Span) {
	for ; len(data) >= spanBytes; data = data[spanBytes:] {
		begin, end, last := binary.BigEndian.Uint64(data), binary.BigEndian.Uint64(data[8:]), binary.BigEndian.Uint64(data[16:])
		if last > math.MaxInt64 {
			return nil
		}
		spans = append(spans, storage.Span{Begin: time.Unix(0, int64(begin)), End: time.Unix(0, int64(end)), Last: storage.Revision(last)})
	}
	return spans
}

// loadAges restores the commit times. If they cannot be read, the history counts as committed now.
func (s *Store) loadAges(txn *badger.Txn) {
	var spans []storage.Span
	if item, err := txn.Get([]byte(agesKey)); err == nil {
		_ = item.Value(func(data []byte) error {
			spans = decodeSpans(data)
			return nil
		})
		s.committer.marked = max(s.committer.marked, item.Version())
	}
	s.ages.Keep = s.retain
	s.ages.Restore(spans, time.Now(), s.state.revision)
	if n := len(spans); n > 0 {
		s.ages.saved = spans[n-1].Last
	}
}

// saveAges writes the commit times to the disk if there are new times. Only the committer calls it.
func (s *Store) saveAges() error {
	if s.retain < 0 || s.published() == s.ages.saved || s.committer.broken != nil {
		return nil
	}
	data, upTo := s.ages.encode()
	if err := s.writeMeta([]byte(agesKey), data); err != nil {
		return err
	}
	s.ages.saved = upTo
	return nil
}
