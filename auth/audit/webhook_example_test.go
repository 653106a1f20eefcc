package audit_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/audit"
	"orch.io/controlplane/client/kubeconfig"
)

// A Webhook posts events to a remote server, many in one call.
func ExampleNewWebhook() {
	calls := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { calls <- r.Method + " " + r.URL.Path }))
	defer server.Close()
	config, err := kubeconfig.Parse([]byte(`clusters: [{name: log, cluster: {server: "`+server.URL+`/events"}}]`), "")
	if err != nil {
		fmt.Println(err)
		return
	}
	var hook *audit.Webhook
	if hook, err = audit.NewWebhook(config, names.Orch); err != nil {
		fmt.Println(err)
		return
	}
	hook.Wait = time.Millisecond
	policy, err := audit.ParsePolicy([]byte("apiVersion: audit.orch.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n"), names.Orch)
	if err != nil {
		fmt.Println(err)
		return
	}
	policy.OmitStages = []audit.Stage{audit.RequestReceived}
	log, err := audit.Open(audit.Config{Policy: policy, Sinks: []audit.Sink{hook}})
	if err != nil {
		fmt.Println(err)
		return
	}
	trail := log.Begin(httptest.NewRequest("GET", "/version", nil), "my-id", auth.Attributes{User: auth.NewAnonymous(), Verb: "get", Path: "/version"})
	trail.Complete(auth.Outcome{Code: 200})
	fmt.Println(<-calls)
	fmt.Println(log.Close(context.Background()))
	// Output:
	// POST /events
	// <nil>
}
