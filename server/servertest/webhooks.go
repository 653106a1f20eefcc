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

// InstallWebhooks creates the webhook configurations in the files of a directory, such as the output of a code
// generator, and calls handler for requests to the services of these webhooks, without a socket or
// certificate. It also calls handler for the services of conversion webhooks: of the definitions in the
// files, which InstallCRDs creates, and of the definitions on the server whose service has no handler yet.
// Other documents in the files are ignored. The configurations apply to the next write. An error ends the
// test.
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
	if convert(definitions, s.services.put, handler)+convert(installed, s.services.putIfAbsent, handler)+len(list) == 0 {
		s.t.Fatal("the files contain no webhook configuration")
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
				s.t.Fatalf("the webhook %s has no service in its clientConfig", hook.String("name"))
			}
			s.services.put(server.Service{
				Namespace: hook.String("clientConfig", "service", "namespace"), Name: hook.String("clientConfig", "service", "name"),
				Port: int32(hook.Int("clientConfig", "service", "port")),
			}, handler)
		}
	}
}

// definitions returns the definitions on the server.
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

// convert calls register with the handler for the service of each conversion webhook in the definitions, and
// returns their number.
func convert(definitions []*meta.Object, register func(server.Service, http.Handler), handler http.Handler) (n int) {
	for _, d := range definitions {
		service := meta.NewObject(d.Map("spec", "conversion", "webhook", "clientConfig", "service"))
		if service.String("name") == "" {
			continue
		}
		register(server.Service{
			Namespace: service.String("namespace"), Name: service.String("name"), Port: int32(cmp.Or(service.Int("port"), 443)),
		}, handler)
		n++
	}
	return n
}

// services maps services to the handlers of the test.
type services struct {
	mu       sync.RWMutex // guards handlers
	handlers map[server.Service]http.Handler
}

func (s *services) put(of server.Service, handler http.Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.handlers == nil {
		s.handlers = map[server.Service]http.Handler{}
	}
	s.handlers[of] = handler
}

// putIfAbsent is like put, but keeps an existing handler of the service.
func (s *services) putIfAbsent(of server.Service, handler http.Handler) {
	s.mu.RLock()
	taken := s.handlers[of] != nil
	s.mu.RUnlock()
	if !taken {
		s.put(of, handler)
	}
}

func (s *services) clone() *services {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return &services{handlers: maps.Clone(s.handlers)}
}

// resolver returns a resolver for these services. It resolves other services by next.
func (s *services) resolver(next server.ServiceResolver) server.ServiceResolver {
	return func(ctx context.Context, of server.Service) (server.Endpoint, error) {
		s.mu.RLock()
		handler := s.handlers[of]
		s.mu.RUnlock()
		if handler != nil || next == nil {
			return server.Endpoint{Handler: handler}, nil
		}
		return next(ctx, of)
	}
}
