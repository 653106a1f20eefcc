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

// definitionKind is the kind of the documents that FromCRD accepts.
const definitionKind = "CustomResourceDefinition"

// FromCRD returns the kind that a CustomResourceDefinition v1 in YAML or JSON defines. Its group
// and the extensions in its schemas are wire names. Errors of the definition are kept in the kind,
// see Kind.Err, and reported when a server is built.
func FromCRD(doc []byte) *Kind {
	tree, _, err := codec.DecodeYAML(doc, codec.Limits{})
	if err != nil {
		return &Kind{Kind: definitionKind, err: err}
	}
	return FromDefinition(meta.NewObject(tree), nil)
}

// FromCRDDir returns the kinds of all CustomResourceDefinitions in the .yaml, .yml and .json files
// of a directory tree. A file may hold several documents; documents of other kinds are ignored. The
// error names the files that cannot be read; the kinds of the other files are still returned.
func FromCRDDir(files fs.FS) ([]*Kind, error) {
	docs, err := CRDFiles(files)
	kinds := make([]*Kind, len(docs))
	for i, d := range docs {
		kinds[i] = FromDefinition(d, nil)
	}
	return kinds, err
}

// CRDFiles returns the CustomResourceDefinitions that FromCRDDir finds as objects, for programs
// that create them in a server.
func CRDFiles(files fs.FS) ([]*meta.Object, error) {
	return manifests.Read(files, definitionKind)
}

// FromDefinition returns the kind that a CustomResourceDefinition object defines, see FromCRD.
// accepted holds the names of the kind in the form of spec.names; if it is nil, spec.names is used,
// whether or not the names are free. The kind does not retain crd, except for the schemas, which
// the Schema functions of its versions use.
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
		k.errorf("the document is %s %q, not a %s of version v1", crd.String("apiVersion"), crd.String("kind"), definitionKind)
		return k
	}
	switch scope := crd.String("spec", "scope"); scope {
	case "Namespaced":
	case "Cluster":
		k.Scope = Cluster
	default:
		k.errorf("spec.scope %q is neither Namespaced nor Cluster", scope)
	}
	switch s := crd.String("spec", "conversion", "strategy"); s {
	case "", "None":
	case "Webhook":
		if k.webhook = crd.Map("spec", "conversion", "webhook"); k.webhook == nil {
			k.errorf("spec.conversion.webhook is missing")
		}
	default:
		k.errorf("spec.conversion.strategy %q is neither None nor Webhook", s)
	}
	for i, v := range crd.List("spec", "versions") {
		m, ok := v.(map[string]any)
		if !ok {
			k.errorf("spec.versions[%d] is not an object", i)
			continue
		}
		k.addVersion(crd.String("apiVersion"), i, meta.NewObject(m), schemas[i], crd.Bool("spec", "preserveUnknownFields"))
	}
	return k
}

// schemasOf returns the OpenAPI schemas of the versions of a definition, in their order.
func schemasOf(crd *meta.Object) []map[string]any {
	versions := crd.List("spec", "versions")
	docs := make([]map[string]any, len(versions))
	for i, v := range versions {
		m, _ := v.(map[string]any)
		docs[i] = meta.NewObject(m).Map("schema", "openAPIV3Schema")
	}
	return docs
}

// withoutSchemas returns a copy of a definition without schemas. It shares no memory with crd, so
// that it does not keep the schemas in memory.
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

// errorf records an error of the declaration.
func (k *Kind) errorf(format string, args ...any) {
	k.err = errors.Join(k.err, fmt.Errorf(format, args...))
}

// addVersion adds version i of a definition. doc is its schema, and preserves is
// spec.preserveUnknownFields.
func (k *Kind) addVersion(apiVersion string, i int, v *meta.Object, doc map[string]any, preserves bool) {
	kv := KindVersion{Name: v.String("name"), Served: v.Bool("served"), Storage: v.Bool("storage")}
	if v.Bool("deprecated") {
		if kv.Deprecated = v.String("deprecationWarning"); kv.Deprecated == "" {
			kv.Deprecated = fmt.Sprintf("%s/%s %s is deprecated", k.Group, kv.Name, k.Kind)
		}
	}
	kv.Schema = func(p names.Profile) (*schema.Schema, error) {
		if want := p.Group(wellknown.GroupExtensions) + "/v1"; apiVersion != want {
			return nil, fmt.Errorf("the definition has apiVersion %s, but this server supports %s", apiVersion, want)
		}
		at := check.At("spec", "versions").Index(i).Field("schema").Field("openAPIV3Schema")
		if preserves {
			return preserving(doc, p, at), nil
		}
		if doc == nil {
			return nil, fmt.Errorf("spec.versions[%d].schema.openAPIV3Schema is missing", i)
		}
		s, causes := schema.OpenAPI(doc, p, at)
		var errs []error
		for _, c := range causes {
			errs = append(errs, fmt.Errorf("%s: %s", c.Field, c.Message))
		}
		return s, errors.Join(errs...)
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
	kv.Fields = map[string]string{} // a version has only its own fields
	k.addFields(&kv, i, v.List("selectableFields"))
	k.Versions = append(k.Versions, kv)
}

// addFields adds the selectable fields of a version. A field also belongs to the kind if its value
// can be read from the stored object: without a conversion webhook this holds for the fields of all
// versions, otherwise only for those of the storage version.
func (k *Kind) addFields(kv *KindVersion, i int, list []any) {
	for _, f := range list {
		m, _ := f.(map[string]any)
		text, _ := m["jsonPath"].(string)
		path, err := selectablePath(text)
		if err != nil {
			k.errorf("spec.versions[%d].selectableFields: %w", i, err)
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

// preserving returns the schema of a definition with preserveUnknownFields. If the schema is
// missing or not structural, any object is valid.
func preserving(doc map[string]any, p names.Profile, at *check.Path) *schema.Schema {
	keep := p.Extension("preserve-unknown-fields")
	if s, causes := schema.OpenAPI(preservingAll(doc, keep, true), p, at); doc != nil && len(causes) == 0 {
		return s
	}
	s, _ := schema.OpenAPI(map[string]any{"type": "object", keep: true}, p, at)
	return s
}

// preservingAll returns a copy of a schema in which every object keeps unknown fields.
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

// selectablePath returns the field names of a path. Unlike other paths, it may contain characters
// such as blanks in names, because it consists only of names.
func selectablePath(text string) ([]string, error) {
	path, err := jsonpath.Fields(text)
	if rest, ok := strings.CutPrefix(text, "."); err != nil && ok && rest != "" && !strings.Contains(rest, "[") {
		return strings.Split(rest, "."), nil
	}
	return path, err
}

// definedColumns returns the columns of a version of a definition, up to the first whose path
// cannot be parsed. The default is the age.
func definedColumns(list []any) []Column {
	if len(list) == 0 {
		return []Column{{Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp",
			Doc: "When the object was created, by the server's clock."}}
	}
	out := []Column{} // not nil, which would mean the columns of the hub
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
