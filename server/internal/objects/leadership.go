package objects

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/internal/election"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/server/internal/objectcache"
	"orch.io/controlplane/storage"
)

// Leadership is what servers over one store agree by who of them leads: a Lease in the
// system namespace, and a record that stands for the term of who does, which the commit
// that begins the term writes together with the Lease. Neither admission nor access control
// is asked, no namespace needs to be there, and the Lease is where it is whether its kind is
// served or not: there is nothing but the store that could keep all servers from leading.
//
// It implements election.Record, for one candidate.
type Leadership struct {
	store *Store
	key   meta.Key
	term  storage.Revision // that this candidate won last; 0: none
}

// Leadership returns that of a Lease of a name.
func (s *Store) Leadership(name string) *Leadership {
	return &Leadership{store: s, key: meta.Key{Namespace: s.o.Names.SystemNamespace("system"), Name: name}}
}

// Lease returns where the Lease is.
func (l *Leadership) Lease() meta.Key { return l.key }

// Term returns the term that the candidate has won.
func (l *Leadership) Term(end func()) *Term {
	return &Term{Key: l.termKey(), Revision: l.term, End: end}
}

func (l *Leadership) leaseKey() string { return resource.StorageKey(l.store.leases(), l.key) }

func (l *Leadership) termKey() string { return resource.TermPrefix + l.key.Name }

// leases returns the resource of Leases, served or not.
func (s *Store) leases() meta.GroupResource {
	return meta.GroupResource{Group: s.o.Names.Group(names.GroupCoordination), Resource: "leases"}
}

// unknownHolder stands for who holds a Lease that cannot be read, which counts as any other.
const unknownHolder = "?"

// Get implements election.Record.
func (l *Leadership) Get(ctx context.Context) (*election.Lease, error) {
	rec, err := l.store.mark(ctx, l.leaseKey())
	if err != nil || rec.Revision == 0 {
		return nil, err
	}
	lease := &election.Lease{}
	if rec.Value == nil || json.Unmarshal(rec.Value, lease) != nil {
		*lease = election.Lease{}
		lease.Spec.HolderIdentity = unknownHolder
	}
	lease.ResourceVersion = FormatRevision(rec.Revision)
	return lease, nil
}

// Put implements election.Record. A renewal for which the store has no room counts as made, if
// the lease has not changed: nobody else can begin a term either, and who leads may be the one
// who makes room.
func (l *Leadership) Put(ctx context.Context, lease *election.Lease, wins bool) (*election.Lease, error) {
	expect, err := ParseRevision(lease.ResourceVersion)
	if err != nil {
		return nil, err
	}
	stored := *lease
	stored.ResourceVersion = ""
	value, err := l.encode(&stored)
	if err != nil {
		return nil, err
	}
	ws := []storage.Write{{Key: l.leaseKey(), Value: value, Expect: expect}}
	if wins {
		term, err := l.store.mark(ctx, l.termKey())
		if err != nil {
			return nil, err
		}
		ws = append(ws, storage.Write{Key: l.termKey(), Value: []byte(stored.Spec.HolderIdentity), Expect: term.Revision})
	}
	rev, err := l.store.backend.Commit(ctx, ws...)
	var conflict *storage.ConflictError
	switch {
	case errors.As(err, &conflict):
		return nil, election.ErrTaken
	case errors.Is(err, storage.ErrFull) && wins:
		return nil, fmt.Errorf("%w: %w", election.ErrNoRoom, err)
	case errors.Is(err, storage.ErrFull) && lease.Spec.HolderIdentity != "":
		return l.unrenewed(ctx, lease, expect)
	case err != nil:
		return nil, err
	}
	if wins {
		l.term = rev
	}
	stored.ResourceVersion = FormatRevision(rev)
	return &stored, nil
}

// unrenewed returns a lease that there was no room to renew, if it is still that of a revision.
func (l *Leadership) unrenewed(ctx context.Context, lease *election.Lease, at storage.Revision) (*election.Lease, error) {
	now, err := l.store.mark(ctx, l.leaseKey())
	if err == nil && now.Revision != at {
		err = election.ErrTaken
	}
	return lease, err
}

// encode returns a lease as the store gets it, complete.
func (l *Leadership) encode(lease *election.Lease) ([]byte, error) {
	lease.APIVersion, lease.Kind = l.store.leases().Group+"/v1", "Lease"
	lease.Namespace, lease.Name = l.key.Namespace, l.key.Name
	if lease.UID == "" {
		lease.UID, lease.CreationTimestamp = uuid.NewString(), meta.NewTime(time.Now())
	}
	text, err := json.Marshal(lease)
	if err != nil {
		return nil, err
	}
	tree, _, err := codec.DecodeJSON(text, codec.Limits{})
	if err != nil {
		return nil, err
	}
	return l.store.encodeStored(meta.NewObject(tree)), nil
}

// Await implements election.Record.
func (l *Leadership) Await(ctx context.Context, seen *election.Lease) error {
	rev, err := ParseRevision(seen.ResourceVersion)
	if err != nil {
		return err
	}
	cursor, err := l.store.o.Hub.Cache(l.store.leases()).Watch(objectcache.Query{Namespace: l.key.Namespace, Name: l.key.Name}, rev)
	if err != nil {
		return err
	}
	defer cursor.Close()
	_, err = cursor.Next(ctx)
	return err
}
