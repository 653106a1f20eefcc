package plugins_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/admission/plugins"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
)

// noNodes is the connector of a cluster without nodes.
type noNodes struct{}

func (noNodes) Connect(context.Context, *registry.Target) (*url.URL, http.RoundTripper, error) {
	return nil, nil, errors.New("there are no nodes")
}

// TestDenyExec checks that exec into privileged pods and pods in host namespaces is refused if the plugins
// are enabled.
func TestDenyExec(t *testing.T) {
	const privileged = "403 forbidden: cannot exec into or attach to a privileged container"
	const passes = "400 pod x does not have a host assigned"
	pods := []step{}
	for name, spec := range map[string]string{
		"x": plain, "network": onNode, "pid": `{hostPID: true, ` + plain[1:], "ipc": `{hostIPC: true, ` + plain[1:],
		"first": `{initContainers: [{name: i, image: x, securityContext: {privileged: true}}], ` + plain[1:],
	} {
		pods = append(pods, step{do: "POST pods", body: named(name, spec), want: "201"})
	}
	late := step{do: "PATCH pods/x/ephemeralcontainers", body: `{spec: {ephemeralContainers: [{name: e, image: x, securityContext: {privileged: true}}]}}`, want: "200"}
	for plugin, other := range map[string]func(word string) string{
		"DenyEscalatingExec": func(word string) string {
			return "403 forbidden: cannot exec into or attach to a container using host " + word
		},
		"DenyExecOnPrivileged": func(word string) string { return "400 pod " + word + " does not have a host assigned" },
	} {
		var log bytes.Buffer
		o := admission.Options{Enable: []string{plugin}}
		_, err := admission.New(plugins.Table(), o, admission.PluginContext{Log: slog.New(slog.NewTextHandler(&log, nil))})
		require.NoError(t, err)
		s := newServer(t, o, func(b *server.Builder) { b.Connector = noNodes{} })
		assert.Contains(t, log.String(), "the admission plugin "+plugin)
		runSteps(t, s, append(pods,
			step{do: "POST pods/x/exec?command=ls", want: passes},
			step{do: "POST pods/x/attach", want: passes},
			step{do: "POST pods/first/exec?command=ls", want: privileged},
			step{do: "GET pods/first/attach", want: privileged},
			step{do: "POST pods/pid/exec?command=ls", want: other("pid")},
			step{do: "POST pods/ipc/attach", want: other("ipc")},
			step{do: "POST pods/network/attach", want: other("network")},
			step{do: "POST pods/none/exec?command=ls", want: `404 pods "none" not found`},
			late,
			step{do: "POST pods/x/exec?command=ls", want: privileged},
		)...)
	}
}
