// Package servertest gives a test an API server of its own.
//
//	s := servertest.New(t, func(b *server.Builder) { b.Register(widgets) })
//	client := kubernetes.NewForConfigOrDie(&rest.Config{Host: s.Host(), Transport: s.Transport()})
//
// A server lives in the test's process and in memory, needs no socket, starts
// in milliseconds, runs its controllers, and cleans up after itself. Any
// number of them run side by side. It works inside a testing/synctest bubble,
// where hours of retention and expiry pass at once.
package servertest

import (
	"context"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin"
	"orch.io/controlplane/server"
	"orch.io/controlplane/storage/memstore"
)

// Server is a server under a test.
type Server struct {
	*server.Server
	t         testing.TB
	store     *memstore.Store
	configure []func(*server.Builder)
	services  *services

	once sync.Once
	http *httptest.Server
}

// New builds and runs a server that ends with the test. Without configuration
// it has the built-in kinds, the Kubernetes names, a memory store, and lets
// everybody do everything; configure may change or add to that (Builder.Kind), but a
// Storage given there cannot be forked. Faults end the test.
func New(t testing.TB, configure ...func(*server.Builder)) *Server {
	t.Helper()
	return start(t, memstore.New(memstore.Options{}), configure)
}

func start(t testing.TB, store *memstore.Store, configure []func(*server.Builder)) *Server {
	t.Helper()
	b := &server.Builder{Names: names.Kubernetes, Authorizer: auth.AllowAll, Storage: store}
	b.Register(builtin.Kinds()...)
	for _, c := range configure {
		c(b)
	}
	own := &services{}
	b.Services = own.or(b.Services)
	built, err := b.Build(context.Background())
	if err != nil {
		t.Fatalf("building the server: %v", err)
	}
	s := &Server{Server: built, t: t, configure: configure, services: own}
	if b.Storage == store {
		s.store = store
	}
	ran := make(chan struct{})
	go func() {
		defer close(ran)
		if err := built.Run(context.Background()); err != nil {
			t.Errorf("running the controllers: %v", err)
		}
	}()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if s.http != nil {
			s.http.CloseClientConnections()
		}
		if err := built.Shutdown(ctx); err != nil {
			t.Errorf("shutting down: %v", err)
		}
		if s.http != nil {
			s.http.Close()
		}
		<-ran
	})
	<-built.Running()
	return s
}

// Fork starts another server that begins with this one's objects, revisions and
// history; from then on they know nothing of each other. It costs the same
// however many objects there are to copy. Typical use: fill one server, fork it
// for each sub-test.
func (s *Server) Fork(t testing.TB) *Server {
	t.Helper()
	if s.store == nil {
		t.Fatal("a server with a Storage of its own cannot be forked")
	}
	return start(t, s.store.Fork(), s.configure)
}

// Settle waits until the controllers, also those of the Builder, have nothing left to
// do: namespaces emptied, garbage collected. It fails the test after a minute.
func (s *Server) Settle() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := s.Server.Settle(ctx); err != nil {
		s.t.Fatalf("waiting for the controllers: %v", err)
	}
}

// InstallCRDs creates the CustomResourceDefinitions in the files of a directory,
// such as those that a code generator wrote (registry.CRDFiles), and waits until
// they are served. Faults end the test. Where definitions need not be objects,
// registering the kinds of registry.FromCRDDir is simpler.
func (s *Server) InstallCRDs(files fs.FS) {
	s.t.Helper()
	crds, err := registry.CRDFiles(files)
	if err != nil {
		s.t.Fatalf("reading definitions: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, crd := range crds {
		group, _, _ := strings.Cut(crd.APIVersion(), "/")
		r := meta.GroupResource{Group: group, Resource: "customresourcedefinitions"}
		if _, err := s.Objects().Create(ctx, r, crd); err != nil {
			s.t.Fatalf("creating definition %s: %v", crd.Name(), err)
		}
	}
	s.Settle()
	for _, crd := range crds {
		r := meta.GroupResource{Group: crd.String("spec", "group"), Resource: crd.String("spec", "names", "plural")}
		if !slices.ContainsFunc(s.Objects().Types(), func(t *registry.Type) bool { return t.GroupResource() == r }) {
			s.t.Fatalf("definition %s is not served: its names are taken", crd.Name())
		}
	}
}

// Host is a base URL for clients that use Transport.
func (s *Server) Host() string { return "http://in-process" }

// Client returns an HTTP client that reaches the server in process.
func (s *Server) Client() *http.Client { return &http.Client{Transport: s.Transport()} }

// URL returns the base URL of the server on a loopback socket, which is opened
// when first asked for. It is plain HTTP; nothing but this machine reaches it.
func (s *Server) URL() string {
	s.once.Do(func() { s.http = httptest.NewServer(s.Server) })
	return s.http.URL
}
