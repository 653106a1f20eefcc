package plugins_test

import (
	"fmt"
	"testing"

	"orch.io/controlplane/server/servertest"
)

// changing returns steps that create a policy for a resource, with more fields in its spec, and its binding.
func changing(name, resource, group, spec string) []step {
	return []step{
		{do: "POST " + policyPath + "mutatingadmissionpolicies", want: "201", body: `{metadata: {name: ` + name + `}, spec: {reinvocationPolicy: Never,
		matchConstraints: {resourceRules: [{apiGroups: ['` + group + `'], apiVersions: [v1], resources: [` + resource + `], operations: [CREATE, UPDATE]}]}, ` + spec + `}}`},
		{do: "POST " + policyPath + "mutatingadmissionpolicybindings", want: "201", body: `{metadata: {name: ` + name + `}, spec: {policyName: ` + name + `}}`},
	}
}

// fields returns a mutation by ApplyConfiguration; patching returns a mutation by JSONPatch.
func fields(expression string) string {
	return `{patchType: ApplyConfiguration, applyConfiguration: {expression: "` + expression + `"}}`
}

func patching(expression string) string {
	return `{patchType: JSONPatch, jsonPatch: {expression: "` + expression + `"}}`
}

func unbound(name string) step {
	return step{do: "DELETE " + policyPath + "mutatingadmissionpolicybindings/" + name, want: "200"}
}

func TestMutatingAdmissionPolicy(t *testing.T) {
	s := servertest.New(t)
	runSteps(t, s, changing("merge", "configmaps", "", `variables: [{name: who, expression: object.metadata.name}],
		matchConditions: [{name: named, expression: "object.metadata.name != 'free'"}],
		mutations: [`+fields(`Object{metadata: Object.metadata{labels: {'made': variables.who}}, data: {'b': '2'}}`)+`,`+fields(`Object{data: {'c': object.data.b + '3'}}`)+`]`)...)
	runSteps(t, s,
		step{do: "POST configmaps", body: `{metadata: {name: a, labels: {own: x}}, data: {a: '1', b: '1'}}`, want: `201 {metadata: {labels: {own: x, made: a}}, data: {a: '1', b: '2', c: '23'}}`},
		step{do: "POST configmaps", body: `{metadata: {name: free}}`, want: `201 {metadata: {labels: null}, data: null}`},
		step{do: "PATCH configmaps/a", body: `{data: {b: '7', d: '4'}}`, want: `200 {data: {a: '1', b: '2', c: '23', d: '4'}}`},
		step{do: "DELETE configmaps/a", want: "200"}, unbound("merge"))

	const sidecar = `Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{containers: [Object.spec.template.spec.containers{name: 'side', image: 's'}]}}}}`
	deployment := func(name string) string {
		return `{metadata: {name: ` + name + `}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}`
	}
	const deployments = "POST /apis/apps/v1/namespaces/default/deployments"
	runSteps(t, s, changing("side", "deployments", "apps", `mutations: [`+fields(sidecar)+`]`)...)
	runSteps(t, s,
		step{do: deployments, body: deployment("a"), want: `201 {spec: {template: {spec: {containers: [{name: c, image: i}, {name: side, image: s, imagePullPolicy: Always}]}}}}`},
		step{do: "PATCH /apis/apps/v1/namespaces/default/deployments/a", body: `{spec: {replicas: 2}}`, want: `200 {spec: {replicas: 2, template: {spec: {containers: [{name: c}, {name: side}]}}}}`},
		unbound("side"))

	i := 0
	for expression, why := range map[string]string{
		`Object{spec: Object.spec{selector: Object.spec.selector{matchLabels: {'x': 'y'}}}}`: "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .spec.selector",
		`Object{spec: Object.spec{nothing: 1}}`:                                              "failed to convert patch object to typed object: .spec.nothing: field not declared in schema",
		`Object{spec: Object.other{replicas: 1}}`:                                            "type mismatch: unexpected type name \"Object.other\", expected \"Object.spec\", which matches field name path from root Object type",
		`Object{spec: Object.spec{replicas: object.spec.nothing}}`:                           "resulted in error: no such key: nothing",
		`Object{metadata: Object.metadata{labels: {1: 'x'}}}`:                                "map key 1 is of type int, not string",
		`Object{spec: Object.spec{replicas: 0.0/0.0}}`:                                       "NaN cannot be in an object",
	} {
		i++
		name := fmt.Sprint("bad", i)
		runSteps(t, s, changing(name, "deployments", "apps", `mutations: [`+fields(expression)+`]`)...)
		runSteps(t, s, step{do: deployments, body: deployment("b"), want: "403 " + why},
			step{do: "PATCH " + policyPath + "mutatingadmissionpolicies/" + name, body: `{spec: {failurePolicy: Ignore}}`, want: "200"},
			step{do: deployments + "?dryRun=All", body: deployment("b"), want: "201"}, unbound(name))
	}
}

func TestMutatingAdmissionPolicyJSONPatch(t *testing.T) {
	s := servertest.New(t)
	runSteps(t, s, changing("patch", "configmaps", "", `mutations: [`+
		patching(`[JSONPatch{op: 'test', path: '/metadata/name', value: 'a'}, JSONPatch{op: 'add', path: '/metadata/annotations', value: {}}, JSONPatch{op: 'add', path: '/metadata/annotations/' + jsonpatch.escapeKey('x.example.com/y'), value: 'z'}]`)+`,`+
		patching(`[JSONPatch{op: 'add', path: '/data', value: {'k': 'v'}}, JSONPatch{op: 'copy', from: '/data/k', path: '/data/l'}, JSONPatch{op: 'move', from: '/data/k', path: '/data/m'}]`)+`]`)...)
	runSteps(t, s,
		step{do: "POST configmaps", body: `{metadata: {name: a}}`, want: `201 {metadata: {annotations: {x.example.com/y: z}}, data: {k: null, l: v, m: v}}`},
		step{do: "POST configmaps", body: `{metadata: {name: b}}`, want: `201 {metadata: {annotations: null}, data: {l: v, m: v}}`},
		unbound("patch"))

	runSteps(t, s, changing("ports", "services", "", `mutations: [`+
		patching(`[JSONPatch{op: 'add', path: '/spec/ports/-', value: Object.spec.ports{name: 'more', port: 81}}]`)+`]`)...)
	runSteps(t, s,
		step{do: "POST services", body: `{metadata: {name: a}, spec: {ports: [{name: one, port: 80}]}}`, want: `201 {spec: {ports: [{port: 80}, {name: more, port: 81, protocol: TCP}]}}`},
		unbound("ports"))

	runSteps(t, s, changing("bad", "configmaps", "", `mutations: [`+patching(`[JSONPatch{op: 'remove', path: '/data/none'}]`)+`]`)...)
	runSteps(t, s, step{do: "POST configmaps", body: `{metadata: {name: c}}`, want: "403 operation 0 (remove /data/none): the path does not exist"}, unbound("bad"))
	runSteps(t, s, changing("unfit", "configmaps", "", `mutations: [`+patching(`[JSONPatch{op: 'add', path: '/data', value: 1}]`)+`]`)...)
	runSteps(t, s, step{do: "POST configmaps", body: `{metadata: {name: c}}`, want: "500 ConfigMap in version \"v1\" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct field ConfigMap.data of type map[string]string"}, unbound("unfit"))
	runSteps(t, s, changing("unknown", "configmaps", "", `mutations: [`+patching(`[JSONPatch{op: 'add', path: '/nothing', value: 1}]`)+`]`)...)
	runSteps(t, s, step{do: "POST configmaps", body: `{metadata: {name: c}}`, want: `500 strict decoding error: unknown field "nothing"`})
}

// TestMutatingAdmissionPolicyIsReinvoked checks that a policy with reinvocationPolicy IfNeeded runs again
// after changes, including its own.
func TestMutatingAdmissionPolicyIsReinvoked(t *testing.T) {
	const count = `Object{data: {'k': has(object.data) && has(object.data.k) ? object.data.k + 'x' : 'x'}}`
	s := servertest.New(t)
	runSteps(t, s, changing("count", "configmaps", "", `mutations: [`+fields(count)+`]`)...)
	runSteps(t, s,
		step{do: "POST configmaps", body: `{metadata: {name: a}}`, want: `201 {data: {k: x}}`},
		step{do: "PATCH " + policyPath + "mutatingadmissionpolicies/count", body: `{spec: {reinvocationPolicy: IfNeeded}}`, want: "200"},
		step{do: "POST configmaps", body: `{metadata: {name: b}}`, want: `201 {data: {k: xx}}`})
}

func TestMutatingAdmissionPolicyHasParameters(t *testing.T) {
	s := servertest.New(t)
	policy := changing("params", "configmaps", "", `paramKind: {apiVersion: v1, kind: Secret}, mutations: [`+fields(`Object{data: {params.metadata.name: 'x'}}`)+`]`)
	policy[1].body = `{metadata: {name: params}, spec: {policyName: params, paramRef: {selector: {matchLabels: {p: 'y'}}, parameterNotFoundAction: Deny}}}`
	runSteps(t, s, policy...)
	runSteps(t, s,
		step{do: "POST configmaps", body: `{metadata: {name: a}}`, want: "403 policy 'params' with binding 'params' denied request: failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"},
		step{do: "POST secrets", body: `{metadata: {name: one, labels: {p: 'y'}}}`, want: "201"},
		step{do: "POST secrets", body: `{metadata: {name: two, labels: {p: 'y'}}}`, want: "201"},
		step{do: "POST configmaps", body: `{metadata: {name: a}}`, want: `201 {data: {one: x, two: x}}`})
}

// TestOptionalNoneIsNoJSONPatchValue checks that an optional without a value is refused in a JSON patch.
func TestOptionalNoneIsNoJSONPatchValue(t *testing.T) {
	for value, want := range map[string]string{
		"optional.none()":              "403 optional.none() dereference",
		"[optional.none()]":            "403 optional.none() dereference",
		"{'a': optional.none()}":       "403 optional.none() dereference",
		"optional.of('x')":             "201 {metadata: {labels: {a: x}}}",
		"optional.none().orValue('z')": "201 {metadata: {labels: {a: z}}}",
	} {
		s := servertest.New(t)
		runSteps(t, s, changing("m", "configmaps", "", "mutations: ["+patching("[JSONPatch{op: 'add', path: '/metadata/labels/a', value: "+value+"}]")+"]")...)
		runSteps(t, s, step{do: "POST configmaps", body: "{metadata: {name: a, labels: {b: c}}}", want: want})
	}
}
