package server

import (
	"context"
	"net/http"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/meta"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/watch"
)

// unreadableStatus is 500: nothing that the caller does differently helps.
func unreadableStatus(e *registry.UnreadableError) *meta.Status {
	st := meta.Failure(http.StatusInternalServerError, meta.ReasonInternalError, "Internal error occurred: %v", e)
	st.Details = &meta.Details{Name: e.Keys[0].Name, Group: e.Resource.Group, Kind: e.Resource.Resource,
		Causes: []meta.Cause{{Reason: meta.CauseUnexpected, Message: e.Error()}}}
	return st
}

// lookUp returns the entry of an object, nil if there is none.
func (s *Server) lookUp(t *registry.Type, key meta.Key) (*watch.Entry, error) {
	cache := s.hub.Cache(t.GroupResource())
	if e := cache.Get(key); e != nil {
		return e, nil
	}
	if rev, ok := cache.DamagedAt(key); ok {
		return nil, &registry.UnreadableError{Resource: t.GroupResource(), Keys: []meta.Key{key}, Revision: rev}
	}
	return nil, nil
}

// allReadable fails if an object that a list or the start of a watch would show
// cannot be read: what is missing in an answer without a word counts as deleted.
func (s *Server) allReadable(r *request) error {
	cache := s.hub.Cache(r.version.GroupResource())
	damaged := cache.Damaged(r.namespace)
	if name := r.name + r.selected; name != "" { // one of them is empty
		damaged = slices.DeleteFunc(damaged, func(k meta.Key) bool { return k.Name != name })
	}
	if len(damaged) == 0 {
		return nil
	}
	return &registry.UnreadableError{Resource: r.version.GroupResource(), Keys: damaged}
}

// verbUnreadable is what one must be allowed to do to delete an object of which
// nobody knows who holds it: finalizers, owners and admission cannot be asked.
const verbUnreadable = "unsafe-delete-ignore-read-errors"

// removeUnreadable deletes the record of an object that cannot be read. It has no
// uid that anybody could tell, so a precondition on that never holds: the garbage
// collector leaves such an object alone, whoever owned it.
func (s *Server) removeUnreadable(ctx context.Context, w *removal, u *registry.UnreadableError) (*result, error) {
	t := w.version.Type
	a := w.action
	a.Verb = verbUnreadable
	decision, reason, err := s.authorizer.Authorize(ctx, a)
	if err := s.judge(a, decision, reason, err); err != nil {
		return nil, err
	}
	o := w.deleteOptions
	if o.uid != nil || o.version != nil && *o.version != formatRevision(u.Revision) {
		s.log.Warn("an object that cannot be read was not deleted: nobody can tell whether it is the one that is meant", "resource", u.Resource, "namespace", w.key.Namespace, "name", w.key.Name)
		return nil, meta.Conflict(t.GroupResource(), w.key.Name, "Precondition failed: "+u.Error())
	}
	if !w.dryRun {
		if _, err := s.commit(ctx, storage.Write{Key: w.version.StorageKey(w.key), Expect: u.Revision}); err != nil {
			return nil, err
		}
		s.log.Warn("an object that could not be read was deleted", "resource", u.Resource, "namespace", w.key.Namespace, "name", w.key.Name)
	}
	return &result{deleted: true}, nil
}

// watchIntegrity shows what the store cannot read.
func watchIntegrity(reg prometheus.Registerer, b storage.Backend) {
	c, ok := b.(storage.Checker)
	if !ok {
		return
	}
	reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "apiserver_storage_damaged_records", Help: "Stored objects that cannot be read.",
	}, func() float64 {
		damaged, _ := c.Missing()
		return float64(damaged)
	}), prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "apiserver_storage_lost_commits", Help: "1 if the store has lost commits that it had acknowledged and nobody has seen to it yet.",
	}, func() float64 {
		_, losses := c.Missing()
		return float64(losses)
	}))
}
