package objects

import (
	"context"
	"errors"
	"slices"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/storage"
)

// Term is that of a leader. What is committed with a context that has one is committed only
// as long as no other term has begun, whatever the leader believes, and whoever makes the
// commit on its behalf: Records adds the comparison. The zero Term is that of those who make
// room in a full store that has no leader: what is committed with it only deletes.
type Term struct {
	Key      string // of the record that stands for it
	Revision storage.Revision
	End      func() // is called when a commit finds that another term has begun
}

// termBytes is the room for the key of a term in a commit.
const termBytes = 512

// errDeposed says that another term has begun.
var errDeposed = errors.New("another server leads this controller now: what this one writes for it is refused")

type termKey struct{}

// WithTerm returns a context whose commits depend on a term; nil: on none.
func WithTerm(ctx context.Context, t *Term) context.Context {
	return context.WithValue(ctx, termKey{}, t)
}

func termOf(ctx context.Context) *Term {
	t, _ := ctx.Value(termKey{}).(*Term)
	return t
}

// over returns the backend that the commits of a context go to.
func (r *Records) over(ctx context.Context) storage.Backend {
	if t := termOf(ctx); t != nil {
		return &inTerm{r.Backend, t}
	}
	return r.Backend
}

// inTerm is a backend whose commits depend on a term. It makes no sequences.
type inTerm struct {
	storage.Backend
	term *Term
}

// Commit implements storage.Backend.
func (b *inTerm) Commit(ctx context.Context, ws ...storage.Write) (storage.Revision, error) {
	if b.term.Key == "" {
		if slices.ContainsFunc(ws, func(w storage.Write) bool { return w.Value != nil }) {
			return 0, storage.ErrFull
		}
		return b.Backend.Commit(ctx, ws...)
	}
	guard := storage.Write{Key: b.term.Key, Expect: b.term.Revision, Guard: true}
	rev, err := b.Backend.Commit(ctx, append(slices.Clip(ws), guard)...)
	var conflict *storage.ConflictError
	if errors.As(err, &conflict) && conflict.Key == b.term.Key {
		b.term.End()
		return 0, errDeposed
	}
	return rev, err
}

// Led is the Client of a controller that works in a term, with whatever context it writes.
type Led struct {
	*Client
	Term *Term
}

// Create implements client.Client.
func (l Led) Create(ctx context.Context, r meta.GroupResource, obj *meta.Object) (*meta.Object, error) {
	return l.Client.Create(WithTerm(ctx, l.Term), r, obj)
}

// Update implements client.Client.
func (l Led) Update(ctx context.Context, r meta.GroupResource, key meta.Key, subresource string, change func(*meta.Object) error) (*meta.Object, error) {
	return l.Client.Update(WithTerm(ctx, l.Term), r, key, subresource, change)
}

// Delete implements client.Client.
func (l Led) Delete(ctx context.Context, r meta.GroupResource, key meta.Key, o registry.DeleteOptions) error {
	return l.Client.Delete(WithTerm(ctx, l.Term), r, key, o)
}
