package sqlstore_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"orch.io/controlplane/auth"
	"orch.io/controlplane/examples/sqlstore"
	"orch.io/controlplane/registry/builtin"
	"orch.io/controlplane/server"
)

// A server keeps its objects in an SQLite file, and finds them there after a restart.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "sqlstore")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	const maps = "http://in-process/api/v1/namespaces/default/configmaps"
	for _, use := range []func(*http.Client) (*http.Response, error){
		func(c *http.Client) (*http.Response, error) {
			return c.Post(maps, "application/json", strings.NewReader(`{"metadata":{"name":"hello"},"data":{"greeting":"world"}}`))
		},
		func(c *http.Client) (*http.Response, error) { return c.Get(maps + "/hello") },
	} {
		store, err := sqlstore.Open(ctx, sqlstore.Options{File: filepath.Join(dir, "data.db")})
		if err != nil {
			fmt.Println(err)
			return
		}
		b := &server.Builder{Storage: store, Authorizer: auth.AllowAll}
		b.Register(builtin.Kinds()...)
		s, err := b.Build(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		answer, err := use(&http.Client{Transport: s.Transport()})
		if err != nil {
			fmt.Println(err)
			return
		}
		body, err := io.ReadAll(answer.Body)
		fmt.Println(answer.StatusCode, strings.Contains(string(body), `"data":{"greeting":"world"}`), err)
		answer.Body.Close()
		if err := s.Shutdown(ctx); err != nil { // also closes the store
			fmt.Println(err)
		}
	}
	// Output:
	// 201 true <nil>
	// 200 true <nil>
}
