package objects

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/internal/consistency"
	"orch.io/controlplane/internal/election"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/server/internal/objectcache"
	"orch.io/controlplane/storage"
)

// Leadership elects a leader among the servers that share a store, by a Lease in the system namespace. A second
// record represents the term of the leader. The commit that begins a term writes both records, and the commits of a
// leader compare the record of the term (consistency.LeaderFence), because renewals of the Lease do not change it.
// Leadership uses only the backend: no admission, no access control, no namespace, and no served kind, so that none
// of these can keep all servers from leading.
//
// Leadership implements election.Record for one candidate. It is not safe for concurrent use.
type Leadership struct {
	store *Store
	key   meta.Key
	term  storage.Revision // the last term that this candidate won; 0: none
}

// Leadership returns the Leadership for the Lease with a name.
func (s *Store) Leadership(name string) *Leadership {
	return &Leadership{store: s, key: meta.Key{Namespace: s.o.Names.SystemNamespace("system"), Name: name}}
}

// Lease returns the namespace and name of the Lease.
func (l *Leadership) Lease() meta.Key { return l.key }

// Fence returns the LeaderFence of the last term that the candidate won. lost is called when a commit finds that
// another term has begun.
func (l *Leadership) Fence(lost func()) *consistency.LeaderFence {
	return &consistency.LeaderFence{Record: l.termKey(), Revision: l.term, Lost: lost}
}

// Term returns the revision of the last term that the candidate won, or 0.
func (l *Leadership) Term() storage.Revision { return l.term }

func (l *Leadership) leaseKey() string { return resource.StorageKey(l.store.leases(), l.key) }

func (l *Leadership) termKey() string { return resource.TermPrefix + l.key.Name }

// leases returns the resource of Leases, whether it is served or not.
func (s *Store) leases() meta.GroupResource {
	return meta.GroupResource{Group: s.o.Names.Group(wellknown.GroupCoordination), Resource: "leases"}
}

// unknownHolder is the holder of a Lease if its record cannot be read.
const unknownHolder = "?"

// Get implements election.Record.
func (l *Leadership) Get(ctx context.Context) (*election.Lease, error) {
	rec, err := l.store.currentRecord(ctx, l.leaseKey())
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

// Put implements election.Record. If the store has no room for a renewal, the renewal counts as made as long as the
// Lease is unchanged: no other server can begin a term either, and the controllers of the leader may make room.
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
		term, err := l.store.currentRecord(ctx, l.termKey())
		if err != nil {
			return nil, err
		}
		ws = append(ws, storage.Write{Key: l.termKey(), Value: []byte(stored.Spec.HolderIdentity), Expect: term.Revision})
	}
	rev, err := l.store.backend.Commit(ctx, ws...)
	var conflict *storage.ConflictError
	switch {
	case errors.As(err, &conflict):
		return nil, election.ErrConflict
	case errors.Is(err, storage.ErrFull) && wins:
		return nil, fmt.Errorf("%w: %w", election.ErrStoreFull, err)
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

// unrenewed returns a lease that could not be renewed for lack of room, or election.ErrConflict if the Lease is no
// longer at that revision.
func (l *Leadership) unrenewed(ctx context.Context, lease *election.Lease, at storage.Revision) (*election.Lease, error) {
	now, err := l.store.currentRecord(ctx, l.leaseKey())
	if err == nil && now.Revision != at {
		err = election.ErrConflict
	}
	return lease, err
}

// encode completes lease and returns its encoding for the backend.
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
