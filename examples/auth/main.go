// Command auth is a server with access control of its own: callers show an API key in a
// header, tenants do what they like in the namespace of their name, and roles (RBAC) say
// what else somebody may do.
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

// keys are the callers by the hashes of their keys: whoever reads them learns no key, and
// how long a look-up takes tells nothing of one.
type keys map[[sha256.Size]byte]auth.User

// Authenticate implements auth.Authenticator: no key is for others to judge, a wrong one
// is 401.
func (k keys) Authenticate(r *http.Request) (*auth.User, error) {
	sent := r.Header.Values(header)
	if len(sent) == 0 {
		return nil, nil
	}
	user, ok := k[sha256.Sum256([]byte(sent[0]))]
	if !ok || len(sent) > 1 {
		return nil, errors.New("the API key is not known")
	}
	user.Groups = slices.Clone(user.Groups)
	return &user, nil
}

// Strip takes the key out of a request that goes on to another server, such as a pod.
func (keys) Strip(h http.Header) { h.Del(header) }

// tenants allows everything in the namespace of the caller's name, and leaves the rest to
// others.
func tenants(_ context.Context, a auth.Attributes) (auth.Decision, string, error) {
	if a.Namespace != "" && a.Namespace == a.User.Name && slices.Contains(a.User.Groups, "tenants") {
		return auth.Allow, "it is the tenant's own", nil
	}
	return auth.NoOpinion, "", nil
}

// Note is what tenants keep.
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

// withKey sends a key with every request: what a client elsewhere has around its transport.
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
	fmt.Fprintln(out, "anybody reads it:", err)
	return nil
}
