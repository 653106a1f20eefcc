// Command auth is a server with its own access control: callers send an API key in a header, tenants
// have all rights in the namespace of their name, and roles (RBAC) grant other rights.
//
//	go run ./examples/auth
package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/client"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/access"
)

const header = "X-Api-Key"

// keys maps the hashes of API keys to users. The map reveals no key, and because lookups use hashes,
// their timing reveals nothing about a key.
type keys map[[sha256.Size]byte]auth.User

// Authenticate implements auth.Authenticator. A request without a key is left to other authenticators;
// a wrong key is answered with 401.
func (k keys) Authenticate(r *http.Request) (*auth.User, error) {
	sent := r.Header.Values(header)
	if len(sent) == 0 {
		return nil, nil
	}
	user, ok := k[sha256.Sum256([]byte(sent[0]))]
	if !ok || len(sent) > 1 {
		return nil, errors.New("unknown API key")
	}
	user.Groups = slices.Clone(user.Groups)
	return &user, nil
}

// Strip removes the key from a request that is forwarded to another server, such as a pod.
func (keys) Strip(h http.Header) { h.Del(header) }

// tenants allows everything in the namespace with the name of the caller, and has no opinion on other
// requests.
func tenants(_ context.Context, a auth.Attributes) (auth.Decision, string, error) {
	if a.Namespace != "" && a.Namespace == a.User.Name && slices.Contains(a.User.Groups, "tenants") {
		return auth.Allow, "it is the tenant's own", nil
	}
	return auth.NoOpinion, "", nil
}

// Note is an object of a tenant.
type Note struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Text            string `json:"text" schema:"required,maxLength=1000"`
}

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "auth:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	note := registry.Of(registry.Definition[Note]{Group: "example.com", Version: "v1"})
	b := &server.Builder{Names: names.Kubernetes, OnStart: []func(context.Context, client.Client) error{prepare}}
	b.Register(builtin.Kinds()...)
	b.Register(note)
	err := access.Setup(b, access.Config{
		Authenticators: []auth.Authenticator{keys{
			sha256.Sum256([]byte("key-of-ann")): {Name: "ann", Groups: []string{"tenants"}},
			sha256.Sum256([]byte("key-of-bob")): {Name: "bob", Groups: []string{"tenants"}},
			sha256.Sum256([]byte("key-of-eve")): {Name: "eve", Groups: []string{"auditors"}},
		}},
		NoAnonymous: true,
		Authorizers: func(own access.Builtin) []auth.Authorizer {
			return []auth.Authorizer{auth.AuthorizerFunc(tenants), own.RBAC}
		},
	})
	if err != nil {
		return err
	}
	s, err := b.Build(ctx)
	if err != nil {
		return err
	}
	return errors.Join(tour(ctx, note, s.Transport(), out), s.Shutdown(ctx))
}

// withKey is a transport that adds a key to every request.
type withKey struct {
	key  string
	base http.RoundTripper
}

func (w withKey) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(header, w.key)
	return w.base.RoundTrip(r)
}

func tour(ctx context.Context, note *registry.Kind, transport http.RoundTripper, out io.Writer) error {
	notes := func(key string) *client.Objects[Note] {
		return client.Of[Note](client.Conn{Transport: withKey{key, transport}, Names: names.Kubernetes}, note)
	}
	todo := &Note{ObjectMeta: meta.ObjectMeta{Name: "todo"}, Text: "buy milk"}
	_, err := notes("key-of-ann").In("ann").Create(ctx, todo)
	fmt.Fprintln(out, "ann writes her own:", err)
	_, err = notes("key-of-bob").In("ann").Get(ctx, "todo")
	fmt.Fprintln(out, "bob reads it:", err)
	page, err := notes("key-of-eve").List(ctx, client.ListOptions{})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "eve reads all:", len(page.Items))
	err = notes("key-of-eve").In("ann").Delete(ctx, "todo", registry.DeleteOptions{})
	fmt.Fprintln(out, "eve deletes it:", err)
	_, err = notes("guessed").In("ann").Get(ctx, "todo")
	fmt.Fprintln(out, "anonymous reads it:", err)
	return nil
}
