package server

import (
	"context"
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/meta"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/watch"
)

// unreadable is the error for an object whose record the store cannot read.
type unreadable struct {
	resource meta.GroupResource
	key      meta.Key
	revision storage.Revision
	more     int // others of the same list
}

func (u *unreadable) Error() string {
	name := u.key.Name
	if u.key.Namespace != "" {
		name = u.key.Namespace + "/" + name
	}
	if u.more > 0 {
		return fmt.Sprintf("the stored data of %s %q and of %d others is damaged and cannot be read; the others can be read one by one, a damaged one can be deleted and created anew", u.resource, name, u.more)
	}
	return fmt.Sprintf("the stored data of %s %q is damaged and cannot be read; it can be deleted and created anew", u.resource, name)
}

// status is 500: nothing that the caller does differently helps.
func (u *unreadable) status() *meta.Status {
	st := meta.Failure(http.StatusInternalServerError, meta.ReasonInternalError, "Internal error occurred: %v", u)
	st.Details = &meta.Details{Name: u.key.Name, Group: u.resource.Group, Kind: u.resource.Resource,
		Causes: []meta.Cause{{Reason: meta.CauseUnexpected, Message: u.Error()}}}
	return st
}

// lookUp returns the entry of an object, nil if there is none.
func (s *Server) lookUp(t *registry.Type, key meta.Key) (*watch.Entry, error) {
	cache := s.hub.Cache(t.GroupResource())
	if e := cache.Get(key); e != nil {
		return e, nil
	}
	if rev, ok := cache.DamagedAt(key); ok {
		return nil, &unreadable{resource: t.GroupResource(), key: key, revision: rev}
	}
	return nil, nil
}

// allReadable fails if an object that a list or the start of a watch would show
// cannot be read: what is missing in an answer without a word counts as deleted.
func (s *Server) allReadable(r *request) error {
	cache := s.hub.Cache(r.version.GroupResource())
	damaged := cache.Damaged(r.namespace)
	if len(damaged) == 0 {
		return nil
	}
	u := &unreadable{resource: r.version.GroupResource(), key: damaged[0], more: len(damaged) - 1}
	name := r.name + r.selected // one of them is empty
	if name == "" {
		return u
	}
	for _, u.key = range damaged {
		if u.more = 0; u.key.Name == name {
			return u
		}
	}
	return nil
}

// verbUnreadable is what one must be allowed to do to delete an object of which
// nobody knows who holds it: finalizers, owners and admission cannot be asked.
const verbUnreadable = "unsafe-delete-ignore-read-errors"

// removeUnreadable deletes the record of an object that cannot be read.
func (s *Server) removeUnreadable(ctx context.Context, w *removal, u *unreadable) (*result, error) {
	t := w.version.Type
	a := w.action
	a.Verb = verbUnreadable
	decision, reason, err := s.authorizer.Authorize(ctx, a)
	if err := s.judge(a, decision, reason, err); err != nil {
		return nil, err
	}
	o := w.deleteOptions
	if o.uid != nil || o.version != nil && *o.version != formatRevision(u.revision) {
		return nil, meta.Conflict(t.GroupResource(), u.key.Name, "Precondition failed: "+u.Error())
	}
	if !w.dryRun {
		if _, err := s.commit(ctx, storage.Write{Key: w.version.StorageKey(w.key), Expect: u.revision}); err != nil {
			return nil, err
		}
		s.log.Warn("an object that could not be read was deleted", "resource", u.resource, "namespace", u.key.Namespace, "name", u.key.Name)
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
