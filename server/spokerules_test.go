package server_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
)

type valve struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty"`
	Open            int32 `json:"open" schema:"max=100"`
	Status          struct {
		Seen int32 `json:"seen,omitempty"`
	} `json:"status,omitempty"`
}

type valveV1 struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty"`
	Percent         int32  `json:"percent" schema:"max=50"`
	Serial          string `json:"serial,omitempty" schema:"enum=a|b"`
	Status          struct {
		Seen int32 `json:"seen,omitempty" schema:"min=0"`
	} `json:"status,omitempty"`
}

// TestRulesOfASpoke: what is written in a version keeps the rules of that version,
// with its paths; what it shows of an object that another version made is let be.
func TestRulesOfASpoke(t *testing.T) {
	a := inProcess(t, servertest.New(t, func(b *server.Builder) {
		b.Register(registry.Of(registry.Definition[valve]{
			Group: "example.com", Version: "v2", Kind: "Valve", Scope: registry.Cluster, Status: true,
			Versions: []registry.VersionOf[valve]{registry.Spoke[valveV1, valve]{
				Version: "v1",
				ToHub: func(in *valveV1, out *valve) error {
					out.Open, out.Status.Seen = in.Percent, in.Status.Seen
					return nil
				},
				FromHub: func(in *valve, out *valveV1) error {
					out.Percent, out.Status.Seen = in.Open, in.Status.Seen
					return nil
				},
			}},
		}))
	}))
	const v1, v2 = "/apis/example.com/v1/valves", "/apis/example.com/v2/valves"
	faults := func(r answer) (fields []string) {
		for _, c := range at(r.body, "details", "causes").([]any) {
			fields = append(fields, text(c, "field"))
		}
		return fields
	}
	assert.Equal(t, []string{"percent", "serial"}, faults(a.must(422, "POST", v1, `{"metadata":{"name":"a"},"percent":60,"serial":"x"}`)))
	a.must(201, "POST", v1, `{"metadata":{"name":"a"},"percent":50,"serial":"a"}`)
	assert.Equal(t, []string{"percent"}, faults(a.must(422, "PATCH", v1+"/a", `{"percent":51}`)))
	a.must(200, "PATCH", v2+"/a", `{"open":70}`)
	a.must(200, "PATCH", v1+"/a", `{"metadata":{"labels":{"k":"v"}}}`)
	a.must(422, "PATCH", v1+"/a", `{"percent":71}`)
	assert.Equal(t, []string{"status.seen"}, faults(a.must(422, "PATCH", v1+"/a/status", `{"status":{"seen":-1}}`)))
	a.must(200, "PATCH", v1+"/a/status", `{"percent":99,"status":{"seen":1}}`)
	assert.EqualValues(t, 70, a.must(200, "GET", v2+"/a", nil).body["open"])
}
