package storagetest

import (
	"errors"
	"iter"
	"maps"
	"strings"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage"
)

// importRules are the rules for a storage.Importer and a storage.StampReader. Other stores pass.
func importRules() []rule {
	return []rule{
		{"ImportKeeps", importFills, "records, history and stamps are imported with their revisions, and new commits follow them", importKeeps},
		{"ImportRefuses", importEmpty, "an import into a store with a commit fails with ErrNotEmpty and changes nothing", importRefuses},
		{"ImportFails", importWhole, "if the records end in an error, the store shows none of them", importFails},
		{"StampsList", stampsList, "exactly the existing stamps are listed", stampsListed},
	}
}

// elsewhere is the history of another store from revision 100 on, in the form of an import.
func elsewhere() (*history, []storage.Record) {
	h := newHistory(0)
	large := []byte(strings.Repeat("large", 100_000))
	for _, rec := range []storage.Record{
		{Key: "a", Revision: 40, Value: []byte("1")},
		{Key: "b", Revision: 90, Value: []byte{}},
		{Key: "c", Revision: 94, Value: []byte("1")},
		{Key: "c", Revision: 95},
		{Key: "a", Revision: 120, Value: large},
		{Key: "d", Revision: 130, Value: []byte("1")},
		{Key: "a/e", Revision: 140, Value: large},
		{Key: "f", Revision: 140, Value: []byte("1")},
		{Key: "b", Revision: 150},
		{Key: "f", Revision: 151, Value: []byte("2")},
		{Key: "f", Revision: 152},
		{Key: "f", Revision: 153, Value: []byte("3")},
		{Key: "a", Revision: 160, Value: []byte("2")},
	} {
		h.add(rec.Key, rec.Value, rec.Revision)
	}
	var records []storage.Record
	for i := range h.events {
		// In arbitrary order, and without the record that was deleted before the history began.
		if e := h.events[(i*5+3)%len(h.events)]; e.Revision != 94 {
			records = append(records, e.Record)
		}
	}
	return h, append(records, records[:3]...)
}

func sequence(records []storage.Record, last error) iter.Seq2[storage.Record, error] {
	return func(yield func(storage.Record, error) bool) {
		for _, rec := range records {
			if !yield(rec, nil) {
				return
			}
		}
		if last != nil {
			yield(storage.Record{}, last)
		}
	}
}

func importKeeps(s *store) {
	importer, ok := s.raw.(storage.Importer)
	if !ok {
		return
	}
	h, records := elsewhere()
	stamps := map[string]string{"names": "of elsewhere", "": "nameless"}
	_, err := importer.Stamp(s.ctx, "names", "of here")
	require.NoError(s.t, err)
	require.ErrorIs(s.t, importer.Import(s.ctx, stamps, 100, sequence(records, nil)), storage.ErrNotEmpty)
	stamps["names"] = "of here"
	require.NoError(s.t, importer.Import(s.ctx, stamps, 100, sequence(records, nil)))
	for name, value := range stamps {
		have, err := importer.Stamp(s.ctx, name, "other")
		require.NoError(s.t, err)
		require.Equal(s.t, value, have)
	}
	keys, prefixes := []string{"a", "a/e", "b", "c", "d", "f", "g"}, []string{"", "a", "f"}
	h.verify(s, 100, keys, prefixes)
	_, err = s.Get(s.ctx, "a", 99)
	require.ErrorIs(s.t, err, storage.ErrCompacted)
	_, err = collect(s.ctx, s.Backend, "", 99, 1)
	require.ErrorIs(s.t, err, storage.ErrCompacted)
	for _, w := range []storage.Write{
		{Key: "a", Value: []byte("3"), Expect: 160},
		{Key: "c", Value: []byte("2")},
		{Key: "g", Value: []byte("1")},
		{Key: "d", Expect: 130},
	} {
		revision, err := s.Commit(s.ctx, w)
		require.NoError(s.t, err)
		require.Greater(s.t, revision, h.newest())
		h.add(w.Key, w.Value, revision)
	}
	h.verify(s, 100, keys, prefixes)
	require.NoError(s.t, s.Compact(s.ctx, 151))
	h.verify(s, 151, keys, prefixes)
	require.ErrorIs(s.t, importer.Import(s.ctx, nil, 100, sequence(records, nil)), storage.ErrNotEmpty)
	h.verify(s, 151, keys, prefixes)
}

func importRefuses(s *store) {
	importer, ok := s.raw.(storage.Importer)
	if !ok {
		return
	}
	h := newHistory(s.newest())
	h.add("a", []byte("1"), s.put("a", "1"))
	h.add("a", nil, s.del("a"))
	_, records := elsewhere()
	require.ErrorIs(s.t, importer.Import(s.ctx, nil, 100, sequence(records, nil)), storage.ErrNotEmpty)
	h.verify(s, h.base, []string{"a", "b"}, []string{""})
}

func importFails(s *store) {
	importer, ok := s.raw.(storage.Importer)
	if !ok {
		return
	}
	broken := errors.New("interrupted")
	_, records := elsewhere()
	require.ErrorIs(s.t, importer.Import(s.ctx, map[string]string{"names": "of elsewhere"}, 100, sequence(records, broken)), broken)
	if kept, ok := s.raw.(storage.StampReader); ok {
		stamps, err := kept.Stamps(s.ctx)
		if !errors.Is(err, storage.ErrStopped) {
			require.NoError(s.t, err)
		}
		require.Empty(s.t, stamps)
	}
	require.Zero(s.t, s.newest())
	require.Empty(s.t, s.keys("", "", 0))
}

func stampsListed(s *store) {
	stamper, ok := s.raw.(storage.StampReader)
	if !ok {
		return
	}
	want := map[string]string{}
	for range 2 {
		have, err := stamper.Stamps(s.ctx)
		require.NoError(s.t, err)
		require.Equal(s.t, len(want), len(have))
		require.True(s.t, maps.Equal(want, have), "%v", have)
		for _, name := range []string{"names", "other"} {
			want[name], err = stamper.Stamp(s.ctx, name, "of "+name)
			require.NoError(s.t, err)
		}
		s.put("a", "1")
	}
}
