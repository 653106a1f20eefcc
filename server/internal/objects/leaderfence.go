package objects

import (
	"context"
	"errors"
	"slices"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/consistency"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/storage"
)

// errDeposed is the error of a commit if its LeaderFence failed.
var errDeposed = errors.New("another server leads this controller: its writes from this server are refused")

// leaderFenceBytes bounds the storage key of a term. A commit reserves that many bytes for its LeaderFence.
const leaderFenceBytes = 512

// requireLeader returns required with the LeaderFence of ctx. If the fence is for work without a leader, it returns
// storage.ErrFull unless the commit only deletes records. It does not modify required.
func requireLeader(ctx context.Context, required []*precondition, ws []storage.Write) ([]*precondition, error) {
	f := consistency.LeaderFenceOf(ctx)
	switch {
	case f == nil:
		return required, nil
	case f.Record != "":
		return append(slices.Clip(required), &precondition{
			Write: storage.Write{Key: f.Record, Expect: f.Revision, Guard: true}, reason: becauseLeader, lost: f.Lost,
		}), nil
	case slices.ContainsFunc(ws, setsValue), slices.ContainsFunc(required, func(p *precondition) bool { return setsValue(p.Write) }):
		return nil, storage.ErrFull
	}
	return required, nil
}

func setsValue(w storage.Write) bool { return w.Value != nil }

// LeaderClient is the Client of a controller that works under a LeaderFence. The fence applies to every write, whatever its
// context.
type LeaderClient struct {
	*Client
	Fence *consistency.LeaderFence
}

// Create implements client.Client.
func (l LeaderClient) Create(ctx context.Context, r meta.GroupResource, obj *meta.Object) (*meta.Object, error) {
	return l.Client.Create(consistency.WithLeaderFence(ctx, l.Fence), r, obj)
}

// Update implements client.Client.
func (l LeaderClient) Update(ctx context.Context, r meta.GroupResource, key meta.Key, subresource string, change func(*meta.Object) error) (*meta.Object, error) {
	return l.Client.Update(consistency.WithLeaderFence(ctx, l.Fence), r, key, subresource, change)
}

// Delete implements client.Client.
func (l LeaderClient) Delete(ctx context.Context, r meta.GroupResource, key meta.Key, o registry.DeleteOptions) error {
	return l.Client.Delete(consistency.WithLeaderFence(ctx, l.Fence), r, key, o)
}

// hasLeaderFence reports whether the commits of ctx depend on a LeaderFence.
func hasLeaderFence(ctx context.Context) bool { return consistency.LeaderFenceOf(ctx) != nil }
