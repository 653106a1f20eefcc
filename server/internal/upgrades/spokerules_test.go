package upgrades_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
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

// TestRulesOfASpoke: a write in a version must satisfy the rules of that version, with its paths. The
// rules do not apply to unchanged values of an object that was written in another version.
func TestRulesOfASpoke(t *testing.T) {
	t.Parallel()
	a := apitest.InProcess(t, servertest.New(t, func(b *server.Builder) {
		b.Register(registry.Of(registry.Definition[valve]{
			Group: "example.com", Version: "v2", Kind: "Valve", Scope: registry.Cluster, Status: true,
			Versions: []registry.VersionOf[valve]{registry.Spoke[valveV1, valve]{
				Version: "v1",
				ToHub: func(in *valveV1, out *valve) error {
					var f check.Violations
					switch {
					case in.Percent%10 == 3:
						f.Invalid(check.At("percent"), in.Percent, "brings bad luck")
					case in.Percent%10 == 9:
						return errors.New("nine of ten is too much")
					}
					if in.Status.Seen == 13 {
						f.Forbidden(check.At("status", "seen"), "nobody sees that")
					}
					out.Open, out.Status.Seen = in.Percent, in.Status.Seen
					return f.Err()
				},
				FromHub: func(in *valve, out *valveV1) error {
					out.Percent, out.Status.Seen = in.Open, in.Status.Seen
					return nil
				},
			}},
		}))
	}))
	const v1, v2 = "/apis/example.com/v1/valves", "/apis/example.com/v2/valves"
	faults := func(r apitest.Response) (fields []string) {
		for _, c := range apitest.Nested(r.Body, "details", "causes").([]any) {
			fields = append(fields, apitest.NestedString(c, "field"))
		}
		return fields
	}
	assert.Equal(t, []string{"percent", "serial"}, faults(a.Must(422, "POST", v1, `{"metadata":{"name":"a"},"percent":60,"serial":"x"}`)))
	a.Must(201, "POST", v1, `{"metadata":{"name":"a"},"percent":50,"serial":"a"}`)
	assert.Equal(t, []string{"percent"}, faults(a.Must(422, "PATCH", v1+"/a", `{"percent":51}`)))
	a.Must(200, "PATCH", v2+"/a", `{"open":70}`)
	a.Must(200, "PATCH", v1+"/a", `{"metadata":{"labels":{"k":"v"}}}`)
	a.Must(422, "PATCH", v1+"/a", `{"percent":71}`)
	assert.Equal(t, []string{"status.seen"}, faults(a.Must(422, "PATCH", v1+"/a/status", `{"status":{"seen":-1}}`)))
	a.Must(200, "PATCH", v1+"/a/status", `{"percent":98,"status":{"seen":1}}`)
	assert.EqualValues(t, 70, a.Must(200, "GET", v2+"/a", nil).Body["open"])

	refused := a.Must(422, "POST", v1, `{"metadata":{"name":"b"},"percent":3,"status":{"seen":13}}`)
	assert.Equal(t, `Valve.example.com "b" is invalid: [percent: Invalid value: 3: brings bad luck, status.seen: Forbidden: nobody sees that]`, refused.Body["message"])
	assert.Equal(t, []string{"percent", "status.seen"}, faults(refused), "ToHub names fields as the schema does")
	a.Must(201, "POST", v1, `{"metadata":{"name":"b"},"percent":4}`)
	live := a.Must(200, "GET", v1+"/b", nil)
	live.Body["percent"] = 13
	assert.Equal(t, []string{"percent"}, faults(a.Must(422, "PUT", v1+"/b", live.Body)))
	assert.Equal(t, []string{"percent"}, faults(a.Must(422, "PATCH", v1+"/b", `{"percent":13}`)))
	applied := a.Do("PATCH", v1+"/b?fieldManager=m&force=true", `{"apiVersion":"example.com/v1","kind":"Valve","metadata":{"name":"b"},"percent":13}`,
		"Content-Type", "application/apply-patch+yaml")
	assert.Equal(t, 422, applied.Code)
	assert.Equal(t, []string{"percent"}, faults(applied))
	assert.Equal(t, []string{"status.seen"}, faults(a.Must(422, "PATCH", v1+"/b/status", `{"status":{"seen":13}}`)))
	other := a.Must(400, "PATCH", v1+"/b", `{"percent":9}`)
	assert.Equal(t, `Valve in version "v1" cannot be handled as a Valve: nine of ten is too much`, other.Body["message"])
	assert.EqualValues(t, 4, a.Must(200, "GET", v2+"/b", nil).Body["open"])
}
