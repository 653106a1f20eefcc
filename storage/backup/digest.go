package backup

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"orch.io/controlplane/storage"
)

// sum adds up hashes, so that it does not depend on the order of what is summed, and
// what is in it can be taken out.
type sum [2]uint64

func (s *sum) add(hash [sha256.Size]byte)    { s.change(hash, 1) }
func (s *sum) remove(hash [sha256.Size]byte) { s.change(hash, ^uint64(0)) }

func (s *sum) change(hash [sha256.Size]byte, times uint64) {
	for i := range s {
		s[i] += times * binary.BigEndian.Uint64(hash[8*i:])
	}
}

// MarshalText is how files have it.
func (s sum) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText takes what MarshalText made.
func (s *sum) UnmarshalText(text []byte) error {
	if n, err := fmt.Sscanf(string(text), "%16x%16x", &s[0], &s[1]); err != nil || n != 2 || s.String() != string(text) {
		return fmt.Errorf("%q is no sum", text)
	}
	return nil
}

func (s sum) String() string { return fmt.Sprintf("%016x%016x", s[0], s[1]) }

// digest tells one set of records from another one.
type digest struct {
	keys     int64
	contents sum // of keys and values
	records  sum // of keys, values and revisions
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

// compare says what is wrong with what was found.
func (d digest) compare(want digest) error {
	if d == want {
		return nil
	}
	return fmt.Errorf("there are %d keys with the hashes %v and %v, expected %d with %v and %v",
		d.keys, d.contents, d.records, want.keys, want.contents, want.records)
}

func hashes(rec storage.Record) (contents, record [sha256.Size]byte) {
	h := sha256.New()
	h.Write(binary.AppendUvarint(nil, uint64(len(rec.Key))))
	h.Write([]byte(rec.Key))
	h.Write(rec.Value)
	h.Sum(contents[:0])
	return contents, sha256.Sum256(binary.BigEndian.AppendUint64(contents[:], uint64(rec.Revision)))
}
