package nodeagent_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/nodeagent"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The server gets the log of a pod from the agent of its node.
func ExampleNew() {
	agent := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "the agent was asked for", r.URL)
	}))
	defer agent.Close()
	trusted := x509.NewCertPool()
	trusted.AddCert(agent.Certificate())

	b := &server.Builder{Authorizer: auth.AllowAll, Connector: nodeagent.New(nodeagent.Config{
		TLS: &tls.Config{RootCAs: trusted}, // also set Certificates: agents authenticate the server
	})}
	b.Register(builtin.Kinds()...)
	s, err := b.Build(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Shutdown(context.Background())

	call := func(method, path, body string) {
		r, _ := http.NewRequest(method, "http://server"+path, strings.NewReader(body))
		r.Header.Set("Content-Type", map[string]string{"POST": "application/json", "PATCH": "application/merge-patch+json"}[method])
		res, err := s.Transport().RoundTrip(r)
		if err != nil {
			fmt.Println(err)
			return
		}
		defer res.Body.Close()
		if text, _ := io.ReadAll(res.Body); method == "GET" || res.StatusCode > 201 {
			fmt.Print(string(text))
		}
	}
	port := agent.Listener.Addr().String()[len("127.0.0.1:"):]
	call("POST", "/api/v1/nodes", `{"metadata":{"name":"here"}}`)
	call("PATCH", "/api/v1/nodes/here/status", `{"status":{"addresses":[{"type":"InternalIP","address":"127.0.0.1"}],"daemonEndpoints":{"kubeletEndpoint":{"Port":`+port+`}}}}`)
	call("POST", "/api/v1/namespaces/default/pods", `{"metadata":{"name":"web"},"spec":{"nodeName":"here","containers":[{"name":"main","image":"web"}]}}`)
	call("GET", "/api/v1/namespaces/default/pods/web/log?tailLines=3", "")
	// Output: the agent was asked for /containerLogs/default/web/main?tailLines=3
}

// The status of a pod can contain any address. The Connector refuses addresses that only the server can
// reach.
func ExampleConnector_Connect() {
	c := nodeagent.New(nodeagent.Config{})
	where, carrier, err := c.Connect(context.Background(), &registry.Target{
		URL: url.URL{Scheme: "http", Host: "127.0.0.1:80"}, CallerChosen: true,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	r, _ := http.NewRequest("GET", where.String(), nil)
	_, err = carrier.RoundTrip(r)
	fmt.Println(err)
	// Output: dial tcp 127.0.0.1:80: address not allowed
}

// A node has several addresses. Choose the types that the server can reach.
func ExampleAddressTypes() {
	fmt.Println(nodeagent.AddressTypes())
	node := meta.NewObject(map[string]any{"status": map[string]any{"addresses": []any{
		map[string]any{"type": "Hostname", "address": "node-1"},
		map[string]any{"type": "InternalIP", "address": "192.0.2.1"},
	}}})
	c := nodeagent.New(nodeagent.Config{AddressTypes: []string{"InternalIP", "ExternalIP"}})
	where, _, err := c.Connect(context.Background(), &registry.Target{Node: node})
	fmt.Println(where, err)
	// Output:
	// [Hostname InternalDNS InternalIP ExternalDNS ExternalIP]
	// https://192.0.2.1:10250 <nil>
}
