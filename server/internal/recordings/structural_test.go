package recordings_test

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
)

var (
	referenceSeed   = flag.Uint64("reference-seed", 1, "seed of the schemas and objects that -reference is asked about")
	referenceCount  = flag.Int("reference-count", 250, "number of schemas that -reference is asked about")
	recordReference = flag.Bool("reference-record", false, "with -reference: write its answers into testdata/structural.jsonl.gz")
)

const (
	structuralFile   = "testdata/structural.jsonl.gz"
	structuralBatch  = 25 // schemas in one definition
	structuralValues = 6  // objects for each schema
)

// structuralCase is one schema of a field of a custom kind, and what a server makes of it.
type structuralCase struct {
	Schema  node                `json:"schema"`
	Refused []string            `json:"refused,omitempty"` // causes for which the definition is refused
	Shown   any                 `json:"shown,omitempty"`   // in OpenAPI v3
	Objects []*structuralObject `json:"objects,omitempty"`
}

// structuralObject is a pair of values of such a field, and the answers to writes of them.
type structuralObject struct {
	Value  any      `json:"value"`
	Next   any      `json:"next"`
	Create *outcome `json:"create,omitempty"` // of Value
	Read   any      `json:"read,omitempty"`   // the field as a GET returns it, if that differs from the answer to the create
	Strict *outcome `json:"strict,omitempty"` // to a create with fieldValidation=Strict
	Update *outcome `json:"update,omitempty"` // from Value to Next
	Apply  *outcome `json:"apply,omitempty"`  // of Value, which creates
	Again  *outcome `json:"again,omitempty"`  // to an apply of Next by another manager
	Force  *outcome `json:"force,omitempty"`  // to the same with force, after a conflict
}

// outcome is what a server answers to a write.
type outcome struct {
	Code     int      `json:"code"`
	Warnings []string `json:"warnings,omitempty"`
	Causes   []string `json:"causes,omitempty"`
	Message  string   `json:"message,omitempty"` // of a Status without causes
	Stored   any      `json:"stored,omitempty"`  // the field as it is stored
	Owned    node     `json:"owned,omitempty"`   // the managed fields of each manager
}

// TestStructuralSchemas compares what the server makes of generated definitions and their
// objects with the answers of kube-apiserver in testdata/structural.jsonl.gz. With
// -reference it compares with a running one:
//
//	go test ./server/internal/recordings -run TestStructuralSchemas -reference https://127.0.0.1:6443 -reference-seed 7
func TestStructuralSchemas(t *testing.T) {
	t.Parallel()
	s := servertest.New(t)
	ours := &structuralClient{t: t, http: s.Client(), url: s.Host()}
	if *reference == "" {
		cases := readStructural(t)
		if testing.Short() {
			cases = cases[:len(cases)/8]
		}
		compareStructural(t, cases, ours.ask(cases))
		return
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} // its certificate is its own
	t.Cleanup(transport.CloseIdleConnections)
	theirs := &structuralClient{t: t, http: &http.Client{Transport: transport}, url: *reference, token: *referenceToken}
	cases := theirs.ask(structuralCases(*referenceSeed, *referenceCount, structuralValues))
	if *recordReference {
		writeStructural(t, cases)
		return
	}
	compareStructural(t, cases, ours.ask(cases))
}

func readStructural(t *testing.T) (cases []*structuralCase) {
	f, err := os.Open(structuralFile)
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		c := new(structuralCase)
		require.NoError(t, json.Unmarshal(lines.Bytes(), c))
		cases = append(cases, c)
	}
	require.NoError(t, lines.Err())
	return cases
}

func writeStructural(t *testing.T, cases []*structuralCase) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	lines := json.NewEncoder(z)
	lines.SetEscapeHTML(false)
	for _, c := range cases {
		require.NoError(t, lines.Encode(c))
	}
	require.NoError(t, z.Close())
	require.NoError(t, os.WriteFile(structuralFile, b.Bytes(), 0o644))
}

// compareStructural reports the answers that differ, each with its schema and values.
func compareStructural(t *testing.T, want, got []*structuralCase) {
	differ := func(what string, c *structuralCase, o *structuralObject, want, got any) {
		w, g := compact(want), compact(got)
		if w == g {
			return
		}
		values := ""
		if o != nil {
			values = fmt.Sprintf("\n  value  %s\n  next   %s", compact(o.Value), compact(o.Next))
		}
		t.Errorf("%s\n  schema %s%s\n  want   %s\n  got    %s", what, compact(c.Schema), values, w, g)
	}
	for i, w := range want {
		g := got[i]
		differ("definition", w, nil, w.Refused, g.Refused)
		differ("OpenAPI", w, nil, w.Shown, g.Shown)
		if len(w.Refused)+len(g.Refused) > 0 {
			continue
		}
		for j, o := range w.Objects {
			p := g.Objects[j]
			differ("create", w, o, o.Create, p.Create)
			differ("read", w, o, o.Read, p.Read)
			differ("strict", w, o, o.Strict, p.Strict)
			differ("update", w, o, o.Update, p.Update)
			for _, answers := range [][2]*outcome{{o.Apply, p.Apply}, {o.Again, p.Again}, {o.Force, p.Force}} {
				withoutAlone(answers[0], answers[1])
			}
			differ("apply", w, o, o.Apply, p.Apply)
			differ("apply by another manager", w, o, o.Again, p.Again)
			differ("apply with force", w, o, o.Force, p.Force)
		}
	}
}

// withoutAlone leaves out the causes of both answers if one of them is for a null, or for the
// metadata of an embedded object: this server reports those of applied objects alone.
func withoutAlone(a, b *outcome) {
	if a != nil && b != nil && slices.ContainsFunc(slices.Concat(a.Causes, b.Causes), aloneCause.MatchString) {
		a.Causes, b.Causes = nil, nil
	}
}

var aloneCause = regexp.MustCompile(`Invalid value: ("null"|null: must be a string)|metadata: Invalid value: `)

func compact(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err.Error()
	}
	return strings.TrimSpace(b.String())
}

// structuralClient asks one server about cases.
type structuralClient struct {
	t          *testing.T
	http       *http.Client
	url, token string
}

// ask returns the cases with the answers of the server.
func (c *structuralClient) ask(cases []*structuralCase) []*structuralCase {
	var valid []*structuralCase
	out := make([]*structuralCase, len(cases))
	for i, of := range cases {
		out[i] = &structuralCase{Schema: of.Schema}
		a := c.call("POST", apitest.DefinitionsPath+"?dryRun=All", "", structuralDefinition([]*structuralCase{of}))
		if out[i].Refused = a.causes(); a.code == http.StatusCreated {
			valid = append(valid, out[i])
			for _, o := range of.Objects {
				out[i].Objects = append(out[i].Objects, &structuralObject{Value: o.Value, Next: o.Next})
			}
		}
	}
	for batch := range slices.Chunk(valid, structuralBatch) {
		c.batch(batch)
	}
	return out
}

// batch defines a kind with the schemas of cases, and asks about their objects.
func (c *structuralClient) batch(cases []*structuralCase) {
	a := c.call("POST", apitest.DefinitionsPath, "", structuralDefinition(cases))
	require.Equal(c.t, http.StatusCreated, a.code, "%v", a.body)
	c.await(func() bool { return c.call("GET", "/apis/example.com/v1/batches", "", nil).code == http.StatusOK })
	var fields node
	c.await(func() bool {
		fields = c.openAPI()
		return len(fields) == len(cases)+3
	})
	for i, of := range cases {
		of.Shown = comparable(dig(fields[fmt.Sprint("f", i)], "properties.v"))
		for j, o := range of.Objects {
			c.object(i, j, o)
		}
	}
	a = c.call("DELETE", apitest.DefinitionsPath+"/batches.example.com", "", nil)
	require.Equal(c.t, http.StatusOK, a.code, "%v", a.body)
	c.await(func() bool {
		return c.call("GET", apitest.DefinitionsPath+"/batches.example.com", "", nil).code == http.StatusNotFound && c.openAPI() == nil
	})
}

func (c *structuralClient) await(done func() bool) {
	require.Eventually(c.t, done, time.Minute, 20*time.Millisecond)
}

// openAPI returns the properties of the kind of a batch as OpenAPI v3 shows them.
func (c *structuralClient) openAPI() node {
	doc := c.call("GET", "/openapi/v3/apis/example.com/v1", "", nil).body
	schemas, _ := dig(doc, "components.schemas").(node)
	batch, _ := schemas["com.example.v1.Batch"].(node)
	fields, _ := batch["properties"].(node)
	return fields
}

// object asks about the values of an object with the field f0, f1, ... of a number.
func (c *structuralClient) object(number, i int, o *structuralObject) {
	const path = "/apis/example.com/v1/batches"
	field := fmt.Sprint("f", number)
	doc := func(name string, value any, version any) node {
		m := node{"name": name}
		if version != nil {
			m["resourceVersion"] = version
		}
		return node{"apiVersion": "example.com/v1", "kind": "Batch", "metadata": m, field: node{"v": value}}
	}
	name := fmt.Sprintf("c%d-%d", number, i)
	created := c.call("POST", path+"?fieldValidation=Warn&fieldManager=creator", "", doc(name, o.Value, nil))
	o.Create = created.outcome(field)
	o.Strict = c.call("POST", path+"?fieldValidation=Strict&dryRun=All&fieldManager=creator", "", doc("s", o.Value, nil)).outcome(field)
	if created.code == http.StatusCreated {
		if read := c.call("GET", path+"/"+name, "", nil).body[field]; compact(read) != compact(created.body[field]) {
			o.Read = read
		}
		next := doc(name, o.Next, dig(created.body, "metadata.resourceVersion"))
		o.Update = c.call("PUT", path+"/"+name+"?fieldValidation=Warn&fieldManager=updater", "", next).outcome(field)
	}
	apply := func(manager string, value any) *outcome {
		name := fmt.Sprintf("a%d-%d", number, i)
		return c.call("PATCH", path+"/"+name+"?fieldValidation=Warn&fieldManager="+manager, "application/apply-patch+yaml", doc(name, value, nil)).outcome(field)
	}
	o.Apply = apply("one", o.Value)
	if o.Again = apply("two", o.Next); o.Again.Code == http.StatusConflict {
		o.Force = apply("two&force=true", o.Next)
	}
}

// comparable returns a schema of OpenAPI without descriptions, of which the cases have none,
// but those of embedded objects do, without defaults in the values of maps, which
// kube-apiserver shows unpruned, and with its required fields in order.
func comparable(schema any) any { return comparableWithin(schema, false) }

func comparableWithin(schema any, inMap bool) any {
	switch v := schema.(type) {
	case node:
		delete(v, "description")
		if inMap {
			delete(v, "default")
		}
		for name, e := range v {
			v[name] = comparableWithin(e, inMap || name == "additionalProperties")
		}
		if list, ok := v["required"].([]any); ok {
			slices.SortFunc(list, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
		}
	case []any:
		for _, e := range v {
			comparableWithin(e, inMap)
		}
	}
	return schema
}

// reply is an answer as it came.
type reply struct {
	code     int
	warnings []string
	body     node
}

func (c *structuralClient) call(method, path, contentType string, body any) reply {
	var text []byte
	if body != nil {
		text = []byte(compact(body))
	}
	r, err := http.NewRequestWithContext(c.t.Context(), method, c.url+path, bytes.NewReader(text))
	require.NoError(c.t, err)
	r.Header.Set("Content-Type", cmp.Or(contentType, "application/json"))
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.http.Do(r)
	require.NoError(c.t, err)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	require.NoError(c.t, err)
	a := reply{code: resp.StatusCode, warnings: resp.Header.Values("Warning")}
	if json.Valid(data) {
		assert.NoError(c.t, json.Unmarshal(data, &a.body))
	}
	return a
}

// causes returns the causes of a Status, or else its message, without the numbers of fields.
func (r reply) causes() (list []string) {
	if r.body["kind"] != "Status" {
		return nil
	}
	causes, _ := dig(r.body, "details.causes").([]any)
	for _, e := range causes {
		m := e.(node)
		message := defaultValue.ReplaceAllString(fmt.Sprint(m["message"]), "$1")
		list = append(list, withoutNumber(fmt.Sprintf("%v %v: %v", m["reason"], m["field"], message)))
	}
	slices.Sort(list)
	return list
}

// firstViolation returns the beginning of a message that goes on with a violation of the object: which of
// several violations kube-apiserver finds first depends on the order in which it ranges over a map.
// It answers 500 to an applied object that does not fit its schema, which this server does not follow.
func firstViolation(code int, message string) (int, string, bool) {
	const typing, decoding = "failed to create typed patch object", "cannot be handled as a Batch: "
	if strings.HasPrefix(message, typing) {
		return http.StatusUnprocessableEntity, typing, true
	}
	if i := strings.Index(message, decoding); i >= 0 && !strings.Contains(message, "strict") {
		return code, message[:i+len(decoding)], true
	}
	return code, message, false
}

// defaultValue finds a default in a message. kube-apiserver shows it with the metadata of
// embedded objects as it would store them.
var defaultValue = regexp.MustCompile(`Invalid value: .*(: must not have unknown fields)$`)

var numberedField = regexp.MustCompile(`\bf\d+\b`)

func withoutNumber(text string) string { return numberedField.ReplaceAllString(text, "f") }

func (r reply) outcome(field string) *outcome {
	a := &outcome{Code: r.code, Causes: r.causes()}
	for _, w := range r.warnings {
		a.Warnings = append(a.Warnings, withoutNumber(w))
	}
	if r.body["kind"] == "Status" {
		code, message, first := firstViolation(r.code, withoutNumber(fmt.Sprint(r.body["message"])))
		if a.Code = code; first {
			a.Causes = nil
		}
		if len(a.Causes) == 0 {
			a.Message = message
		}
		return a
	}
	a.Stored = r.body[field]
	entries, _ := dig(r.body, "metadata.managedFields").([]any)
	for _, e := range entries {
		if a.Owned == nil {
			a.Owned = node{}
		}
		m := e.(node)
		a.Owned[fmt.Sprint(m["manager"], " ", m["operation"])] = dig(m, "fieldsV1")
		if fields, ok := m["fieldsV1"].(node); ok {
			a.Owned[fmt.Sprint(m["manager"], " ", m["operation"])] = fields["f:"+field]
		}
	}
	return a
}
