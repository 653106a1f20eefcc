package upgrades_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry/builtin"
	"orch.io/controlplane/server/internal/apitest"
)

const (
	formerDefinitions  = "/apis/apiextensions.k8s.io/v1beta1/customresourcedefinitions"
	presentDefinitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
)

// seen is the change that the newest release makes to each object of a definition: a label, and a field
// that no schema has.
const seen = `{"metadata":{"labels":{"seen":"yes"}},"later":{"of":["it"]}}`

// seenColumn is a column of a definition, which has a path under another name in each version.
func seenColumn(path string) map[string]any {
	return map[string]any{"name": "Seen", "type": "string", path: `.metadata.labels['seen']`}
}

// chosenDefinition is a definition that the oldest release accepted, and its objects.
type chosenDefinition struct {
	name    string
	was     map[string]any            // as v1beta1 had it
	objects map[string]map[string]any // by path
}

// TestUpgradeAndRollbackOfDefinitions: the newest release, which knows only v1, rewrites
// definitions that the oldest release wrote in the form of v1beta1, and their objects. Back
// under the oldest release, all of them equal their originals, field by field, except for
// intended changes.
func TestUpgradeAndRollbackOfDefinitions(t *testing.T) {
	t.Parallel()
	const oldest, number = "1.15", 100
	shape := schemaOfDefinitions(t, "v1beta1")
	dir := t.TempDir()
	a, end := releaseOver(t, dir, oldest)
	var all []*chosenDefinition
	objects := 0
	for i := range number {
		d := chooseDefinition(a, shape, i)
		objects += len(d.objects)
		all = append(all, d)
	}
	require.Greater(t, objects, number)
	end()

	a, end = releaseOver(t, dir, "")
	for i, d := range all {
		now := exact(t, a.Must(200, "GET", presentDefinitions+"/"+d.name, nil))
		require.Equal(t, partsOf(d.was), partsOf(now), d.name)
		for _, beside := range []string{"version", "validation", "subresources", "additionalPrinterColumns"} {
			assert.NotContains(t, now["spec"], beside)
		}
		m := apitest.Nested(now, "metadata").(map[string]any)
		m["labels"] = map[string]any{"seen": "yes"}
		if i%2 == 1 {
			first := apitest.Nested(now, "spec", "versions").([]any)[0].(map[string]any)
			columns, _ := first["additionalPrinterColumns"].([]any)
			first["additionalPrinterColumns"] = append(columns, seenColumn("jsonPath"))
		}
		a.Must(200, "PUT", presentDefinitions+"/"+d.name, now)
		for path, was := range d.objects {
			require.Equal(t, was, exact(t, a.Must(200, "GET", path, nil)), "nobody changed it")
			a.Must(200, "PATCH", path, seen)
		}
	}
	end()

	a, end = releaseOver(t, dir, oldest)
	defer end()
	for i, d := range all {
		d.cameBack(a, i%2 == 1)
	}
}

// cameBack asserts that a definition and its objects are unchanged except for the changes of the newest
// release.
func (d *chosenDefinition) cameBack(a *apitest.Client, column bool) {
	is := exact(a.T, a.Must(200, "GET", formerDefinitions+"/"+d.name, nil))
	want := partsOf(d.was)
	if column {
		first := want[0]
		columns, _ := first["additionalPrinterColumns"].([]any)
		first["additionalPrinterColumns"] = append(columns, seenColumn("jsonPath"))
	}
	require.Equal(a.T, want, partsOf(is), d.name)
	apart(a.T, d.was, is)
	if column {
		for _, tree := range []map[string]any{d.was, is} {
			delete(apitest.Nested(tree, "metadata").(map[string]any), "generation")
			delete(apitest.Nested(tree, "spec").(map[string]any), "additionalPrinterColumns")
			for _, v := range apitest.Nested(tree, "spec", "versions").([]any) {
				delete(v.(map[string]any), "additionalPrinterColumns")
			}
		}
	}
	require.Equal(a.T, d.was, is, d.name)
	for path, was := range d.objects {
		is := exact(a.T, a.Must(200, "GET", path, nil))
		apart(a.T, was, is)
		if _, keeps := was["unknown"]; keeps {
			was["later"] = map[string]any{"of": []any{"it"}}
		}
		delete(was["metadata"].(map[string]any), "generation")
		delete(is["metadata"].(map[string]any), "generation")
		require.Equal(a.T, was, is, path)
	}
}

// apart removes from an object, before and after, the changes that it must have got meanwhile.
func apart(t testing.TB, was, is map[string]any) {
	assert.Equal(t, "yes", apitest.NestedString(is, "metadata", "labels", "seen"))
	for _, tree := range []map[string]any{was, is} {
		m := apitest.Nested(tree, "metadata").(map[string]any)
		for _, field := range []string{"labels", "managedFields", "resourceVersion"} {
			delete(m, field)
		}
	}
}

// schemaOfDefinitions returns the schema of a version of definitions.
func schemaOfDefinitions(t *testing.T, version string) *schema.Schema {
	for _, k := range builtin.Kinds() {
		if k.Kind == "CustomResourceDefinition" {
			typ, err := resource.Compile(k, names.Kubernetes)
			require.NoError(t, err)
			return typ.Version(version).Schema()
		}
	}
	require.Fail(t, "there is no such kind")
	return nil
}

// partsOf returns the versions of a definition, v1 or v1beta1, in the format of v1.
func partsOf(definition map[string]any) (parts []map[string]any) {
	spec := definition["spec"].(map[string]any)
	for _, v := range spec["versions"].([]any) {
		part := maps.Clone(v.(map[string]any))
		for field, beside := range map[string]string{"schema": "validation", "subresources": "subresources", "additionalPrinterColumns": "additionalPrinterColumns"} {
			if part[field] == nil && spec[beside] != nil {
				part[field] = spec[beside]
			}
		}
		if columns, ok := part["additionalPrinterColumns"].([]any); ok {
			part["additionalPrinterColumns"] = presentColumns(columns)
		}
		parts = append(parts, part)
	}
	return parts
}

// presentColumns returns columns in the form of v1.
func presentColumns(columns []any) (out []any) {
	for _, c := range columns {
		c := maps.Clone(c.(map[string]any))
		if path, ok := c["JSONPath"]; ok {
			delete(c, "JSONPath")
			c["jsonPath"] = path
		}
		out = append(out, c)
	}
	return out
}

// chooseDefinition creates a random definition that the server accepts, and objects of it.
func chooseDefinition(a *apitest.Client, shape *schema.Schema, number int) *chosenDefinition {
	d := &chosenDefinition{objects: map[string]map[string]any{}}
	for seed := uint64(0); ; seed++ {
		require.Less(a.T, seed, uint64(100), "no definition is taken")
		c := apitest.NewChooser(uint64(number), seed)
		obj := definition(&c, shape, number)
		if a.Do("POST", formerDefinitions, obj).Code == 201 {
			d.name = apitest.NestedString(obj, "metadata", "name")
			break
		}
	}
	a.AwaitEstablishedIn("v1beta1", d.name)
	d.was = exact(a.T, a.Must(200, "GET", formerDefinitions+"/"+d.name, nil))
	spec := d.was["spec"].(map[string]any)
	preserves := spec["preserveUnknownFields"] == true
	for seed := range uint64(20) {
		c := apitest.NewChooser(uint64(number), 1000+seed)
		part := partsOf(d.was)[c.Index(len(partsOf(d.was)))]
		if part["served"] != true || len(d.objects) == 3 {
			continue
		}
		root, _ := apitest.Nested(part, "schema", "openAPIV3Schema").(map[string]any)
		plural := apitest.NestedString(spec, "names", "plural")
		path := "/apis/example.com/" + part["name"].(string) + "/" + plural
		if spec["scope"] == "Namespaced" {
			path = "/apis/example.com/" + part["name"].(string) + "/namespaces/default/" + plural
		}
		obj := objectOf(&c, root)
		obj["apiVersion"], obj["kind"] = "example.com/"+part["name"].(string), apitest.NestedString(spec, "names", "kind")
		obj["metadata"] = map[string]any{"name": fmt.Sprintf("a%d", seed)}
		if a.Do("POST", path, obj).Code != 201 {
			continue
		}
		path += fmt.Sprintf("/a%d", seed)
		if apitest.Nested(part, "subresources", "status") != nil {
			a.Do("PATCH", path+"/status", map[string]any{"status": map[string]any{"seen": seed, "deep": map[string]any{"er": []any{nil, 1.5}}}})
		}
		got := exact(a.T, a.Must(200, "GET", path, nil))
		if preserves {
			require.Contains(a.T, got, "unknown", path)
		} else if root["x-kubernetes-preserve-unknown-fields"] != true {
			require.NotContains(a.T, got, "unknown", path)
		}
		d.objects[path] = got
	}
	return d
}

// definition returns a random definition in the form of v1beta1.
func definition(c *apitest.Chooser, shape *schema.Schema, number int) map[string]any {
	plural := fmt.Sprintf("things%d", number)
	spec := map[string]any{"group": "example.com", "names": map[string]any{"plural": plural, "kind": fmt.Sprintf("Thing%d", number)}}
	if c.Index(2) == 1 {
		spec["names"].(map[string]any)["categories"] = []any{"all"}
		spec["scope"] = []string{"Cluster", "Namespaced"}[c.Index(2)]
	}
	if preserve := []any{true, false, nil}[c.Index(3)]; preserve != nil {
		spec["preserveUnknownFields"] = preserve
	}
	words := []string{"v1", "v1beta1", "v2alpha1"}[:1+c.Index(3)]
	var versions []any
	fields := map[string]any{"spec": document(c, 0), "status": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}
	for i, name := range words {
		versions = append(versions, map[string]any{"name": name, "served": i == 0 || c.Index(4) > 0, "storage": i == len(words)-1})
	}
	for _, part := range []struct {
		beside, field string
		choose        func() any
	}{
		{"validation", "schema", func() any { return validation(c, shape, fields) }},
		{"subresources", "subresources", func() any { return subresources(c) }}, {"additionalPrinterColumns", "additionalPrinterColumns", func() any { return printerColumns(c) }},
	} {
		switch where := c.Index(4); {
		case where == 0 && (part.beside != "validation" || spec["preserveUnknownFields"] != false):
		case where == 1 && len(versions) > 1:
			for i, v := range versions {
				own := part.choose()
				if part.field == "schema" {
					own = map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "description": words[i], "properties": fields}}
				}
				v.(map[string]any)[part.field] = own
			}
		default:
			spec[part.beside] = part.choose()
		}
	}
	if how := c.Index(3); how == 0 && len(versions) == 1 {
		spec["version"] = "v1"
	} else {
		spec["versions"] = versions
		if how == 1 {
			spec["version"] = "v1"
		}
	}
	return map[string]any{"metadata": map[string]any{"name": plural + ".example.com"}, "spec": spec}
}

// validation returns a schema with some fields, often changed at random.
func validation(c *apitest.Chooser, shape *schema.Schema, fields map[string]any) any {
	root := map[string]any{"type": "object", "properties": fields}
	of, _ := shape.At("spec", "validation")
	if c.Index(2) == 1 {
		some := (*c)[:min(len(*c), 40)]
		return some.Change(of, map[string]any{"openAPIV3Schema": root}, 1)
	}
	return map[string]any{"openAPIV3Schema": root}
}

// document returns a random structural schema.
func document(c *apitest.Chooser, depth int) map[string]any {
	doc := map[string]any{"description": []string{"", "what it is", "é\n"}[c.Index(3)]}
	kind := c.Index(8)
	if depth > 3 {
		kind %= 4
	}
	switch kind {
	case 0:
		doc["type"], doc["maxLength"] = "string", 300
	case 1:
		doc["type"], doc["enum"] = "string", []any{"a", "b", ""}
	case 2:
		doc["type"], doc["minimum"] = "integer", c.Index(3)-1
	case 3:
		doc["type"] = []string{"boolean", "number"}[c.Index(2)]
	case 4:
		doc["type"], doc["items"] = "array", document(c, depth+1)
	case 5:
		doc["type"], doc["additionalProperties"] = "object", document(c, depth+1)
	default:
		fields := map[string]any{}
		for _, name := range []string{"a", "replicas", "c", "$ref", "unknown"}[:1+c.Index(5)] {
			fields[name] = document(c, depth+1)
		}
		doc["type"], doc["properties"], doc["nullable"] = "object", fields, c.Index(2) == 1
	}
	return doc
}

func subresources(c *apitest.Chooser) any {
	out := map[string]any{"status": map[string]any{}}
	if c.Index(2) == 1 {
		out["scale"] = map[string]any{"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
		if c.Index(2) == 1 {
			out["scale"].(map[string]any)["labelSelectorPath"] = ".status.selector"
		}
	}
	return out
}

func printerColumns(c *apitest.Chooser) any {
	var list []any
	for i := range 1 + c.Index(3) {
		column := map[string]any{
			"name": fmt.Sprintf("C%d", i), "type": []string{"string", "integer", "number", "boolean", "date"}[c.Index(5)],
			"JSONPath": []string{".spec.a", ".metadata.creationTimestamp", ".spec['$ref']", ".status.conditions[0].type", `.status.deep.er[*]`}[c.Index(5)],
		}
		if c.Index(2) == 1 {
			column["priority"], column["description"], column["format"] = c.Index(3), c.Text(), []string{"", "int32", "date-time"}[c.Index(3)]
		}
		list = append(list, column)
	}
	return list
}

// objectOf returns a random object of a schema, with a field that the schema does not have.
func objectOf(c *apitest.Chooser, doc map[string]any) map[string]any {
	obj := map[string]any{}
	var plain map[string]any // with the numbers that schemas are read with
	if data, err := json.Marshal(doc); err == nil && json.Unmarshal(data, &plain) == nil && plain != nil {
		if s, faults := schema.OpenAPI(plain, names.Kubernetes, check.At("schema")); len(faults) == 0 {
			if spec, ok := s.At("spec"); ok {
				obj["spec"] = c.Value(spec, 1)
			}
		}
	}
	obj["unknown"] = map[string]any{"deep": []any{c.Value(nil, 0), json.Number("1e30"), c.Text()}}
	for _, name := range slices.Sorted(maps.Keys(obj)) {
		if below, ok := obj[name].(map[string]any); ok && c.Index(2) == 1 {
			below["more"] = c.Value(nil, 0)
		}
	}
	return obj
}
