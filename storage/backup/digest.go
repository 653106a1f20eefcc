package backup

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"orch.io/controlplane/storage"
)

// sum is a sum of hashes. It does not depend on the order in which they are added, and a hash can be removed again.
type sum [2]uint64

func (s *sum) add(hash [sha256.Size]byte)    { s.change(hash, 1) }
func (s *sum) remove(hash [sha256.Size]byte) { s.change(hash, ^uint64(0)) }

func (s *sum) change(hash [sha256.Size]byte, times uint64) {
	for i := range s {
		s[i] += times * binary.BigEndian.Uint64(hash[8*i:])
	}
}

// MarshalText implements encoding.TextMarshaler, for the trailer.
func (s sum) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *sum) UnmarshalText(text []byte) error {
	if n, err := fmt.Sscanf(string(text), "%16x%16x", &s[0], &s[1]); err != nil || n != 2 || s.String() != string(text) {
		return fmt.Errorf("invalid sum %q", text)
	}
	return nil
}

func (s sum) String() string { return fmt.Sprintf("%016x%016x", s[0], s[1]) }

// digest identifies a set of records.
type digest struct {
	keys     int64
	contents sum // sum of the hashes of keys and values
	records  sum // sum of the hashes of keys, values and revisions
}

func (d *digest) add(rec storage.Record) {
	contents, record := hashes(rec)
	d.keys++
	d.contents.add(contents)
	d.records.add(record)
}

func (d *digest) remove(rec storage.Record) {
	contents, record := hashes(rec)
	d.keys--
	d.contents.remove(contents)
	d.records.remove(record)
}

// compare returns an error unless d equals want.
func (d digest) compare(want digest) error {
	if d == want {
		return nil
	}
	return fmt.Errorf("there are %d keys with the hashes %v and %v instead of %d with %v and %v",
		d.keys, d.contents, d.records, want.keys, want.contents, want.records)
}

// hashes returns the hash of key and value, and the hash of key, value and revision.
func hashes(rec storage.Record) (contents, record [sha256.Size]byte) {
	h := sha256.New()
	h.Write(binary.AppendUvarint(nil, uint64(len(rec.Key))))
	h.Write([]byte(rec.Key))
	h.Write(rec.Value)
	h.Sum(contents[:0])
	return contents, sha256.Sum256(binary.BigEndian.AppendUint64(contents[:], uint64(rec.Revision)))
}
