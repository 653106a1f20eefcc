package server_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"orch.io/controlplane/auth"
	"orch.io/controlplane/server"
	"orch.io/controlplane/registry/builtin"
)

type anyOf []auth.Authorizer

func (a anyOf) Authorize(context.Context, *auth.Attributes) (auth.Decision, string, error) { return 0, "", nil }

func TestProbeBuild(t *testing.T) {
	for _, at := range []string{"/metrics/", "/version/", "/metrics/slis/", "/healthz/x/", "/apis/", "/api/foo", "/openapi/v9", "/livezz", "/metrics/cadvisor"} {
		b := &server.Builder{Authorizer: auth.AllowAll, Handlers: map[string]http.Handler{at: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(299) })}}
		b.Register(builtin.Kinds()...)
		s, err := b.Build(t.Context())
		t.Log(at, err)
		if err == nil {
			w := httptest.NewRecorder()
			s.ServeHTTP(w, httptest.NewRequest("GET", at, nil))
			w2 := httptest.NewRecorder()
			s.ServeHTTP(w2, httptest.NewRequest("GET", at+"x", nil))
			t.Log(w.Code, w2.Code)
			s.Shutdown(t.Context())
		}
	}
}
