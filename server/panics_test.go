package server_test

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/client"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

// TestPanicOfKeyIsRetriedWithBackoff has Reconcile panic, or end its goroutine. The key is retried
// after growing pauses, and other keys are reconciled meanwhile.
func TestPanicOfKeyIsRetriedWithBackoff(t *testing.T) {
	for name, end := range map[string]func(){"panic": func() { panic("loudly") }, "goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var calls, others atomic.Int32
				s, log := apitest.NewErrorFree(t, configMapController(func(name string) (time.Duration, error) {
					switch {
					case name == "bad" && calls.Add(1) <= 15:
						end()
					case name == "good":
						others.Add(1)
					}
					return 0, nil
				}))
				a := apitest.InProcess(t, s)
				a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("bad"))
				a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("good"))
				time.Sleep(100 * time.Millisecond)
				assert.Less(t, calls.Load(), int32(10), "the pauses grow")
				time.Sleep(10 * time.Minute)
				s.Settle()
				assert.EqualValues(t, 16, calls.Load())
				assert.EqualValues(t, 1, others.Load())
				if name == "panic" {
					assert.Equal(t, "15", a.RecoveredPanics("test"))
					assert.Contains(t, fmt.Sprint(log.Take()), "loudly")
				}
			})
		})
	}
}

// TestPanicOfMapEventSkipsEvent has MapEvent panic on an event: the event is skipped.
func TestPanicOfMapEventSkipsEvent(t *testing.T) {
	seen := make(chan string, 10)
	s, log := apitest.NewErrorFree(t, func(b *server.Builder) {
		b.Controllers = []client.Controller{{
			Name: "test", Types: []meta.GroupResource{{Resource: "configmaps"}},
			MapEvent: func(c client.Event) []string {
				if c.Key.Name == "bad" {
					panic("not that one")
				}
				return []string{c.Key.Name}
			},
			Reconcile: func(_ context.Context, _ client.Client, name string) (time.Duration, error) {
				seen <- name
				return 0, nil
			},
		}}
	})
	a := apitest.InProcess(t, s)
	a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("bad"))
	a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("good"))
	assert.Equal(t, "good", <-seen)
	s.Settle()
	assert.Equal(t, "1", a.RecoveredPanics("test"))
	assert.Len(t, log.Take(), 1)
}

// loud is an auditor, and the trail of every request, that panics in Complete.
type loud struct{}

func (loud) Begin(*http.Request, string, auth.Attributes) auth.Trail { return loud{} }
func (loud) Impersonate(*auth.User)                                  {}
func (loud) Concerns(_, _, _ string)                                 {}
func (loud) Request(func() []byte)                                   {}
func (loud) Annotate(_, _ string)                                    {}
func (loud) Started(int)                                             {}
func (loud) Complete(auth.Outcome)                                   { panic("no paper left") }

// TestPanicOfAuditorDoesNotFailRequest checks that the response is sent although the auditor
// panics.
func TestPanicOfAuditorDoesNotFailRequest(t *testing.T) {
	s, log := apitest.NewErrorFree(t, func(b *server.Builder) { b.Audit = loud{} })
	a := apitest.InProcess(t, s)
	a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("a"))
	a.Must(200, "GET", apitest.ConfigMapsPath, nil)
	assert.Equal(t, "2", a.RecoveredPanics("audit"))
	assert.NotEmpty(t, log.Take())
}

// panickingStore is a store whose Watch panics a given number of times.
type panickingStore struct {
	storage.Backend
	panics *atomic.Int32 // that remain
}

func (h panickingStore) Watch(ctx context.Context, prefix string, after storage.Revision) iter.Seq2[[]storage.Event, error] {
	return func(yield func([]storage.Event, error) bool) {
		for events, err := range h.Backend.Watch(ctx, prefix, after) {
			if h.panics.Add(-1) >= 0 {
				panic("what a commit")
			}
			if !yield(events, err) {
				return
			}
		}
	}
}

// TestPanicOfStoreWatchIsRetried has the store's Watch panic: the server watches again and misses
// no event.
func TestPanicOfStoreWatchIsRetried(t *testing.T) {
	var panics atomic.Int32
	s, log := apitest.NewErrorFree(t, func(b *server.Builder) { b.Storage = panickingStore{memstore.New(memstore.Options{}), &panics} })
	a := apitest.InProcess(t, s)
	w := a.Watch(apitest.ConfigMapsPath + "?watch=1")
	for i := range 5 {
		panics.Store(2)
		a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap(fmt.Sprint("c", i)))
		assert.Equal(t, fmt.Sprint("ADDED c", i), w.Next().String())
	}
	assert.Equal(t, "10", a.RecoveredPanics("storage"))
	assert.Len(t, log.Take(), 10)
}

// TestPanicEndsOnlyItsRequest has each part that handles requests panic: only that request fails,
// with 500.
func TestPanicEndsOnlyItsRequest(t *testing.T) {
	var at atomic.Value
	at.Store("")
	shout := func(here string) {
		if at.Load() == here {
			panic("at " + here)
		}
	}
	admit := func(here string) func(context.Context, *admission.Request) error {
		return func(_ context.Context, r *admission.Request) error {
			if r.Resource.Resource == "configmaps" { // not the writes of the server's own controllers
				shout(here)
			}
			return nil
		}
	}
	s, log := apitest.NewErrorFree(t, func(b *server.Builder) {
		b.Authenticators = []auth.Authenticator{auth.AuthenticatorFunc(func(*http.Request) (*auth.User, error) {
			shout("authenticator")
			return &auth.User{Name: "me"}, nil
		})}
		b.Authorizer = auth.AuthorizerFunc(func(context.Context, auth.Attributes) (auth.Decision, string, error) {
			shout("authorizer")
			return auth.Allow, "", nil
		})
		b.Admission = []admission.Plugin{{Name: "loud", Mutate: admit("mutate"), Validate: admit("validate")}}
		b.Handlers = map[string]http.Handler{"/handler": http.HandlerFunc(func(http.ResponseWriter, *http.Request) { shout("handler") })}
		b.Checks = map[string]func(context.Context) error{"loud": func(context.Context) error { shout("check"); return nil }}
		b.Kind("", "ConfigMap").Subresources = []registry.Subresource{{
			Name: "act",
			Act:  func(_ context.Context, c *registry.Call) (*meta.Object, error) { shout("act"); return c.Object, nil },
		}}
	})
	a := apitest.InProcess(t, s)
	a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("a"))
	for _, c := range [][3]string{
		{"authenticator", "GET", apitest.ConfigMapsPath}, {"authenticator", "GET", apitest.ConfigMapsPath + "?watch=1"},
		{"authorizer", "GET", apitest.ConfigMapsPath}, {"authorizer", "GET", "/healthz"},
		{"mutate", "PATCH", apitest.ConfigMapsPath + "/a"}, {"validate", "PATCH", apitest.ConfigMapsPath + "/a"},
		{"validate", "DELETE", apitest.ConfigMapsPath + "/a"}, {"mutate", "DELETE", apitest.ConfigMapsPath},
		{"handler", "GET", "/handler"}, {"check", "GET", "/readyz"}, {"act", "POST", apitest.ConfigMapsPath + "/a/act"},
	} {
		var body any
		if c[1] == "PATCH" || c[1] == "POST" {
			body = apitest.NewConfigMap("a", "k", "v")
		}
		at.Store(c[0])
		got := a.Do(c[1], c[2], body)
		assert.Equal(t, 500, got.Code, "%v: %s", c, got.Raw)
		at.Store("")
		assert.Contains(t, fmt.Sprint(log.Take()), "at "+c[0])
	}
	a.Must(200, "PATCH", apitest.ConfigMapsPath+"/a", `{"data":{"k":"v"}}`)
	assert.Equal(t, "11", a.RecoveredPanics("request"))
}
