// Package servertest runs an API server for a test.
//
//	s := servertest.New(t, func(b *server.Builder) { b.Register(widgets) })
//	client := kubernetes.NewForConfigOrDie(&rest.Config{Host: s.Host(), Transport: s.Transport(), QPS: -1})
//
// The server runs in the process of the test, with a memory store and without a socket. It starts in
// milliseconds, runs its controllers, and stops with the test. Any number of servers can run at the same
// time. It works in a testing/synctest bubble and uses its clock, so that hours of retention and expiry pass
// at once.
//
// The server has the built-in kinds and the default admission plugins. Use InstallCRDs, InstallWebhooks and
// Load for definitions, webhooks and fixtures, Conn and As for users, RBAC for their rights, Fail to inject
// faults, Crash and Restart, and Record to check requests. When a test fails, its log ends with the last
// requests that the server got.
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
	"orch.io/controlplane/server/access"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

// Server is a server for a test. Requests of the clients that Conn, Transport, Client, URL and As return pass faults and
// recorders, and these clients continue to work after Restart. Requests of the embedded server and its Objects, and
// therefore of Load and InstallCRDs, bypass faults and recorders.
type Server struct {
	*server.Server // replaced by Restart

	t         testing.TB
	front     *front
	users     *users
	store     *memstore.Store // nil: the configuration set a Storage
	kept      *keptOpen       // wraps store for Server
	configure []func(*server.Builder)
	services  *services
	ran       chan struct{} // closed when Server.Run has returned

	mu     sync.Mutex       // guards the fields below
	plain  *httptest.Server // nil: not open
	secure *httptest.Server
}

// New builds and starts a server that stops when the test ends. By default it has the built-in kinds, the
// Kubernetes names, a memory store, and allows every request. The configure functions may change that; a
// server with a Storage set by them does not support Fork, Crash and StaleReads. An error ends the test.
func New(t testing.TB, configure ...func(*server.Builder)) *Server {
	t.Helper()
	return start(&Server{t: t, store: memstore.New(memstore.Options{}), configure: configure, services: &services{}})
}

// RBAC configures a server, as an argument of New, with RBAC and service accounts as set up by package
// access. Requests without credentials are anonymous and have next to no rights. Tokens of service accounts
// become invalid with Restart and are not valid for forks.
func RBAC(b *server.Builder) {
	c := access.Config{Authenticators: b.Authenticators} // includes the users of As, so that TokenReviews accept their tokens
	b.Authenticators, b.Authorizer = nil, nil
	if err := access.Setup(b, c); err != nil {
		b.Authorizer = nil // Build fails without an Authorizer
	}
}

func start(s *Server) *Server {
	s.t.Helper()
	s.front = &front{open: map[*call]struct{}{}, log: requestLog{begun: time.Now()}}
	s.users = &users{byToken: map[string]*auth.User{}}
	s.run()
	s.t.Cleanup(s.end)
	return s
}

// keptOpen is a store that stays open when its server closes it.
type keptOpen struct {
	*memstore.Store

	mu      sync.RWMutex // guards crashed; read-locked during a commit
	crashed bool
}

func (*keptOpen) Close() error { return nil }

// Commit implements storage.Backend. It fails after crash, so that no lost write is acknowledged.
func (k *keptOpen) Commit(ctx context.Context, ws ...storage.Write) (storage.Revision, error) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if k.crashed {
		return 0, storage.ErrClosed
	}
	return k.Store.Commit(ctx, ws...)
}

// crash waits for commits in flight, fails later ones, and returns a fork of the store.
func (k *keptOpen) crash() *memstore.Store {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.crashed = true
	return k.Store.Fork()
}

// build builds a server over a store, unless the configuration sets another. authn authenticates requests;
// nil: the configured authenticators and the users of As.
func (s *Server) build(store storage.Backend, authn auth.Authenticator) (*server.Builder, *server.Server) {
	s.t.Helper()
	b := &server.Builder{Names: names.Kubernetes, Authorizer: auth.AllowAll, Storage: store, Authenticators: []auth.Authenticator{s.users}}
	b.Register(builtin.Kinds()...)
	for _, c := range s.configure {
		c(b)
	}
	if authn == nil {
		authn = &callers{auth.Union(s.authenticators(b.Authenticators)...)}
	}
	b.Authenticators = []auth.Authenticator{authn}
	b.ServiceResolver = s.services.resolver(b.ServiceResolver)
	built, err := b.Build(context.Background())
	if err != nil {
		s.t.Fatalf("building the server: %v", err)
	}
	return b, built
}

// authenticators returns the configured authenticators with the users of As, which come first unless the
// configuration includes them.
func (s *Server) authenticators(configured []auth.Authenticator) []auth.Authenticator {
	all := configured
	if !slices.Contains(all, auth.Authenticator(s.users)) {
		all = slices.Concat([]auth.Authenticator{s.users}, configured)
	}
	if len(all) == 1 {
		return append(all, auth.AnonymousAccess) // the default of a Builder without authenticators
	}
	return all
}

// run builds and starts a server over the store.
func (s *Server) run() {
	s.t.Helper()
	s.kept = &keptOpen{Store: s.store}
	b, built := s.build(s.kept, nil)
	if b.Storage != storage.Backend(s.kept) {
		s.store = nil
	}
	s.Server, s.ran = built, make(chan struct{})
	ran := s.ran
	go func() {
		defer close(ran)
		if err := built.Run(context.Background()); err != nil {
			s.t.Errorf("running the controllers: %v", err)
		}
	}()
	select {
	case <-built.Running():
	case <-ran:
	}
	s.front.put(built, b.Authenticators[0])
}

// stop shuts the present server down and waits until it has.
func (s *Server) stop() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		s.t.Errorf("shutting down: %v", err)
	}
	<-s.ran
}

// end reports unmet faults, stops the server and closes everything when the test ends.
func (s *Server) end() {
	s.t.Helper()
	if requests := s.Requests(); requests != "" && s.t.Failed() {
		s.t.Logf("the last requests to the server:\n%s", requests)
	}
	s.reportUnmetFaults()
	s.mu.Lock()
	defer s.mu.Unlock()
	sockets := []*httptest.Server{s.plain, s.secure}
	for _, socket := range sockets {
		if socket != nil {
			socket.CloseClientConnections()
		}
	}
	s.stop()
	s.front.cutOff()
	for _, socket := range sockets {
		if socket != nil {
			socket.Close()
		}
	}
	if s.store != nil {
		if err := s.store.Close(); err != nil {
			s.t.Errorf("closing the store: %v", err)
		}
	}
}

// Fork starts another server with a copy of the objects, revisions and history of this server, in constant time.
// Changes of either server do not affect the other. Typical use: fill a server, and fork it for each subtest. The
// fork has the handlers of InstallWebhooks, but no users, faults and recorders.
func (s *Server) Fork(t testing.TB) *Server {
	t.Helper()
	s.needsStore(t, "forked")
	return start(&Server{t: t, store: s.store.Fork(), configure: s.configure, services: s.services.clone()})
}

func (s *Server) needsStore(t testing.TB, operation string) {
	t.Helper()
	if s.store == nil {
		t.Fatalf("a server with a configured Storage cannot be %s", operation)
	}
}

// Settle waits until the controllers, including Builder.Controllers, are idle: for example, namespaces are
// emptied and garbage is collected. It fails the test after a minute.
func (s *Server) Settle() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := s.Server.Settle(ctx); err != nil {
		s.t.Fatalf("waiting for the controllers: %v", err)
	}
}

// InstallCRDs creates the CustomResourceDefinitions in the files of a directory, such as the output of a code
// generator (see registry.CRDFiles), and waits until they are served. An error ends the test. If the test
// does not need the definitions as objects, it is simpler to register the kinds of registry.FromCRDDir.
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
			s.t.Fatalf("definition %s is not served: its names conflict with another resource", crd.Name())
		}
	}
}

// ServeHTTP implements http.Handler, for tests with their own listener.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.front.ServeHTTP(w, r) }
