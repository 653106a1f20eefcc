package server_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
)

// remote connects to any address. It trusts every user who may write lamps.
type remote struct{ http.RoundTripper }

func (c remote) Connect(_ context.Context, to *registry.Target) (*url.URL, http.RoundTripper, error) {
	return &url.URL{Scheme: to.URL.Scheme, Host: to.URL.Host}, c, nil
}

var _ server.Connector = remote{}

// View has the parameters of a request to the page of a lamp.
type View struct {
	meta.TypeMeta `json:",inline"`
	Path          string `json:"path,omitempty"`
}

// A subresource proxies requests to the device that an object represents.
func ExampleConnector() {
	lamp := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "the lamp shows", r.URL, r.Header.Get("Authorization"))
	}))
	defer lamp.Close()
	page := registry.Connection{Style: registry.Proxies, Target: func(ctx context.Context, call *registry.Call) (*registry.Target, error) {
		at, err := url.Parse(lamp.URL) // a real kind would read it from call.Object
		if err != nil {
			return nil, err
		}
		return &registry.Target{URL: url.URL{Scheme: at.Scheme, Host: at.Host, Path: call.Object.String("path")}, CallerChosen: true}, nil
	}}
	ctx := context.Background()
	carrier := &http.Transport{}
	defer carrier.CloseIdleConnections()
	b := &server.Builder{Authorizer: auth.AllowAll, Connector: remote{carrier}}
	b.Register(lamps())
	b.Kind("example.com", "Lamp").Subresources = []registry.Subresource{
		{Name: "proxy", Body: registry.Of(registry.Definition[View]{Version: "v1"}), Connect: &page},
	}
	s, err := b.Build(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Shutdown(ctx)
	r, _ := http.NewRequest("GET", "http://in-process/apis/example.com/v1/lamps/hall/proxy/colours?warm=1", nil)
	r.Header.Set("Authorization", "Basic secret")
	res, err := (&http.Client{Transport: s.Transport()}).Do(r)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(res.Body)
	fmt.Print(string(text))
	// Output: the lamp shows /colours?warm=1
}
