package recordings_test

import (
	"bufio"
	"compress/gzip"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry/builtin"
	"orch.io/controlplane/server/internal/apitest"
)

// The file generatedAnswers holds requests generated from the schemas of the built-in kinds, and the answers of
// kube-apiserver to them. To record it again, start a kube-apiserver, and run
//
//	go test ./server/internal/recordings -run TestGeneratedRequests -reference https://127.0.0.1:PORT
const generatedAnswers = "testdata/generated.jsonl.gz"

// TestGeneratedRequests compares the answers to generated requests with the recorded ones. It fails on a difference
// that testdata/differences.txt does not list, and on a listed difference that no longer exists. An answer with more
// causes than the recorded one, or a 4xx where the recorded one is a 500, is listed there as accepted.
func TestGeneratedRequests(t *testing.T) {
	t.Parallel()
	if *reference != "" {
		recordGenerated(t)
	}
	scenarios := readScenarios(t, generatedAnswers)
	var found, accepted []difference
	synctest.Test(t, func(t *testing.T) {
		users := filepath.Join(t.TempDir(), "users.csv")
		require.NoError(t, os.WriteFile(users, []byte("admin-token,admin,admin,system:masters\n"), 0o600))
		p := newPlayer(t, users, false)
		p.managed = true
		p.generated = true
		for _, sc := range scenarios {
			found = append(found, p.play(t, sc)...)
		}
		accepted = p.accepted
	})
	known := readDifferences(t)
	compareDifferences(t, known["generated"], found)
	compareDifferences(t, known["accepted"], accepted)
}

// recordGenerated generates the requests, sends them to the reference server and writes its answers.
func recordGenerated(t *testing.T) {
	insecure := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	p := &player{client: &http.Client{Transport: insecure}, base: *reference, managed: true, generated: true}
	var scenarios []scenario
	for i, kind := range builtin.Kinds() {
		typ, err := resource.Compile(kind, names.Kubernetes)
		require.NoError(t, err)
		if !p.serves(t, apitest.CollectionPath(typ.Hub)) || typ.Virtual || typ.Kind == "ComponentStatus" {
			continue
		}
		for n := range 2 {
			g := generator{t: t, typ: typ, random: rand.New(rand.NewPCG(uint64(i), uint64(n)))}
			scenarios = append(scenarios, g.scenario(n))
		}
	}
	for i := range scenarios {
		p.record(t, &scenarios[i])
	}
	writeScenarios(t, generatedAnswers, scenarios)
}

func (p *player) serves(t *testing.T, path string) bool {
	return p.call(t, step{Do: "GET " + path + "?limit=1"})["code"] == 200.0
}

// record fills in the answers of the server that p calls.
func (p *player) record(t *testing.T, sc *scenario) {
	p.begin(t)
	for i, st := range sc.Steps {
		if _, isText := st.Body.(string); !isText && st.Body != nil {
			text, err := json.Marshal(st.Body) // as text, which keeps the digits of numbers
			require.NoError(t, err)
			st.Body, sc.Steps[i].Body = string(text), string(text)
		}
		got := p.await(t, st)
		if !st.Quiet {
			got["body"] = p.normal(got["body"], "")
			sc.Steps[i].Want = got
		}
	}
	p.end(t)
}

func readScenarios(t *testing.T, path string) (scenarios []scenario) {
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	for d := json.NewDecoder(bufio.NewReader(z)); ; {
		var sc scenario
		err := d.Decode(&sc)
		if err == io.EOF {
			return scenarios
		}
		require.NoError(t, err)
		scenarios = append(scenarios, sc)
	}
}

func writeScenarios(t *testing.T, path string, scenarios []scenario) {
	f, err := os.Create(path)
	require.NoError(t, err)
	z := gzip.NewWriter(f)
	for _, sc := range scenarios {
		require.NoError(t, json.NewEncoder(z).Encode(sc))
	}
	require.NoError(t, z.Close())
	require.NoError(t, f.Close())
}

// generator makes requests about objects of one kind.
type generator struct {
	t          *testing.T
	typ        *resource.Type
	random     *rand.Rand
	collection string
	name       string
	minimal    map[string]any
}

// scenario returns steps that create an object, send changed objects by every verb, read and delete.
func (g *generator) scenario(n int) scenario {
	g.collection = strings.Replace(apitest.CollectionPath(g.typ.Hub), "/namespaces/default/", "/namespaces/$ns/", 1)
	g.minimal = apitest.MinimalObject(g.t, g.typ)
	g.minimal["apiVersion"], g.minimal["kind"] = g.typ.Hub.GVK().APIVersion(), g.typ.Kind
	if g.typ.Kind == "Event" {
		g.minimal["involvedObject"] = map[string]any{"namespace": "$ns"}
	}
	meta := g.minimal["metadata"].(map[string]any)
	g.name, _ = meta["name"].(string)
	if g.name == "x" && !g.typ.Hub.Namespaced {
		g.name = "x-$id"
		meta["name"] = g.name
	}
	sc := scenario{Name: fmt.Sprintf("%s-%d", g.typ.GroupResource(), n)}
	if g.typ.Kind == "Pod" {
		sc.Steps = append(sc.Steps, step{Do: "POST /api/v1/namespaces/$ns/serviceaccounts", Body: `{"metadata":{"name":"default"}}`, Quiet: true})
	}
	for range 12 {
		sc.Steps = append(sc.Steps, g.create("?dryRun=All"+g.validation()))
	}
	if slices.Contains([]string{"FlowSchema", "CustomResourceDefinition"}, g.typ.Kind) {
		return sc // the reference changes the status of a stored one at any time
	}
	sc.Steps = append(sc.Steps, step{Do: "POST " + g.collection, Body: g.minimal})
	for range 14 {
		sc.Steps = append(sc.Steps, g.write())
	}
	sc.Steps = append(sc.Steps, g.reads()...)
	return sc
}

// dangerous kinds change how the server answers requests for other kinds; their objects are written by dry run only.
var dangerous = []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations", "validatingadmissionpolicies",
	"validatingadmissionpolicybindings", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings", "priorityclasses"}

func (g *generator) dryRun() string {
	if slices.Contains(dangerous, g.typ.Hub.Plural) || g.random.IntN(3) > 0 {
		return "?dryRun=All"
	}
	return "?pretty=false"
}

func (g *generator) validation() string {
	return []string{"", "", "&fieldValidation=Strict", "&fieldValidation=Warn", "&fieldValidation=Ignore", "&fieldManager=m"}[g.random.IntN(6)]
}

func (g *generator) create(query string) step {
	return step{Do: "POST " + g.collection + query, Body: g.changed()}
}

func (g *generator) write() step {
	item, query := "PATCH "+g.collection+"/"+g.name, g.dryRun()+g.validation()
	switch g.random.IntN(5) {
	case 0:
		return step{Do: "PUT " + g.collection + "/" + g.name + query, Body: g.changed()}
	case 1:
		return step{Do: item + query, Type: "application/merge-patch+json", Body: g.partOf(g.changed())}
	case 2:
		return step{Do: item + query, Type: "application/strategic-merge-patch+json", Body: g.partOf(g.changed())}
	case 3:
		applied := g.changed()
		force := []string{"", "&force=true"}[g.random.IntN(2)]
		return step{Do: item + g.dryRun() + "&fieldManager=applier" + force, Type: "application/apply-patch+yaml", Body: applied}
	}
	return step{Do: item + query, Type: "application/json-patch+json", Body: g.jsonPatch()}
}

// partOf returns an object with some of the fields of obj.
func (g *generator) partOf(obj map[string]any) map[string]any {
	part := map[string]any{}
	for _, k := range sortedKeys(obj) {
		if k != "metadata" && g.random.IntN(3) > 0 {
			part[k] = obj[k]
		}
	}
	if g.random.IntN(3) == 0 {
		part["metadata"] = map[string]any{"labels": map[string]any{"a": g.odd()}}
	}
	return part
}

func (g *generator) jsonPatch() any {
	var ops []any
	for range 1 + g.random.IntN(2) {
		path := g.path(g.minimal)
		switch op := []string{"add", "replace", "remove", "test", "copy", "move"}[g.random.IntN(6)]; op {
		case "remove":
			ops = append(ops, map[string]any{"op": op, "path": path})
		case "copy", "move":
			ops = append(ops, map[string]any{"op": op, "from": g.path(g.minimal), "path": path})
		default:
			ops = append(ops, map[string]any{"op": op, "path": path, "value": g.odd()})
		}
	}
	return ops
}

// path returns the JSON pointer of a random place in v.
func (g *generator) path(v map[string]any) string {
	path := ""
	for {
		keys := slices.DeleteFunc(sortedKeys(v), func(k string) bool { return k == "apiVersion" || k == "kind" })
		if len(keys) == 0 {
			return path + "/new"
		}
		k := keys[g.random.IntN(len(keys))]
		path += "/" + strings.ReplaceAll(strings.ReplaceAll(k, "~", "~0"), "/", "~1")
		next, ok := v[k].(map[string]any)
		if !ok || g.random.IntN(4) == 0 {
			return path
		}
		v = next
	}
}

// changed returns the minimal object with changes: values of the schema, or values that do not fit it.
func (g *generator) changed() map[string]any {
	choices := make([]byte, 256)
	for i := range choices {
		choices[i] = byte(g.random.Uint32())
	}
	if g.random.IntN(3) > 0 {
		c := apitest.Chooser(choices)
		if obj, ok := c.Change(g.typ.Hub.Schema(), g.minimal, 0).(map[string]any); ok {
			return obj
		}
	}
	return g.damaged(g.minimal).(map[string]any)
}

// damaged returns a copy of v in which one place has a value that does not fit, is missing or is unknown.
func (g *generator) damaged(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		keys := sortedKeys(v)
		at := ""
		if len(keys) > 0 {
			at = keys[g.random.IntN(len(keys))]
		}
		for _, k := range keys {
			switch {
			case k != at || k == "metadata" && g.random.IntN(4) > 0:
				out[k] = v[k]
			case g.random.IntN(5) == 0: // left out
			case g.random.IntN(3) == 0:
				out[k] = g.odd()
			default:
				out[k] = g.damaged(v[k])
			}
		}
		if g.random.IntN(8) == 0 {
			out["unknown"] = g.odd()
		}
		return out
	case []any:
		if len(v) == 0 {
			return []any{g.odd()}
		}
		if g.random.IntN(3) == 0 {
			return append(slices.Clone(v), v[0]) // a duplicate
		}
		out := slices.Clone(v)
		out[0] = g.damaged(v[0])
		return out
	}
	return g.odd()
}

func (g *generator) odd() any {
	values := []any{nil, "", "x", "A b", strings.Repeat("x", 300), 0, -1, 1, 1.5, json.Number("9007199254740993"), json.Number("3.0"), true,
		[]any{}, []any{"a", "a"}, []any{nil}, map[string]any{}, map[string]any{"a": nil}, map[string]any{"a": "b"}, " 5", "a/b"}
	return values[g.random.IntN(len(values))]
}

// reads returns requests that read the object in every representation, list it and delete it.
func (g *generator) reads() (steps []step) {
	item := g.collection + "/" + g.name
	for _, accept := range []string{"", "application/json;as=Table;g=meta.k8s.io;v=v1", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", "text/html"} {
		steps = append(steps, step{Do: "GET " + item, Accept: accept})
	}
	for _, query := range []string{"limit=1", "resourceVersion=0", "resourceVersionMatch=Exact", "resourceVersion=x", "fieldSelector=spec.x=y", "labelSelector=a%20b", "continue=x", "resourceVersion=0&limit=-1"} {
		steps = append(steps, step{Do: "GET " + g.collection + "?fieldSelector=metadata.name=" + g.name + "&" + query})
	}
	steps = append(steps, step{Do: "GET " + item + "/nothing"}, step{Do: "POST " + item, Body: map[string]any{}}, step{Do: "GET " + g.collection + "/missing"})
	deletions := []string{"?dryRun=All", "?propagationPolicy=Wrong", "?gracePeriodSeconds=x", "?dryRun=All&gracePeriodSeconds=-1", "?propagationPolicy=Foreground&dryRun=All", "?propagationPolicy=Orphan&orphanDependents=true"}
	steps = append(steps, step{Do: "DELETE " + item + deletions[g.random.IntN(len(deletions))]},
		step{Do: "DELETE " + item, Body: map[string]any{"preconditions": map[string]any{"uid": "x"}}})
	steps = append(steps, step{Do: "DELETE " + item}, step{Do: "GET " + item})
	return steps
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
