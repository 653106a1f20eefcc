package server_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/review"
	"orch.io/controlplane/internal/formertest"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
)

// inRelease makes a server of a release, with reviews and the policies of pods.
func inRelease(t testing.TB, release string) *api {
	return inProcess(t, servertest.New(t, func(b *server.Builder) {
		b.Release = release
		b.Register(review.Access(auth.AllowAll)...)
		b.Register(review.Identity(nobody{}, nil)...)
	}))
}

// Parts of objects.
const (
	podTemplate = `{"metadata":{"labels":{"app":"a"}},"spec":{"containers":[{"name":"c","image":"i"}]}}`
	anyReview   = `"spec":{"resourceAttributes":{"verb":"get","resource":"pods"}`
)

// removed is a row of the table of what releases removed.
type removed struct{ formertest.Version }

// TestRemovedVersions is the table of what releases removed: each version works under the
// last release that has it, and the release after it does not know it, nor the newest.
func TestRemovedVersions(t *testing.T) {
	servers := map[string]*api{}
	of := func(release string) *api {
		if servers[release] == nil {
			servers[release] = inRelease(t, release)
		}
		return servers[release]
	}
	for _, v := range formertest.Versions(t) {
		r := removed{v}
		t.Run(r.APIVersion+" "+r.Resource, func(t *testing.T) {
			a := &api{t, of(r.Last).base, of(r.Last).client}
			r.works(a)
			for _, release := range []string{r.In, ""} {
				assert.Equal(t, 404, of(release).do("GET", r.Path(), nil).code, release)
			}
		})
	}
}

// works creates, reads, changes and watches an object, each with a warning.
func (r *removed) works(a *api) {
	gv, _, _ := strings.Cut(r.APIVersion, "/")
	made := a.must(201, "POST", r.Path(), r.Object())
	assert.Equal(a.t, r.APIVersion, made.body["apiVersion"])
	warning := strings.Join(made.header.Values("Warning"), "\n")
	assert.Contains(a.t, warning, fmt.Sprintf("%s %s is deprecated in v", r.APIVersion, made.body["kind"]))
	assert.Contains(a.t, warning, "+, unavailable in v"+r.In+"+")
	assert.Contains(a.t, string(a.must(200, "GET", "/metrics", nil).raw), fmt.Sprintf(
		"apiserver_requested_deprecated_apis{group=%q,removed_release=%q,resource=%q,subresource=\"\",version=%q} 1", gv, r.In, r.Plural(), r.APIVersion[len(gv)+1:]))
	if r.OnlyCreated() {
		assert.NotNil(a.t, made.body["status"])
		return
	}
	item := r.Path() + "/" + r.Name()
	w := a.watch(r.Path() + "?watch=1&resourceVersion=" + made.version())
	got := a.must(200, "GET", item, nil)
	assert.Equal(a.t, r.APIVersion, got.body["apiVersion"])
	a.must(200, "PUT", item, got.raw)
	a.must(200, "PATCH", item, `{"metadata":{"labels":{"patched":"yes"}}}`)
	e := w.next()
	for text(e.Object, "metadata", "labels", "patched") == "" { // a controller wrote the status
		e = w.next()
	}
	assert.Equal(a.t, "MODIFIED", e.Type)
	assert.Equal(a.t, r.APIVersion, e.Object["apiVersion"])
	assert.Equal(a.t, "yes", text(e.Object, "metadata", "labels", "patched"))
	w.close()
	list := a.must(200, "GET", r.Path(), nil)
	assert.Equal(a.t, r.APIVersion, list.body["apiVersion"])
	assert.Contains(a.t, list.names(), r.Name())
}

// nobody knows no token.
type nobody struct{}

func (nobody) AuthenticateToken(context.Context, string, []string) (*auth.User, []string, error) {
	return nil, nil, nil
}
