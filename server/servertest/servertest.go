// Package servertest gives a test an API server of its own.
//
//	s := servertest.New(t, func(b *server.Builder) { b.Register(widgets) })
//	client := kubernetes.NewForConfigOrDie(&rest.Config{Host: s.Host(), Transport: s.Transport(), QPS: -1})
//
// A server lives in the test's process and in memory, needs no socket, starts
// in milliseconds, runs its controllers, and cleans up after itself. Any
// number of them run side by side. It works inside a testing/synctest bubble, which
// is also its clock: hours of retention and expiry pass at once.
//
// The kinds of a cluster and the admission plugins that run by default are there. What a
// test adds is a line each: Server.InstallCRDs, InstallWebhooks, Load for fixtures, Conn and As for
// users, RBAC for their rights, Fail for what goes wrong, Crash and Restart, and Record for
// what was asked for. When a test fails, its output ends with the requests that
// the server saw last.
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

// Server is a server under a test. Clients that a test makes from it (Conn, Transport, Client,
// URL, and those of As) pass its faults and recorders and work on after a Restart. Its own access,
// which does neither, is the embedded server with Objects, and Load and InstallCRDs, which use it.
type Server struct {
	*server.Server // another one after a Restart

	t         testing.TB
	front     *front
	users     *users
	store     *memstore.Store // nil: the Builder has a Storage of its own
	kept      *keptOpen       // store, as Server has it
	configure []func(*server.Builder)
	services  *services
	ran       chan struct{} // closed when the controllers of Server have ended

	mu     sync.Mutex       // guards the rest
	plain  *httptest.Server // nil: not asked for
	secure *httptest.Server
}

// New builds and runs a server that ends with the test. Without configuration
// it has the built-in kinds, the Kubernetes names, a memory store, and lets
// everybody do everything; configure may change or add to that (Builder.Kind), but a
// server with a Storage given there cannot be forked or crash. Faults end the test.
func New(t testing.TB, configure ...func(*server.Builder)) *Server {
	t.Helper()
	return start(&Server{t: t, store: memstore.New(memstore.Options{}), configure: configure, services: &services{}})
}

// RBAC is a configuration of New: what users may do is what roles say, as package access
// sets it up, with service accounts and their tokens. Who comes without a user is anonymous
// and may do next to nothing. The tokens of service accounts end with a Restart, and
// forks do not take them.
func RBAC(b *server.Builder) {
	c := access.Config{Methods: b.Authenticators} // the users of As among them, so that token reviews know them
	b.Authenticators, b.Authorizer = nil, nil
	if err := access.Setup(b, c); err != nil {
		b.Authorizer = nil // which fails Build
	}
}

func start(s *Server) *Server {
	s.t.Helper()
	s.front = &front{open: map[*call]struct{}{}, log: requestLog{begun: time.Now()}}
	s.users = &users{of: map[string]*auth.User{}}
	s.run()
	s.t.Cleanup(s.end)
	return s
}

// keptOpen is a store that outlives its server.
type keptOpen struct {
	*memstore.Store

	mu      sync.RWMutex // guards crashed; held for reading while a commit is made
	crashed bool
}

func (*keptOpen) Close() error { return nil }

// Commit implements storage.Backend. Nothing is acknowledged that a crash loses.
func (k *keptOpen) Commit(ctx context.Context, ws ...storage.Write) (storage.Revision, error) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if k.crashed {
		return 0, storage.ErrClosed
	}
	return k.Store.Commit(ctx, ws...)
}

// crash returns a store with all that was committed, which is the last of it.
func (k *keptOpen) crash() *memstore.Store {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.crashed = true
	return k.Store.Fork()
}

// build makes a server over a store, which the configuration may replace. who finds out
// who calls; nil: what the configuration says, and the users of As.
func (s *Server) build(store storage.Backend, who auth.Authenticator) (*server.Builder, *server.Server) {
	s.t.Helper()
	b := &server.Builder{Names: names.Kubernetes, Authorizer: auth.AllowAll, Storage: store, Authenticators: []auth.Authenticator{s.users}}
	b.Register(builtin.Kinds()...)
	for _, c := range s.configure {
		c(b)
	}
	if who == nil {
		who = &callers{auth.Union(s.authenticators(b.Authenticators)...)}
	}
	b.Authenticators = []auth.Authenticator{who}
	b.ServiceResolver = s.services.or(b.ServiceResolver)
	built, err := b.Build(context.Background())
	if err != nil {
		s.t.Fatalf("building the server: %v", err)
	}
	return b, built
}

// authenticators are those of a configuration, with the users of As: first, unless they have
// another place there.
func (s *Server) authenticators(configured []auth.Authenticator) []auth.Authenticator {
	all := configured
	if !slices.Contains(all, auth.Authenticator(s.users)) {
		all = slices.Concat([]auth.Authenticator{s.users}, configured)
	}
	if len(all) == 1 {
		return append(all, auth.AnonymousAccess) // as in a Builder without any
	}
	return all
}

// run starts a server over the store.
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

// stop ends the server that runs.
func (s *Server) stop() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		s.t.Errorf("shutting down: %v", err)
	}
	<-s.ran
}

// end ends everything with the test.
func (s *Server) end() {
	s.t.Helper()
	if requests := s.Requests(); requests != "" && s.t.Failed() {
		s.t.Logf("the last requests to the server:\n%s", requests)
	}
	s.unmet()
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

// Fork starts another server that begins with this one's objects, revisions and
// history; from then on they know nothing of each other. It costs the same
// however many objects there are to copy. Typical use: fill one server, fork it
// for each sub-test. What InstallWebhooks was given answers for the fork, too; users,
// faults and recorders are this one's alone.
func (s *Server) Fork(t testing.TB) *Server {
	t.Helper()
	s.needsStore(t, "forked")
	return start(&Server{t: t, store: s.store.Fork(), configure: s.configure, services: s.services.clone()})
}

func (s *Server) needsStore(t testing.TB, what string) {
	t.Helper()
	if s.store == nil {
		t.Fatalf("a server with a Storage of its own cannot be %s", what)
	}
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

// ServeHTTP implements http.Handler, for a listener of the test's own.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.front.ServeHTTP(w, r) }
