package plugins_test

import (
	"testing"

	"orch.io/controlplane/admission"
)

// TestDefaultIngressClass checks that a new ingress that names no class, by field or annotation, gets the
// default one.
func TestDefaultIngressClass(t *testing.T) {
	const classes, marked = "/apis/networking.k8s.io/v1/ingressclasses", `, annotations: {ingressclass.kubernetes.io/is-default-class: "true"}}, spec: {controller: example.com/c}}`
	const ingresses, spec = "/apis/networking.k8s.io/v1/namespaces/default/ingresses", `, spec: {defaultBackend: {service: {name: s, port: {number: 80}}}`
	runSteps(t, newServer(t, admission.Options{}),
		step{do: "POST " + ingresses, body: `{metadata: {name: a}` + spec + `}}`, want: `201 {spec: {ingressClassName: null}}`},
		step{do: "POST " + classes, body: `{metadata: {name: old` + marked, want: `201`},
		step{do: "POST " + ingresses, body: `{metadata: {name: b}` + spec + `}}`, want: `201 {spec: {ingressClassName: old}}`},
		step{do: "POST " + ingresses, body: `{metadata: {name: c, annotations: {kubernetes.io/ingress.class: x}}` + spec + `}}`, want: `201 {spec: {ingressClassName: null}}`},
		step{do: "PATCH " + ingresses + "/a", body: `{metadata: {labels: {a: b}}}`, want: `200 {spec: {ingressClassName: null}}`},
		step{do: "POST " + ingresses, body: `{metadata: {name: e}` + spec + `, ingressClassName: old}}`, want: `201`},
	)
}

// TestNewestDefaultIngressClassWins checks that of several default classes an ingress gets the one that was
// created last.
func TestNewestDefaultIngressClassWins(t *testing.T) {
	const classes, marked = "/apis/networking.k8s.io/v1/ingressclasses", `, annotations: {ingressclass.kubernetes.io/is-default-class: "true"}}, spec: {controller: example.com/c}}`
	const ingress = `{metadata: {name: i}, spec: {defaultBackend: {service: {name: s, port: {number: 80}}}}}`
	newestWins(t, func(name string) step {
		return step{do: "POST " + classes, body: `{metadata: {name: ` + name + marked, want: `201`}
	}, func(name string) step {
		return step{do: "POST /apis/networking.k8s.io/v1/namespaces/default/ingresses?dryRun=All", body: ingress, want: `201 {spec: {ingressClassName: ` + name + `}}`}
	})
}
