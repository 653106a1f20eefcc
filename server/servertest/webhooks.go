package servertest

import (
	"cmp"
	"context"
	"io/fs"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/manifests"
	"orch.io/controlplane/server"
)

// InstallWebhooks creates the webhook configurations in the files of a directory, such as
// those that a code generator wrote, and lets handler answer what their services are
// asked: no socket, no certificate. It also answers for the services of the conversion
// webhooks that definitions name, those in the files, which InstallCRDs creates, and those
// of the server that nobody answers for. Other documents in the files are passed over.
// They are in effect for the next write. Faults end the test.
func (s *Server) InstallWebhooks(files fs.FS, handler http.Handler) {
	s.t.Helper()
	list, err := manifests.Read(files, "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
	if err != nil {
		s.t.Fatalf("reading webhook configurations: %v", err)
	}
	definitions, err := manifests.Read(files, "CustomResourceDefinition")
	if err != nil {
		s.t.Fatalf("reading definitions: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	installed := s.definitions(ctx)
	if convert(definitions, s.services.put, handler)+convert(installed, s.services.offer, handler)+len(list) == 0 {
		s.t.Fatal("the files hold no webhook configuration")
	}
	for _, configuration := range list {
		group, _, _ := strings.Cut(configuration.APIVersion(), "/")
		r := meta.GroupResource{Group: group, Resource: strings.ToLower(configuration.Kind()) + "s"}
		made, err := s.Objects().Create(ctx, r, configuration)
		if err != nil {
			s.t.Fatalf("creating webhook configuration %s: %v", configuration.Name(), err)
		}
		for _, hook := range made.Objects("webhooks") {
			if hook.Map("clientConfig", "service") == nil {
				s.t.Fatalf("the webhook %s is behind no service", hook.String("name"))
			}
			s.services.put(server.Service{
				Namespace: hook.String("clientConfig", "service", "namespace"), Name: hook.String("clientConfig", "service", "name"),
				Port: int32(hook.Int("clientConfig", "service", "port")),
			}, handler)
		}
	}
}

// definitions returns those of the server.
func (s *Server) definitions(ctx context.Context) []*meta.Object {
	for _, t := range s.Objects().Types() {
		if t.Kind == "CustomResourceDefinition" {
			list, err := s.Objects().List(ctx, t.GroupResource(), "")
			if err != nil {
				s.t.Fatalf("listing definitions: %v", err)
			}
			return list
		}
	}
	return nil
}

// convert gives the handler the services of the conversion webhooks of definitions, and
// returns how many there are.
func convert(definitions []*meta.Object, give func(server.Service, http.Handler), handler http.Handler) (n int) {
	for _, d := range definitions {
		service := meta.NewObject(d.Map("spec", "conversion", "webhook", "clientConfig", "service"))
		if service.String("name") == "" {
			continue
		}
		give(server.Service{
			Namespace: service.String("namespace"), Name: service.String("name"), Port: int32(cmp.Or(service.Int("port"), 443)),
		}, handler)
		n++
	}
	return n
}

// services are those that handlers of the test answer for.
type services struct {
	mu sync.RWMutex // guards of
	of map[server.Service]http.Handler
}

func (s *services) put(of server.Service, handler http.Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = map[server.Service]http.Handler{}
	}
	s.of[of] = handler
}

// offer is put unless another handler answers.
func (s *services) offer(of server.Service, handler http.Handler) {
	s.mu.RLock()
	taken := s.of[of] != nil
	s.mu.RUnlock()
	if !taken {
		s.put(of, handler)
	}
}

func (s *services) clone() *services {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return &services{of: maps.Clone(s.of)}
}

// or is what finds services: those here first.
func (s *services) or(next server.ServiceResolver) server.ServiceResolver {
	return func(ctx context.Context, of server.Service) (server.Endpoint, error) {
		s.mu.RLock()
		handler := s.of[of]
		s.mu.RUnlock()
		if handler != nil || next == nil {
			return server.Endpoint{Handler: handler}, nil
		}
		return next(ctx, of)
	}
}
