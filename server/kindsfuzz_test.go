package server_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry/builtin"
	"orch.io/controlplane/server"
)

// FuzzKinds writes objects of every built-in kind that are minimal ones changed at
// random: no answer is a fault of the server's, what is stored reads back in every form,
// and a PUT of what was read changes nothing.
func FuzzKinds(f *testing.F) {
	s, log := newTough(f, func(b *server.Builder) { b.Limits.FutureWait = 1 })
	var kinds []*resource.Type
	for i, k := range builtin.Kinds() {
		typ, err := resource.Compile(k, names.Kubernetes)
		require.NoError(f, err)
		kinds = append(kinds, typ)
		f.Add(uint(i), []byte{}) // the minimal object
		for seed := range uint64(4) {
			f.Add(uint(i), randomBytes(uint64(i), seed))
			f.Add(uint(i), randomBytes(uint64(i), seed)[:8<<seed])
		}
	}
	f.Fuzz(func(t *testing.T, i uint, choices []byte) {
		typ, a := kinds[i%uint(len(kinds))], inProcess(t, s)
		collection := collection(typ.Hub)
		say := func(method, path string, body any, headers ...string) answer {
			got := a.do(method, path, body, headers...)
			if got.code >= 500 {
				text, _ := json.Marshal(body)
				t.Fatalf("%s %s: %d %s\nof %s", method, path, got.code, got.raw, text)
			}
			return got
		}
		c := chooser(choices)
		obj := c.change(typ.Hub.Schema(), minimalOf(t, typ), 0).(map[string]any)
		delete(obj, "apiVersion")
		delete(obj, "kind")
		made := say("POST", collection, obj)
		if log := log.take(); len(log) > 0 {
			t.Fatalf("logged: %q", log)
		}
		name, _ := at(made.body, "metadata", "name").(string)
		item := collection + "/" + name
		if made.code != 201 || typ.Virtual {
			return
		}
		defer a.do("DELETE", item+"?gracePeriodSeconds=0", nil)
		require.NoError(t, s.Server.Settle(t.Context()))
		read := say("GET", item, nil)
		for field, value := range made.body {
			if field != "metadata" && field != "status" {
				require.Equal(t, value, read.body[field], "what was stored reads back")
			}
		}
		for _, form := range []string{"application/yaml", "application/vnd.kubernetes.protobuf", "application/json;as=Table;g=meta.k8s.io;v=v1"} {
			say("GET", item, nil, "Accept", form)
		}
		again := say("PUT", item, read.raw)
		require.Equal(t, 200, again.code, "%s\nof %s", again.raw, read.raw)
		require.Equal(t, read.body, again.body, "what was read is written and changes nothing")
		if typ.Hub.Subresource("status") != nil {
			next := c.change(typ.Hub.Schema(), read.body, 0).(map[string]any)
			say("PUT", item+"/status", map[string]any{"metadata": read.body["metadata"], "status": next["status"]})
		}
		next := c.change(typ.Hub.Schema(), read.body, 0).(map[string]any)
		say("PATCH", item, map[string]any{"spec": next["spec"]}, "Content-Type", "application/strategic-merge-patch+json")
	})
}

func randomBytes(of, seed uint64) []byte {
	r, b := rand.New(rand.NewPCG(of, seed)), make([]byte, 512)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// minimalOf is an object that can be created; kinds without a file need nothing.
func minimalOf(t testing.TB, typ *resource.Type) map[string]any {
	obj := map[string]any{}
	if text, err := os.ReadFile("testdata/minimal/" + typ.GroupResource().String() + ".json"); err == nil {
		require.NoError(t, json.Unmarshal(text, &obj))
	}
	if obj["metadata"] == nil {
		obj["metadata"] = map[string]any{"name": "x"}
	}
	return obj
}

// chooser makes values of bytes that say what is chosen; when none is left it is the
// first of every choice.
type chooser []byte

// one chooses a number below n.
func (c *chooser) one(n int) int {
	if len(*c) == 0 {
		return 0
	}
	b := int((*c)[0])
	*c = (*c)[1:]
	return b % n
}

// change returns a value with places that are changed; what is not described stays.
func (c *chooser) change(s *schema.Schema, v any, depth int) any {
	if depth > 0 && c.one(16) == 1 {
		return c.value(s, depth)
	}
	switch x := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, v := range x {
			out[k] = v
		}
		if s.Struct == nil {
			return out
		}
		for _, f := range s.Struct.Fields {
			switch old, there := out[f.Name]; {
			case depth == 0 && f.Name == "metadata":
			case there:
				out[f.Name] = c.change(f.Schema, old, depth+1)
			case c.one(8) == 1:
				out[f.Name] = c.value(f.Schema, depth+1)
			}
		}
		return out
	case []any:
		out := []any{}
		for _, v := range x {
			out = append(out, c.change(s.Items, v, depth+1))
		}
		if s.Items != nil && c.one(8) == 1 {
			out = append(out, c.value(s.Items, depth+1))
		}
		return out
	}
	return v
}

// value returns a value of a schema, or sometimes of no schema.
func (c *chooser) value(s *schema.Schema, depth int) any {
	odd := []any{nil, map[string]any{}, []any{}, "", 0, true, "a/b:c", map[string]any{"a": "b"}}
	if s == nil || depth > 12 || c.one(32) == 1 {
		return odd[c.one(len(odd))]
	}
	switch {
	case s.Struct != nil:
		out := map[string]any{}
		for _, f := range s.Struct.Fields {
			if c.one(3) == 1 || f.Required {
				out[f.Name] = c.value(f.Schema, depth+1)
			}
		}
		return out
	case s.Items != nil:
		out := []any{}
		for range c.one(3) {
			out = append(out, c.value(s.Items, depth+1))
		}
		return out
	case s.Values != nil:
		out := map[string]any{}
		for range c.one(3) {
			out[c.text()] = c.value(s.Values, depth+1)
		}
		return out
	case len(s.Enum) > 0 && c.one(8) != 1:
		return s.Enum[c.one(len(s.Enum))]
	}
	return c.scalar(s)
}

func (c *chooser) scalar(s *schema.Schema) any {
	numbers := []any{1, 0, -1, 2, 80, 65535, 1<<31 - 1, -1 << 31, int64(1<<63 - 1), json.Number("1e30"), 1.5}
	switch {
	case s.Type == schema.Boolean:
		return c.one(2) == 1
	case s.Type == schema.Integer || s.Type == schema.Number || s.IntOrString && c.one(2) == 1:
		return numbers[c.one(len(numbers))]
	case s.Format == "quantity":
		return []string{"1", "0", "-1", "5Gi", "1e30", "1n", "1.5", "9223372036854775808", "1e-9"}[c.one(9)]
	case s.Format == "byte":
		return []string{"YQ==", "", "!"}[c.one(3)]
	case s.Wire == schema.Time || s.Wire == schema.MicroTime:
		return []string{"2020-01-01T00:00:00Z", "2020-01-01T00:00:00.000001Z", "0001-01-01T00:00:00Z", "x"}[c.one(4)]
	case s.Type == schema.Any:
		return map[string]any{"a": []any{1, "b"}}
	}
	return c.text()
}

func (c *chooser) text() string {
	texts := []string{
		"a", "b", "c", "", "A b", "25%", "0%", "*", "/", "/a", "../x", "a/b", "example.com/a", "a.b.c", "v1", "10.0.0.0/24", "fd00::/64",
		"1.2.3.4", "::1", "*/5 * * * *", "@daily", "TZ=", "https://a.b/c", "0-3,5", "3-1", "-", "é", "\x00", "cpu", "memory",
		"requests.cpu", "hugepages-2Mi", "count/a.b", "None", "In", "Exists", "True", "Always", "Never", fmt.Sprintf("%0300d", 1),
	}
	return texts[c.one(len(texts))]
}
