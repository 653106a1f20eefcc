package registry

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/internal/jsonpath"
	"orch.io/controlplane/internal/manifests"
	"orch.io/controlplane/internal/wellknown"
)

// definitionKind is the kind of the documents that FromCRD reads.
const definitionKind = "CustomResourceDefinition"

// FromCRD makes a kind from a CustomResourceDefinition v1 in YAML or JSON. Its
// group and the extensions in its schemas are wire names. What is wrong with it
// is kept in it, see Err, for the Build of the server.
func FromCRD(doc []byte) *Kind {
	tree, _, err := codec.DecodeYAML(doc, codec.Limits{})
	if err != nil {
		return &Kind{Kind: definitionKind, err: err}
	}
	return FromDefinition(meta.NewObject(tree), nil)
}

// FromCRDDir makes a kind from each CustomResourceDefinition in the files of a
// directory and below it that end in .yaml, .yml or .json; a file may hold
// several documents, and documents of other kinds are passed over. The error
// tells of files that cannot be read.
func FromCRDDir(files fs.FS) ([]*Kind, error) {
	docs, err := CRDFiles(files)
	kinds := make([]*Kind, len(docs))
	for i, d := range docs {
		kinds[i] = FromDefinition(d, nil)
	}
	return kinds, err
}

// CRDFiles returns the CustomResourceDefinition objects in the files of a
// directory, as FromCRDDir finds them: for programs that create them as objects.
func CRDFiles(files fs.FS) ([]*meta.Object, error) {
	return manifests.Read(files, definitionKind)
}

// FromDefinition makes a kind from a CustomResourceDefinition object. It is called what
// accepted says, in the form of spec.names; nil is those, whether or not they are free. See
// FromCRD. Only the Schema functions of its versions hold on to the object.
func FromDefinition(crd *meta.Object, accepted map[string]any) *Kind {
	if accepted == nil {
		accepted = crd.Map("spec", "names")
	}
	schemas := schemasOf(crd)
	crd, words := withoutSchemas(crd), meta.NewObject(codec.Detach(accepted))
	k := &Kind{
		Group: crd.String("spec", "group"), custom: true,
		Kind: words.String("kind"), ListKind: words.String("listKind"), Plural: words.String("plural"), Singular: words.String("singular"),
		ShortNames: words.Strings("shortNames"), Categories: words.Strings("categories"),
	}
	k.Reference = &compat.Reference{
		PutWithVersion: true, NamesKind: true, SortedUnknown: true, AnyFinalizer: true,
		DeleteAnswersStatus: true, NoProtobuf: true, ListContinue: true, NamedItems: true, DelegatedPaths: true,
	}
	if crd.String("kind") != definitionKind || !strings.HasSuffix(crd.String("apiVersion"), "/v1") {
		k.fault("the document is %s %q, not a %s of version v1", crd.String("apiVersion"), crd.String("kind"), definitionKind)
		return k
	}
	switch scope := crd.String("spec", "scope"); scope {
	case "Namespaced":
	case "Cluster":
		k.Scope = Cluster
	default:
		k.fault("spec.scope %q is neither Namespaced nor Cluster", scope)
	}
	switch s := crd.String("spec", "conversion", "strategy"); s {
	case "", "None":
	case "Webhook":
		if k.webhook = crd.Map("spec", "conversion", "webhook"); k.webhook == nil {
			k.fault("spec.conversion.webhook is missing")
		}
	default:
		k.fault("spec.conversion.strategy %q is neither None nor Webhook", s)
	}
	for i, v := range crd.List("spec", "versions") {
		m, ok := v.(map[string]any)
		if !ok {
			k.fault("spec.versions[%d] is no object", i)
			continue
		}
		k.addVersion(crd.String("apiVersion"), i, meta.NewObject(m), schemas[i], crd.Bool("spec", "preserveUnknownFields"))
	}
	return k
}

// schemasOf returns the documents of the schemas of a definition, one for each version.
func schemasOf(crd *meta.Object) []map[string]any {
	versions := crd.List("spec", "versions")
	docs := make([]map[string]any, len(versions))
	for i, v := range versions {
		m, _ := v.(map[string]any)
		docs[i] = meta.NewObject(m).Map("schema", "openAPIV3Schema")
	}
	return docs
}

// withoutSchemas returns the rest of a definition, which is small and by itself.
func withoutSchemas(crd *meta.Object) *meta.Object {
	spec := maps.Clone(crd.Map("spec"))
	versions := slices.Clone(crd.List("spec", "versions"))
	for i, v := range versions {
		if m, ok := v.(map[string]any); ok {
			m = maps.Clone(m)
			delete(m, "schema")
			versions[i] = m
		}
	}
	if versions != nil {
		spec["versions"] = versions
	}
	return meta.NewObject(codec.Detach(map[string]any{"apiVersion": crd.String("apiVersion"), "kind": crd.String("kind"), "spec": spec}))
}

func (k *Kind) fault(format string, args ...any) {
	k.err = errors.Join(k.err, fmt.Errorf(format, args...))
}

// addVersion adds a version as a definition gives it.
func (k *Kind) addVersion(apiVersion string, i int, v *meta.Object, doc map[string]any, preserves bool) {
	kv := KindVersion{Name: v.String("name"), Served: v.Bool("served"), Storage: v.Bool("storage")}
	if v.Bool("deprecated") {
		if kv.Deprecated = v.String("deprecationWarning"); kv.Deprecated == "" {
			kv.Deprecated = fmt.Sprintf("%s/%s %s is deprecated", k.Group, kv.Name, k.Kind)
		}
	}
	kv.Schema = func(p names.Profile) (*schema.Schema, error) {
		if want := p.Group(wellknown.GroupExtensions) + "/v1"; apiVersion != want {
			return nil, fmt.Errorf("the definition is of %s, this server knows %s", apiVersion, want)
		}
		at := check.At("spec", "versions").Index(i).Field("schema").Field("openAPIV3Schema")
		if preserves {
			return preserving(doc, p, at), nil
		}
		if doc == nil {
			return nil, fmt.Errorf("spec.versions[%d].schema.openAPIV3Schema is missing", i)
		}
		s, causes := schema.OpenAPI(doc, p, at)
		var faults []error
		for _, c := range causes {
			faults = append(faults, fmt.Errorf("%s: %s", c.Field, c.Message))
		}
		return s, errors.Join(faults...)
	}
	for _, name := range []string{"status", "scale"} {
		if v.Map("subresources", name) == nil {
			kv.MissingSubresources = append(kv.MissingSubresources, name)
		}
	}
	kv.Columns = definedColumns(v.List("additionalPrinterColumns"))
	if v.Map("subresources", "status") != nil {
		k.Status = true
	}
	if scale := v.Map("subresources", "scale"); scale != nil {
		o := meta.NewObject(scale)
		kv.Scale = &Scale{SpecReplicas: o.String("specReplicasPath"), StatusReplicas: o.String("statusReplicasPath"), Selector: o.String("labelSelectorPath")}
		k.Scale = cmp.Or(k.Scale, kv.Scale)
	}
	kv.Fields = map[string]string{} // it has none but its own
	k.addFields(&kv, i, v.List("selectableFields"))
	k.Versions = append(k.Versions, kv)
}

// addFields adds the selectable fields of a version, which are its own. The kind's are those
// that say the same of what is stored, whichever version names them: all, unless a webhook
// converts.
func (k *Kind) addFields(kv *KindVersion, i int, list []any) {
	for _, f := range list {
		m, _ := f.(map[string]any)
		text, _ := m["jsonPath"].(string)
		path, err := selectablePath(text)
		if err != nil {
			k.fault("spec.versions[%d].selectableFields: %w", i, err)
			continue
		}
		field := SelectableField{Name: strings.Join(path, "."), Path: path}
		named := func(f SelectableField) bool { return f.Name == field.Name }
		if !slices.ContainsFunc(kv.OwnFields, named) {
			kv.OwnFields = append(kv.OwnFields, field)
		}
		if (k.webhook == nil || kv.Storage) && !slices.ContainsFunc(k.Fields, named) {
			k.Fields = append(k.Fields, field)
		}
	}
}

// preserving returns the schema of a definition that keeps unknown fields. One that is not
// structural says nothing here, and none is any object.
func preserving(doc map[string]any, p names.Profile, at *check.Path) *schema.Schema {
	keep := p.Extension("preserve-unknown-fields")
	if s, causes := schema.OpenAPI(preservingAll(doc, keep, true), p, at); doc != nil && len(causes) == 0 {
		return s
	}
	s, _ := schema.OpenAPI(map[string]any{"type": "object", keep: true}, p, at)
	return s
}

// preservingAll returns a schema in which every object keeps unknown fields.
func preservingAll(doc map[string]any, keep string, root bool) map[string]any {
	out := maps.Clone(doc)
	if fields, ok := doc["properties"].(map[string]any); ok {
		fields = maps.Clone(fields)
		for name, v := range fields {
			if below, ok := v.(map[string]any); ok && !(root && name == "metadata") {
				fields[name] = preservingAll(below, keep, false)
			}
		}
		out["properties"] = fields
	}
	for _, word := range []string{"items", "additionalProperties"} {
		if below, ok := doc[word].(map[string]any); ok {
			out[word] = preservingAll(below, keep, false)
		}
	}
	if _, open := doc["additionalProperties"]; doc["type"] == "object" && !open {
		out[keep] = true
	}
	return out
}

// selectablePath returns the names of the fields that a path goes by. They may be such as a
// path cannot have elsewhere, with blanks, say: here nothing else than names can stand in it.
func selectablePath(text string) ([]string, error) {
	path, err := jsonpath.Fields(text)
	if rest, ok := strings.CutPrefix(text, "."); err != nil && ok && rest != "" && !strings.Contains(rest, "[") {
		return strings.Split(rest, "."), nil
	}
	return path, err
}

// definedColumns returns the columns of a definition up to the first one whose path cannot be parsed.
// The default is the age.
func definedColumns(list []any) []Column {
	if len(list) == 0 {
		return []Column{{Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp",
			Doc: "When the object was created, by the server's clock."}}
	}
	out := []Column{} // nil are the columns of the hub
	for _, e := range list {
		m, _ := e.(map[string]any)
		o := meta.NewObject(m)
		c := Column{
			Name: o.String("name"), Type: o.String("type"), Format: o.String("format"), Doc: o.String("description"),
			Priority: int(o.Int("priority")), JSONPath: o.String("jsonPath"),
		}
		if _, err := jsonpath.Parse(c.JSONPath); err != nil {
			return out
		}
		if c.Doc == "" {
			c.Doc = "What " + c.JSONPath + " leads to in the object."
		}
		out = append(out, c)
	}
	return out
}
