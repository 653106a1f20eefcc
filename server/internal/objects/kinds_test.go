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

// Things of two releases.
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

func thingOf[T any](t testing.TB, kind string) *resource.Type {
	typ, err := resource.Compile(registry.Of(registry.Definition[T]{Group: "example.com", Version: "v1", Kind: kind, Plural: "things"}), names.Orch)
	require.NoError(t, err)
	return typ
}

// opened is a store as a release opens it.
func opened(t testing.TB, b storage.Backend, types ...*resource.Type) *objects.Records {
	r, err := objects.OpenRecords(t.Context(), b, types, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	return r
}

// load is what a server does with it.
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

// TestRecordsAreSigned: a record says whose it is, unless it holds what its writer does not
// show.
func TestRecordsAreSigned(t *testing.T) {
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
	assert.Equal(t, text+`"large"}`, stored(), "it may hold more, for all that is known")
	change(t, two.Store(), "size", "small")
	assert.Equal(t, text+`"small"}`+"\n"+thingOf[named](t, "Thing").Fingerprint(), stored())
	rec, err := opened(t, b).Store().Get(t.Context(), aThing, 0)
	require.NoError(t, err)
	assert.Equal(t, text+`"small"}`, string(rec.Value), "also where the kind is not registered")
}

// TestTwoReleasesBegin: of two that find a store empty, one comes later.
func TestTwoReleasesBegin(t *testing.T) {
	b := memstore.New(memstore.Options{})
	defer b.Close()
	one, two := opened(t, b, thingOf[sized](t, "Thing")), opened(t, b, thingOf[named](t, "Thing"))
	load(t, one)
	put(t, one.Store(), "a", `,"size":3`)
	values, _ := load(t, two)
	require.Len(t, values, 1)
	assert.NotContains(t, values[0], "size", "it is no number to the second one")
	values, _ = load(t, opened(t, b, thingOf[sized](t, "Thing")))
	assert.Contains(t, values[0], "size")
}

// TestDamagedServed: what the store says of who served it may be unreadable, and is said
// anew.
func TestDamagedServed(t *testing.T) {
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

// TestStoreWithoutSignatures: records that nobody signed are read and fitted one by one,
// whatever the store says of them all, and nobody is told that again.
func TestStoreWithoutSignatures(t *testing.T) {
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
		assert.Empty(t, problems, "a release of this shape was there before")
		rec, err := b.Get(t.Context(), resource.KindsKey, 0)
		require.NoError(t, err)
		assert.Equal(t, fmt.Sprintf(`{"things.example.com":{"seen":[%q]}}`, shape), string(rec.Value))
		change(t, r.Store(), "size", 5)
		assert.Equal(t, "kept", now(t, b)["future"])
	}
}

// TestRenamedKind: records say what their kind was called.
func TestRenamedKind(t *testing.T) {
	b := memstore.New(memstore.Options{})
	defer b.Close()
	one := opened(t, b, thingOf[sized](t, "Thing"))
	load(t, one)
	put(t, one.Store(), "a", ``)
	values, problems := load(t, opened(t, b, thingOf[sized](t, "Item")))
	assert.Contains(t, values[0], `"kind":"Item"`)
	assert.Empty(t, problems)
}

// TestAcceptWhileOthersWrite: events that come before Accept are no business of it.
func TestAcceptWhileOthersWrite(t *testing.T) {
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

// TestDamagedRecordsAreReplaced also where records are of several shapes.
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

// damages is a store that cannot read a record.
type damages struct{ storage.Backend }

func (d damages) Get(ctx context.Context, key string, at storage.Revision) (storage.Record, error) {
	rec, err := d.Backend.Get(ctx, key, at)
	if err == nil && key == aThing {
		return storage.Record{}, &storage.DamagedError{Key: key, Revision: rec.Revision}
	}
	return rec, err
}

// TestConflictBeforeRefusal: who means a record that is not there any more is told so, not
// what that of another one cannot hold.
func TestConflictBeforeRefusal(t *testing.T) {
	b := memstore.New(memstore.Options{})
	defer b.Close()
	typ, err := resource.Compile(registry.Of(registry.Definition[sized]{Group: "example.com", Version: "v2", Kind: "Thing", Storage: "v1",
		Versions: []registry.VersionOf[sized]{registry.Spoke[sized, sized]{Version: "v1",
			ToHub: func(in, out *sized) error { out.Size = in.Size; return nil },
			FromHub: func(in, out *sized) error {
				if out.Size = in.Size; in.Size == 13 {
					return errors.New("size: nobody has it")
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
