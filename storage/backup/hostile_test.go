package backup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

// seal adds correct checksums and the correct hash to forged content.
func seal(head string, content [][]byte, tail func(id string) string) []byte {
	var file bytes.Buffer
	w := &writer{to: &file, hash: sha256.New()}
	_ = w.write([]byte(magic))
	_ = w.block(blockHeader, []byte(head))
	for _, c := range content {
		_ = w.block(blockEntries, c)
	}
	_ = w.block(blockTrailer, []byte(tail(hex.EncodeToString(w.hash.Sum(nil)))))
	return file.Bytes()
}

// pack returns the content of a block.
func pack(entries ...entry) []byte {
	w := &writer{hash: sha256.New()}
	for _, e := range entries {
		_ = w.entry(e)
	}
	return w.buf
}

func record(key, value string, at storage.Revision) entry {
	return entry{Record: storage.Record{Key: key, Value: []byte(value), Revision: at}}
}

func deletion(key string, at storage.Revision) entry {
	return entry{Record: storage.Record{Key: key, Revision: at}}
}

func named(key string, at storage.Revision) entry {
	return entry{Record: storage.Record{Key: key, Revision: at}, earlier: true}
}

// forged describes a file with arbitrary parts.
type forged struct {
	header  header
	entries []entry
	trailer trailer
}

// honest returns the file of the state that the entries result in.
func honest(h header, entries ...entry) forged {
	h.Format = formatVersion
	f := forged{header: h, entries: entries}
	state := map[string]storage.Record{}
	f.trailer.Revision = h.Oldest
	for _, e := range entries {
		f.trailer.Revision = max(f.trailer.Revision, e.Revision)
		if state[e.Key] = e.Record; e.Value == nil && !e.earlier {
			delete(state, e.Key)
		}
	}
	var now digest
	for _, rec := range state {
		now.add(rec)
	}
	f.trailer.Entries, f.trailer.Keys = int64(len(entries)), now.keys
	f.trailer.Contents, f.trailer.Records = now.contents, now.records
	return f
}

func (f forged) file(t *testing.T) []byte {
	t.Helper()
	head, err := json.Marshal(f.header)
	require.NoError(t, err)
	var content [][]byte
	if len(f.entries) > 0 {
		content = append(content, pack(f.entries...))
	}
	return seal(string(head), content, func(id string) string {
		f.trailer.ID = id
		tail, err := json.Marshal(f.trailer)
		require.NoError(t, err)
		return string(tail)
	})
}

// restored restores into an empty store. If that fails, the store must still be empty.
func restored(t *testing.T, files ...[]byte) (*memstore.Store, error) {
	t.Helper()
	to := memstore.New(memstore.Options{Retain: -1, MaxEvents: -1, MaxBytes: -1})
	t.Cleanup(func() { require.NoError(t, to.Close()) })
	var readers []io.Reader
	for _, file := range files {
		readers = append(readers, bytes.NewReader(file))
	}
	_, err := Restore(context.Background(), to, Options{}, readers...)
	if err != nil {
		newest, fault := to.Revision(context.Background())
		require.NoError(t, fault)
		require.Zero(t, newest, "after %v", err)
		stamps, fault := to.Stamps(context.Background())
		require.NoError(t, fault)
		require.Empty(t, stamps, "after %v", err)
	}
	return to, err
}

// TestForgedFiles checks that a file with correct checksums but inconsistent content is rejected before any of it
// becomes visible.
func TestForgedFiles(t *testing.T) {
	whole := honest(header{Oldest: 3, Stamps: map[string]string{"names": "x"}}, record("a", "1", 2), record("b", "1", 3), record("a", "2", 5), deletion("b", 6))
	to, err := restored(t, whole.file(t))
	require.NoError(t, err)
	rec, err := to.Get(t.Context(), "a", 0)
	require.NoError(t, err)
	require.EqualValues(t, 5, rec.Revision)
	stamps, err := to.Stamps(t.Context())
	require.NoError(t, err)
	require.Equal(t, whole.header.Stamps, stamps)

	for what, change := range map[string]func(*forged){
		"a state that is another one":        func(f *forged) { f.trailer.Contents[0]++ },
		"revisions that are others":          func(f *forged) { f.trailer.Records[1]++ },
		"another number of keys":             func(f *forged) { f.trailer.Keys++ },
		"a negative number of keys":          func(f *forged) { f.trailer.Keys = -1 },
		"another number of entries":          func(f *forged) { f.trailer.Entries = math.MaxInt64 },
		"an end after the last entry":        func(f *forged) { f.trailer.Revision++ },
		"an end before the last entry":       func(f *forged) { f.trailer.Revision-- },
		"an end that is out of range":        func(f *forged) { f.trailer.Revision = math.MaxInt64 },
		"a negative end":                     func(f *forged) { f.trailer.Revision = -1 },
		"an end before its start":            func(f *forged) { f.header.Oldest = 7 },
		"a start that is out of range":       func(f *forged) { f.header.Oldest = math.MaxInt64 },
		"a negative start":                   func(f *forged) { f.header.Oldest = -1 },
		"a version twice, each another one":  func(f *forged) { f.entries[2] = record("b", "3", 6) },
		"a deletion that is also a version":  func(f *forged) { f.entries[3] = deletion("a", 5) },
		"an entry of revision 0":             func(f *forged) { f.entries[0].Revision = 0 },
		"an entry that is out of range":      func(f *forged) { f.entries[3].Revision = math.MaxInt64 },
		"an entry of a file that it has not": func(f *forged) { f.entries[0] = named("a", 2) },
		"a later format":                     func(f *forged) { f.header.Format = formatVersion + 1 },
	} {
		f := whole
		f.entries = append([]entry(nil), whole.entries...)
		change(&f)
		_, err := restored(t, f.file(t))
		require.ErrorIs(t, err, ErrDamaged, what)
		_, err = Verify(t.Context(), Options{}, bytes.NewReader(f.file(t)))
		require.ErrorIs(t, err, ErrDamaged, what)
	}
}

// TestForgedBlocks checks that forged lengths and numbers do not lead to large allocations.
func TestForgedBlocks(t *testing.T) {
	head, tail := `{"format":1,"oldest":0,"since":{"revision":0,"id":""}}`, func(string) string { return "{}" }
	long := binary.AppendUvarint(nil, 1<<62)
	for what, content := range map[string][]byte{
		"an empty block":             {},
		"a kind that is unknown":     {9, 1, 1, 'a'},
		"nothing but a kind":         {entryValue},
		"a revision that overflows":  append([]byte{entryValue}, bytes.Repeat([]byte{0xff}, 11)...),
		"a key that is too long":     append([]byte{entryDeletion, 1}, long...),
		"a key that is cut":          {entryDeletion, 1, 5, 'a'},
		"a value that is too long":   append([]byte{entryValue, 1, 1, 'a'}, long...),
		"a value that is cut":        {entryValue, 1, 1, 'a', 5, 'b'},
		"a value without its length": {entryValue, 1, 1, 'a'},
	} {
		_, err := restored(t, seal(head, [][]byte{content}, tail))
		require.ErrorIs(t, err, ErrDamaged, what)
	}
	for _, head := range []string{"", "null", "[]", "{}", head + "{}", strings.Replace(head, "{", `{"more":1,`, 1), strings.Repeat("[", 500_000),
		`{"format":1,"oldest":1e30}`, `{"format":1,"since":{"revision":5,"id":""}}`, `{"format":1,"since":{"revision":5,"id":"\u001b[2J"}}`, strings.Repeat(" ", maxText+1)} {
		_, err := restored(t, seal(head, nil, tail))
		require.ErrorIs(t, err, ErrDamaged, "%.60s", head)
	}
	for _, size := range []uint32{maxBlock, maxBlock + 1, 1 << 31, math.MaxUint32} {
		file := append([]byte(magic), blockHeader)
		file = append(binary.BigEndian.AppendUint32(file, size), "more than that"...)
		_, err := restored(t, file)
		require.ErrorIs(t, err, ErrDamaged, "%d", size)
	}
}

// TestForgedChains checks that the records that an incremental file refers to must exist unchanged in an earlier file.
func TestForgedChains(t *testing.T) {
	first := honest(header{Oldest: 2}, record("a", "1", 1), record("b", "1", 2)).file(t)
	at, err := Verify(t.Context(), Options{}, bytes.NewReader(first))
	require.NoError(t, err)
	on := header{Oldest: 2, Since: at.Position}
	second := honest(on, record("a", "1", 1), record("b", "1", 2), record("c", "1", 3))
	second.entries = []entry{named("a", 1), named("b", 2), record("c", "1", 3)}
	_, err = restored(t, first, second.file(t))
	require.NoError(t, err)
	report, err := Verify(t.Context(), Options{}, bytes.NewReader(first), bytes.NewReader(second.file(t)))
	require.NoError(t, err)
	require.EqualValues(t, 3, report.Keys)
	_, err = Verify(t.Context(), Options{}, bytes.NewReader(second.file(t)))
	require.NoError(t, err, "by itself")

	for what, entries := range map[string][]entry{
		"a version that is not there": {named("a", 2), named("b", 2), record("c", "1", 3)},
		"a key that is not there":     {named("x", 1), named("b", 2), record("c", "1", 3)},
		"a version of later":          {named("a", 1), named("b", 2), named("c", 3)},
		"another state":               {named("a", 1), named("b", 2), record("c", "2", 3)},
	} {
		f := second
		f.entries = entries
		_, err := restored(t, first, f.file(t))
		require.ErrorIs(t, err, ErrDamaged, what)
	}
	for _, since := range []Position{{Revision: 4, ID: at.Position.ID}, {Revision: 2, ID: strings.Repeat("0", 64)}} {
		f := honest(header{Oldest: 5, Since: since}, named("a", 1), record("c", "1", 5))
		_, err := restored(t, first, f.file(t))
		require.ErrorIs(t, err, ErrWrongBase)
	}
}

// TestFileCannotRemoveIncompleteMark checks that a file cannot remove the mark of an incomplete store.
func TestFileCannotRemoveIncompleteMark(t *testing.T) {
	entries := []entry{record(storage.IncompleteKey, "1", 1)}
	for i := range 2 * storage.CommitLength {
		entries = append(entries, record(fmt.Sprint("k", i), "1", storage.Revision(i+2)))
	}
	f := honest(header{Oldest: 1}, append(entries, deletion(storage.IncompleteKey, 1_000))...)
	to := memstore.New(memstore.Options{})
	defer to.Close()
	_, err := Restore(t.Context(), struct{ storage.Backend }{to}, Options{}, bytes.NewReader(f.file(t)))
	require.NoError(t, err)
	_, err = to.Get(t.Context(), "k1", 0)
	require.NoError(t, err)

	f = honest(header{Oldest: 1}, entries...) // the record exists at the end
	to = memstore.New(memstore.Options{})
	defer to.Close()
	_, err = Restore(t.Context(), struct{ storage.Backend }{to}, Options{}, bytes.NewReader(f.file(t)))
	require.ErrorContains(t, err, "the destination differs from the source")
	_, err = to.Get(t.Context(), storage.IncompleteKey, 0)
	require.NoError(t, err)
}

// FuzzRead checks that no record of a rejected file becomes visible, and that a backup of a restored file has the same
// content.
func FuzzRead(f *testing.F) {
	b, _ := json.Marshal(header{Format: formatVersion, Oldest: 2, Stamps: map[string]string{"a": "b"}})
	f.Add(string(b), pack(record("a", "1", 1), record("b", "", 3), deletion("a", 4)), []byte{}, int64(4), int64(1), int64(3))
	f.Add(`{"format":1}`, pack(record("a", "1", 1)), pack(record("a", "1", 1)), int64(1), int64(1), int64(2))
	f.Add(`{"format":1,"oldest":9}`, []byte{entryValue, 1, 0, 0}, []byte{}, int64(9), int64(1), int64(1))
	f.Fuzz(func(t *testing.T, head string, one, two []byte, revision, keys, entries int64) {
		var content [][]byte
		now := contents{}
		for _, c := range [][]byte{one, two} {
			if len(c) == 0 {
				continue
			}
			content = append(content, c)
			for len(c) > 0 { // so that the digest is right
				e, n, ok := parseEntry(c)
				if !ok {
					break
				}
				_ = now.add(e)
				c = c[n:]
			}
		}
		file := seal(head, content, func(id string) string {
			tail := trailer{Revision: storage.Revision(revision), Keys: keys, Entries: entries, ID: id}
			for _, have := range now {
				if have.value != nil {
					for i := range tail.Contents {
						tail.Contents[i] += have.value.contents[i]
						tail.Records[i] += have.value.records[i]
					}
				}
			}
			text, _ := json.Marshal(tail)
			return string(text)
		})
		_, fault := Verify(t.Context(), Options{}, bytes.NewReader(file))
		to, err := restored(t, file)
		if err != nil {
			return
		}
		require.NoError(t, fault)
		at, err := to.Revision(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, revision, at)
		var again bytes.Buffer
		report, err := Backup(t.Context(), to, &again, Options{})
		if have, ok := now[storage.IncompleteKey]; ok && !have.deleted {
			require.Error(t, err)
			return
		}
		require.NoError(t, err)
		require.Equal(t, keys, report.Keys)
		_, err = restored(t, again.Bytes())
		require.NoError(t, err)
	})
}

// FuzzBytes checks that arbitrary bytes are either a valid backup or rejected.
func FuzzBytes(f *testing.F) {
	whole := seal(`{"format":1}`, [][]byte{pack(record("a", "1", 1))}, func(string) string { return "{}" })
	f.Add(whole)
	f.Add(whole[:20])
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, file []byte) {
		if _, err := restored(t, file); err != nil {
			require.ErrorIs(t, err, ErrDamaged)
		}
	})
}

// FuzzChain checks an incremental file with an arbitrary reference to the previous one: either no record becomes
// visible, or a backup of the result has the same content.
func FuzzChain(f *testing.F) {
	first := honest(header{Oldest: 2}, record("a", "1", 1), record("b", "2", 2), record("c", "3", 3))
	f.Add(int64(3), pack(named("a", 1), named("b", 2), record("c", "4", 4)))
	f.Add(int64(3), pack(named("a", 1), deletion("a", 4), named("x", 2)))
	f.Add(int64(9), pack(named("c", 3), record("c", "3", 3), deletion("c", 3)))
	f.Fuzz(func(t *testing.T, oldest int64, content []byte) {
		file := first.file(t)
		at, err := Verify(t.Context(), Options{}, bytes.NewReader(file))
		require.NoError(t, err)
		have := map[version]storage.Record{}
		for _, e := range first.entries {
			have[version{e.Key, e.Revision}] = e.Record
		}
		var entries []entry
		for rest := content; len(rest) > 0; {
			e, n, ok := parseEntry(rest)
			if !ok {
				break
			}
			entries, rest = append(entries, e), rest[n:]
		}
		second := honest(header{Oldest: storage.Revision(oldest), Since: at.Position}, entries...)
		state := map[string]entry{}
		for _, e := range entries {
			if e.Revision >= state[e.Key].Revision {
				state[e.Key] = e
			}
		}
		var now digest
		for _, e := range state { // as an attacker who knows the first file would forge it
			switch {
			case e.earlier:
				now.add(have[version{e.Key, e.Revision}])
			case e.Value != nil:
				now.add(e.Record)
			}
		}
		second.trailer.Keys, second.trailer.Contents, second.trailer.Records = now.keys, now.contents, now.records
		to, err := restored(t, file, second.file(t))
		if err != nil {
			return
		}
		newest, err := to.Revision(t.Context())
		require.NoError(t, err)
		require.Equal(t, second.trailer.Revision, newest)
		_, records, err := to.Scan(t.Context(), "", "", 0)
		require.NoError(t, err)
		var found digest
		for rec, err := range records {
			require.NoError(t, err)
			found.add(rec)
		}
		require.Equal(t, now, found)
	})
}
