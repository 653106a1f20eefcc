package server_test

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/certificates"
	"orch.io/controlplane/client"
	"orch.io/controlplane/registry/builtin/storagemigration"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/access"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/server/serving"
)

// TestRunControllersEnvtest checks that with the set envtest definitions are served and the
// program's own controllers run, but deleted namespaces are not emptied and no garbage is
// collected.
func TestRunControllersEnvtest(t *testing.T) {
	for _, choice := range []string{"envtest", "envtest garbagecollector", "* -namespace", "* -test"} {
		t.Run(choice, func(t *testing.T) {
			ran := make(chan string, 100)
			own := configMapController(func(name string) (time.Duration, error) {
				ran <- name
				return 0, nil
			})
			s := servertest.New(t, own, func(b *server.Builder) { b.RunControllers = strings.Fields(choice) })
			a := apitest.InProcess(t, s)
			a.Must(201, "POST", "/api/v1/namespaces", `{"metadata":{"name":"going"}}`)
			a.Must(201, "POST", "/api/v1/namespaces/going/configmaps", apitest.NewConfigMap("left"))
			owner := a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("owner")).Body
			owned := apitest.NewConfigMap("owned")
			owned["metadata"].(map[string]any)["ownerReferences"] = []any{map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": apitest.NestedString(owner, "metadata", "uid"),
			}}
			a.Must(201, "POST", apitest.ConfigMapsPath, owned)
			a.Must(200, "DELETE", apitest.ConfigMapsPath+"/owner", nil)
			a.Must(200, "DELETE", "/api/v1/namespaces/going", nil)
			s.Settle()

			code := func(path string) int { return a.Do("GET", path, nil).Code }
			gone := map[bool]int{true: 404, false: 200}
			assert.Equal(t, gone[!strings.HasPrefix(choice, "envtest") || strings.Contains(choice, "garbage")], code(apitest.ConfigMapsPath+"/owned"))
			assert.Equal(t, gone[choice == "* -test"], code("/api/v1/namespaces/going"))
			assert.Equal(t, gone[choice == "* -test"], code("/api/v1/namespaces/going/configmaps/left"))
			assert.Equal(t, choice != "* -test", len(ran) > 0, "the program's own controller")
		})
	}
}

// addAllControllers configures a server so that it has all built-in controllers.
func addAllControllers(t *testing.T, b *server.Builder) {
	b.Register(storagemigration.Kinds()...)
	ca, err := serving.NewAuthority("test")
	require.NoError(t, err)
	key, err := ca.KeyPEM()
	require.NoError(t, err)
	signer, err := certificates.NewAuthority(ca.PEM(), key)
	require.NoError(t, err)
	b.Authorizer = nil
	require.NoError(t, access.Setup(b, access.Config{
		BootstrapTokens: true, RootCA: ca.PEM(), Signer: certificates.Signer{Authority: signer},
		Publish: access.Publish{
			Authentication: access.Authentication{ClientCAs: ca.PEM()}, URL: "https://192.0.2.1:6443",
			Address: netip.MustParseAddr("10.0.0.1"), Port: 6443, Endpoint: netip.MustParseAddr("192.0.2.1"),
		},
	}))
}

// TestControllerNames checks that each name belongs to a controller and each built-in controller
// has a name.
func TestControllerNames(t *testing.T) {
	known := server.ControllerNames()
	servertest.New(t, func(b *server.Builder) {
		addAllControllers(t, b)
		b.RunControllers = known // Build fails if a name has no controller
		for _, c := range b.Controllers {
			assert.Contains(t, known, c.Name)
		}
	})
	s := servertest.New(t, func(b *server.Builder) {
		addAllControllers(t, b)
		for _, name := range known {
			b.RunControllers = append(b.RunControllers, "-"+name)
		}
	})
	health := string(apitest.InProcess(t, s).Must(200, "GET", "/livez?verbose", nil).Raw)
	assert.Contains(t, health, "poststarthook/start-system-namespaces-controller ok")
	for _, word := range strings.Fields(health) {
		name := strings.TrimPrefix(word, "[+]poststarthook/")
		assert.NotContains(t, known, name)
	}
}

// TestRunControllersWithUnknownNameFails checks that Build fails if RunControllers has a name of no
// controller, or selects a controller whose kinds the server lacks.
func TestRunControllersWithUnknownNameFails(t *testing.T) {
	own := client.Controller{Name: "own",
		MapEvent:  func(client.Event) []string { return nil },
		Reconcile: func(context.Context, client.Client, string) (time.Duration, error) { return 0, nil }}
	for words, want := range map[string]string{
		"nosuch":             `there is no controller "nosuch"`,
		"-nosuch":            `there is no controller "nosuch"`,
		"-envtest":           `there is no controller "envtest"`,
		"*,pvc-protection":   `controller "pvc-protection" cannot run: the server lacks the kinds or parts that it needs`,
		"*,-pvc-protection":  "",
		"envtest,own":        "",
		"namespace,-own":     "",
		"*,-namespace,-own,": `there is no controller ""`,
	} {
		b := &server.Builder{Authorizer: auth.AllowAll, Controllers: []client.Controller{own}, RunControllers: strings.Split(words, ",")}
		s, err := b.Build(t.Context())
		if want != "" {
			assert.ErrorContains(t, err, want, words)
			continue
		}
		if assert.NoError(t, err, words) {
			require.NoError(t, s.Shutdown(t.Context()))
		}
	}
}
