package objects_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server/internal/objects"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

// The kind Thing in two releases.
type (
	sized struct {
		meta.TypeMeta   `json:",inline"`
		meta.ObjectMeta `json:"metadata"`
		Size            int32  `json:"size,omitempty"`
		Old             string `json:"old,omitempty"`
	}
	named struct {
		meta.TypeMeta   `json:",inline"`
		meta.ObjectMeta `json:"metadata"`
		Size            string `json:"size,omitempty"`
	}
)

// thingOf returns the type of a kind with one version.
func thingOf[T any](t testing.TB, kind string) *resource.Type {
	typ, err := resource.Compile(registry.Of(registry.Definition[T]{Group: "example.com", Version: "v1", Kind: kind, Plural: "things"}), names.Orch)
	require.NoError(t, err)
	return typ
}

// opened returns the Records of a store that a release with types has opened.
func opened(t testing.TB, b storage.Backend, types ...*resource.Type) *objects.Records {
	r, err := objects.OpenRecords(t.Context(), b, types, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	return r
}

// load loads a store as a server does when it starts, and returns the records and their problems.
func load(t testing.TB, r *objects.Records) (values []string, problems []objects.Problem) {
	require.NoError(t, r.Begin(t.Context()))
	values = scan(t, r)
	problems, err := r.Accept(t.Context(), true)
	require.NoError(t, err)
	return values, problems
}

func scan(t testing.TB, r *objects.Records) (values []string) {
	_, records, err := r.Store().Scan(t.Context(), "", "", 0)
	require.NoError(t, err)
	for rec, err := range records {
		require.NoError(t, err)
		if rec.Key != resource.KindsKey {
			values = append(values, string(rec.Value))
		}
	}
	return values
}

func put(t testing.TB, b storage.Backend, name, rest string) {
	value := fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":%q}%s}`, name, rest)
	_, err := b.Commit(t.Context(), storage.Write{Key: "things.example.com/default/" + name, Value: []byte(value), Expect: storage.AnyRevision})
	require.NoError(t, err)
}

// TestRecordsWithoutUnshownDataAreSigned: a record has the signature of its writer, unless it has unshown data.
func TestRecordsWithoutUnshownDataAreSigned(t *testing.T) {
	b := memstore.New(memstore.Options{})
	defer b.Close()
	one := thingOf[sized](t, "Thing")
	put(t, opened(t, b, one).Store(), "a", `,"size":3`)
	stored := func() string {
		rec, err := b.Get(t.Context(), aThing, 0)
		require.NoError(t, err)
		return string(rec.Value)
	}
	text := `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a"},"size":`
	assert.Equal(t, text+"3}\n"+one.Fingerprint(), stored())
	two := opened(t, b, thingOf[named](t, "Thing"))
	load(t, two)
	change(t, two.Store(), "metadata", map[string]any{"name": "a"})
	assert.Equal(t, text+"3}", stored())
	change(t, two.Store(), "size", "large")
	assert.Equal(t, text+`"large"}`, stored(), "the record was not signed, so it may have unshown data")
	change(t, two.Store(), "size", "small")
	assert.Equal(t, text+`"small"}`+"\n"+thingOf[named](t, "Thing").Fingerprint(), stored())
	rec, err := opened(t, b).Store().Get(t.Context(), aThing, 0)
	require.NoError(t, err)
	assert.Equal(t, text+`"small"}`, string(rec.Value), "the signature is removed for unregistered kinds too")
}

// TestTwoReleasesOpenAnEmptyStore: both find the store empty, but the second release loads it after the first has
// written an object.
func TestTwoReleasesOpenAnEmptyStore(t *testing.T) {
	b := memstore.New(memstore.Options{})
	defer b.Close()
	one, two := opened(t, b, thingOf[sized](t, "Thing")), opened(t, b, thingOf[named](t, "Thing"))
	load(t, one)
	put(t, one.Store(), "a", `,"size":3`)
	values, _ := load(t, two)
	require.Len(t, values, 1)
	assert.NotContains(t, values[0], "size", "size is a string in the second release")
	values, _ = load(t, opened(t, b, thingOf[sized](t, "Thing")))
	assert.Contains(t, values[0], "size")
}

// TestUnreadableServedRecordIsReplaced: if the record of the releases that served the store cannot be read, it is
// written again.
func TestUnreadableServedRecordIsReplaced(t *testing.T) {
	for _, text := range []string{`{"things.example`, `[]`, `{"things.example.com":7}`, `null`, `{}`} {
		b := memstore.New(memstore.Options{})
		defer b.Close()
		load(t, opened(t, b, thingOf[sized](t, "Thing")))
		put(t, b, "a", `,"size":3`)
		_, err := b.Commit(t.Context(), storage.Write{Key: resource.KindsKey, Value: []byte(text), Expect: storage.AnyRevision})
		require.NoError(t, err)
		two := thingOf[named](t, "Thing")
		values, _ := load(t, opened(t, b, two))
		assert.NotContains(t, values[0], "size", text)
		rec, err := b.Get(t.Context(), resource.KindsKey, 0)
		require.NoError(t, err)
		assert.Equal(t, fmt.Sprintf(`{"things.example.com":{"seen":[%q]}}`, two.Fingerprint()), string(rec.Value))
	}
}

// TestUnsignedRecordsAreFitted: unsigned records are fitted one by one, whatever an older release has recorded about
// all of them, and Accept does not report problems if a release of the same shape served the store.
func TestUnsignedRecordsAreFitted(t *testing.T) {
	shape := thingOf[sized](t, "Thing").Fingerprint()
	for _, all := range []string{shape, "0123456789abcdef", ""} {
		b := memstore.New(memstore.Options{})
		defer b.Close()
		_, err := b.Commit(t.Context(), storage.Write{Key: resource.KindsKey, Value: fmt.Appendf(nil, `{"things.example.com":{"all":%q,"seen":[%q]}}`, all, shape)})
		require.NoError(t, err)
		put(t, b, "a", `,"size":3,"future":"kept"`)
		put(t, b, "b", `,"size":4`)
		r := opened(t, b, thingOf[sized](t, "Thing"))
		require.NoError(t, r.Begin(t.Context()))
		assert.Equal(t, []string{
			`{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a"},"size":3}`,
			`{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"b"},"size":4}`,
		}, scan(t, r))
		problems, err := r.Accept(t.Context(), false)
		require.NoError(t, err)
		assert.Empty(t, problems, "a release of this shape has served the store")
		rec, err := b.Get(t.Context(), resource.KindsKey, 0)
		require.NoError(t, err)
		assert.Equal(t, fmt.Sprintf(`{"things.example.com":{"seen":[%q]}}`, shape), string(rec.Value))
		change(t, r.Store(), "size", 5)
		assert.Equal(t, "kept", now(t, b)["future"])
	}
}

// TestRenamedKindIsRead: records contain the former name of the kind and are shown with the new name.
func TestRenamedKindIsRead(t *testing.T) {
	b := memstore.New(memstore.Options{})
	defer b.Close()
	one := opened(t, b, thingOf[sized](t, "Thing"))
	load(t, one)
	put(t, one.Store(), "a", ``)
	values, problems := load(t, opened(t, b, thingOf[sized](t, "Item")))
	assert.Contains(t, values[0], `"kind":"Item"`)
	assert.Empty(t, problems)
}

// TestAcceptIgnoresLaterWrites: Accept may run while a follower reads events.
func TestAcceptIgnoresLaterWrites(t *testing.T) {
	b := memstore.New(memstore.Options{})
	defer b.Close()
	load(t, opened(t, b, thingOf[sized](t, "Thing")))
	two := opened(t, b, thingOf[named](t, "Thing"))
	scan(t, two)
	ctx, stop := context.WithCancel(t.Context())
	var done sync.WaitGroup
	follower := two.Store().(interface {
		Follow(context.Context, storage.Revision) iter.Seq2[[]storage.Event, error]
	})
	first := make(chan struct{})
	done.Go(func() {
		seen := 0
		for range follower.Follow(ctx, 1) {
			if seen++; seen == 1 {
				close(first)
			}
		}
	})
	for i := range 20 {
		put(t, b, fmt.Sprint("a", i), `,"size":3`)
	}
	<-first
	_, err := two.Accept(ctx, false)
	require.NoError(t, err)
	stop()
	done.Wait()
}

// TestDamagedRecordsAreReplaced: a write replaces a record that cannot be read, even if other records have unshown
// data.
func TestDamagedRecordsAreReplaced(t *testing.T) {
	b := memstore.New(memstore.Options{})
	defer b.Close()
	load(t, opened(t, b, thingOf[sized](t, "Thing")))
	put(t, b, "a", `,"size":3`)
	two := opened(t, damages{b}, thingOf[named](t, "Thing"))
	load(t, two)
	put(t, two.Store(), "a", `,"size":"large"`)
	assert.Equal(t, "large", now(t, b)["size"])
}

// damages is a store that cannot read the record of aThing.
type damages struct{ storage.Backend }

func (d damages) Get(ctx context.Context, key string, at storage.Revision) (storage.Record, error) {
	rec, err := d.Backend.Get(ctx, key, at)
	if err == nil && key == aThing {
		return storage.Record{}, &storage.DamagedError{Key: key, Revision: rec.Revision}
	}
	return rec, err
}

// TestConflictIsReportedBeforeRefusal: a write whose record has changed meanwhile gets the conflict, not the refusal
// that the changed record would cause.
func TestConflictIsReportedBeforeRefusal(t *testing.T) {
	b := memstore.New(memstore.Options{})
	defer b.Close()
	typ, err := resource.Compile(registry.Of(registry.Definition[sized]{Group: "example.com", Version: "v2", Kind: "Thing", Storage: "v1",
		Versions: []registry.VersionOf[sized]{registry.Spoke[sized, sized]{Version: "v1",
			ToHub: func(in, out *sized) error { out.Size = in.Size; return nil },
			FromHub: func(in, out *sized) error {
				if out.Size = in.Size; in.Size == 13 {
					return errors.New("size: not supported")
				}
				return nil
			}}},
	}), names.Orch)
	require.NoError(t, err)
	put(t, b, "a", `,"size":3,"future":"kept"`)
	r := opened(t, b, typ)
	load(t, r)
	was, err := b.Get(t.Context(), aThing, 0)
	require.NoError(t, err)
	put(t, b, "a", `,"size":4,"future":"kept"`)
	_, err = r.Store().Commit(t.Context(), storage.Write{Key: aThing, Expect: was.Revision,
		Value: []byte(`{"apiVersion":"example.com/v2","kind":"Thing","metadata":{"name":"a"},"size":13}`)})
	var conflict *storage.ConflictError
	require.ErrorAs(t, err, &conflict)
}
