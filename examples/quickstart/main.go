// Command quickstart is a server with a kind of its own and a client of it, in
// one process and no more than a screen each: it makes a Widget, sees it in a watch, changes
// it, and sees that too.
//
//	go run ./examples/quickstart
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
)

// Widget is the kind: a plain struct, no generated code.
type Widget struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Spec            struct {
		Color string `json:"color" schema:"default=green,enum=green|red"`
		Size  int    `json:"size,omitempty" schema:"min=1"`
	} `json:"spec"`
}

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	b := &server.Builder{Authorizer: auth.AllowAll}
	b.Register(registry.Of(registry.Definition[Widget]{Group: "example.com", Version: "v1", Scope: registry.Cluster}))
	s, err := b.Build(ctx)
	if err != nil {
		return err
	}
	return errors.Join(tour(ctx, &http.Client{Transport: s.Transport()}, out), s.Shutdown(ctx))
}

const widgets = "http://in-process/apis/example.com/v1/widgets"

// tour is what any HTTP client can do; to serve others, mount s on a listener.
func tour(ctx context.Context, c *http.Client, out io.Writer) error {
	watch, err := call(ctx, c, "GET", widgets+"?watch=true", "", "")
	if err != nil {
		return err
	}
	defer watch.Close()
	for _, step := range [][4]string{
		{"POST", widgets, "application/json", `{"metadata":{"name":"cog"},"spec":{"size":3}}`},
		{"PATCH", widgets + "/cog", "application/merge-patch+json", `{"spec":{"color":"red"}}`},
		{"PATCH", widgets + "/cog", "application/merge-patch+json", `{"spec":{"color":"blue"}}`},
		{"DELETE", widgets + "/cog", "", ""},
	} {
		answer, err := call(ctx, c, step[0], step[1], step[2], step[3])
		if err != nil {
			fmt.Fprintln(out, "refused:", err)
			continue
		}
		_ = answer.Close()
	}
	events := bufio.NewScanner(watch)
	for range 3 {
		var e struct {
			Type   string
			Object Widget
		}
		if !events.Scan() {
			return errors.Join(io.ErrUnexpectedEOF, events.Err())
		}
		if err := json.Unmarshal(events.Bytes(), &e); err != nil {
			return err
		}
		fmt.Fprintf(out, "%s %s: %s, size %d\n", e.Type, e.Object.Name, e.Object.Spec.Color, e.Object.Spec.Size)
	}
	return nil
}

// call makes a request and returns the body of its answer; a refusal is an error.
func call(ctx context.Context, c *http.Client, method, url, media, body string) (io.ReadCloser, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", media)
	res, err := c.Do(r)
	if err != nil {
		return nil, err
	}
	if res.StatusCode < 300 {
		return res.Body, nil
	}
	defer res.Body.Close()
	var status struct{ Message string }
	if err := json.NewDecoder(res.Body).Decode(&status); err != nil {
		return nil, err
	}
	return nil, errors.New(status.Message)
}
