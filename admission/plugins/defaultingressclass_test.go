package plugins_test

import (
	"testing"

	"orch.io/controlplane/admission"
)

// TestDefaultIngressClass: an ingress that names no class in either way gets the
// default one when it is new; of two it gets the newest.
func TestDefaultIngressClass(t *testing.T) {
	const classes, marked = "/apis/networking.k8s.io/v1/ingressclasses", `, annotations: {ingressclass.kubernetes.io/is-default-class: "true"}}, spec: {controller: example.com/c}}`
	const ingresses, spec = "/apis/networking.k8s.io/v1/namespaces/default/ingresses", `, spec: {defaultBackend: {service: {name: s, port: {number: 80}}}`
	walk(t, with(t, admission.Options{}),
		step{do: "POST " + ingresses, body: `{metadata: {name: a}` + spec + `}}`, want: `201 {spec: {ingressClassName: null}}`},
		step{do: "POST " + classes, body: `{metadata: {name: old` + marked, want: `201`},
		step{do: "POST " + ingresses, body: `{metadata: {name: b}` + spec + `}}`, want: `201 {spec: {ingressClassName: old}}`},
		step{do: "POST " + ingresses, body: `{metadata: {name: c, annotations: {kubernetes.io/ingress.class: x}}` + spec + `}}`, want: `201 {spec: {ingressClassName: null}}`},
		step{do: "PATCH " + ingresses + "/a", body: `{metadata: {labels: {a: b}}}`, want: `200 {spec: {ingressClassName: null}}`},
		step{do: "POST " + classes, body: `{metadata: {name: new` + marked, want: `201`},
		step{do: "POST " + ingresses, body: `{metadata: {name: d}` + spec + `}}`, want: `201 {spec: {ingressClassName: new}}`},
		step{do: "POST " + ingresses, body: `{metadata: {name: e}` + spec + `, ingressClassName: old}}`, want: `201`},
	)
}
