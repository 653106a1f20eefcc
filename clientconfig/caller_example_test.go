package clientconfig_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	"orch.io/controlplane/clientconfig"
)

// A plugin that asks a server elsewhere, which a file names.
func ExampleCaller() {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprint(w, `{"allowed":true}`)
	}))
	defer elsewhere.Close()
	dir, err := os.MkdirTemp("", "clientconfig")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	for _, token := range []string{"secret", "guessed"} {
		path := filepath.Join(dir, token+".yaml")
		file := fmt.Sprintf("clusters: [{name: hook, cluster: {server: %q}}]\nusers: [{name: me, user: {token: %s}}]\n", elsewhere.URL, token)
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			fmt.Println(err)
			return
		}
		config, err := clientconfig.Load(path)
		if err != nil {
			fmt.Println(err)
			return
		}
		remote, err := config.Current()
		if err != nil {
			fmt.Println(err)
			return
		}
		var caller *clientconfig.Caller = remote.Caller()
		answer, err := caller.Post(context.Background(), []byte(`{"what":"lamps"}`))
		var refused *clientconfig.CodeError
		if errors.As(err, &refused) {
			fmt.Println("refused:", refused.Code)
		} else {
			fmt.Println(string(answer), err)
		}
		caller.Close()
	}
	// Output:
	// {"allowed":true} <nil>
	// refused: 401
}
