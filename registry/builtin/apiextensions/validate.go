package apiextensions

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
)

// validate checks a definition. The spec is checked only if it changed, so that definitions stored
// before a rule existed can still be updated. The name is checked on create; immutable fields are
// checked on update.
func validate(w *registry.Change[meta.Object]) {
	d := definition{Object: w.New, old: w.Old, names: w.Names, v1beta1: w.Version.Version == "v1beta1"}
	if w.Old == nil {
		d.checkName()
	} else {
		d.checkImmutable(w.Old)
	}
	if w.Old == nil || !meta.Equal(w.Old.Map("spec"), w.New.Map("spec")) {
		d.checkSpec(w.Context)
		d.checkStoredVersions()
	}
	d.checkNames(false, "status", "acceptedNames")
	w.Violations = d.faults
}

// definition is a definition under validation.
type definition struct {
	*meta.Object
	old     *meta.Object // nil for a create
	names   names.Profile
	v1beta1 bool // the request is in version v1beta1
	rules   int  // number of CEL rules compiled so far
	faults  check.Violations
}

// maxRules limits the CEL rules of all versions together. Once it is reached, further versions are not
// compiled.
const maxRules = 2000

// preservesUnknownFields reports whether the definition predates structural schemas: a schema is
// optional, and unknown fields are kept.
func (d *definition) preservesUnknownFields() bool { return d.Bool("spec", "preserveUnknownFields") }

// versions returns the versions as objects.
func (d *definition) versions() []*meta.Object {
	var list []*meta.Object
	for _, v := range d.List("spec", "versions") {
		m, _ := v.(map[string]any)
		list = append(list, meta.NewObject(m))
	}
	return list
}

func (d *definition) checkName() {
	if want := d.String("spec", "names", "plural") + "." + d.String("spec", "group"); d.Name() != "" && d.Name() != want {
		d.faults.Invalid(check.At("metadata", "name"), d.Name(), "must be spec.names.plural+\".\"+spec.group")
	}
}

// checkImmutable checks the fields that cannot change once the definition is established.
func (d *definition) checkImmutable(old *meta.Object) {
	if !established(old) {
		return
	}
	for _, path := range [][]string{{"spec", "group"}, {"spec", "scope"}, {"spec", "names", "kind"}, {"spec", "names", "plural"}} {
		if now := d.String(path...); now != old.String(path...) {
			d.faults.Invalid(check.At(path...), now, "field is immutable")
		}
	}
}

func established(o *meta.Object) bool {
	return slices.ContainsFunc(o.List("status", "conditions"), func(v any) bool {
		m, _ := v.(map[string]any)
		return m["type"] == "Established" && m["status"] == "True"
	})
}

func (d *definition) checkSpec(ctx context.Context) {
	d.checkGroup()
	d.checkVersionNames()
	d.checkNames(true, "spec", "names")
	if d.preservesUnknownFields() && !d.v1beta1 && (d.old == nil || !d.old.Bool("spec", "preserveUnknownFields")) {
		d.faults.Invalid(check.At("spec", "preserveUnknownFields"), true,
			"cannot set to true, set "+d.names.Extension("preserve-unknown-fields")+" to true in spec.versions[*].schema instead")
	}
	d.checkConversion()
	d.checkVersions(ctx)
}

func (d *definition) checkGroup() {
	at, group := check.At("spec", "group"), d.String("spec", "group")
	if group == "" {
		return
	}
	if !strings.Contains(group, ".") {
		d.faults.Invalid(at, group, "should be a domain with at least one dot")
	}
	if d.names.Reserved(group) {
		d.checkApproval()
	}
}

// States of the approval annotation of a definition in a protected group.
const (
	approvalMissing = iota
	approvalInvalid
	approvalRefused
	approvalGiven
)

func approvalState(text string) int {
	link, err := url.ParseRequestURI(text)
	switch {
	case text == "":
		return approvalMissing
	case strings.HasPrefix(text, "unapproved"):
		return approvalRefused
	case err == nil && link.Host != "" && link.Scheme != "":
		return approvalGiven
	}
	return approvalInvalid
}

// checkApproval checks the approval annotation of a definition in a protected group: the URL of the
// approval, or a reason that begins with "unapproved". An update may keep its state.
func (d *definition) checkApproval() {
	key := d.names.Wire(wellknown.DefinitionApproval)
	text, at := d.Annotation(key), check.At("metadata", "annotations").Key(key)
	state := approvalState(text)
	if d.old != nil && approvalState(d.old.Annotation(key)) == state {
		return
	}
	must := fmt.Sprintf("protected groups must have approval annotation %q", key)
	switch state {
	case approvalMissing:
		d.faults.Required(at, must)
	case approvalInvalid:
		d.faults.Invalid(at, text, must+` with either a URL or a reason starting with "unapproved"`)
	}
}

// checkVersionNames checks the names of the versions and that exactly 1 of them is the storage version.
func (d *definition) checkVersionNames() {
	at := check.At("spec", "versions")
	seen := map[string]bool{}
	storage, unique := 0, true
	for i, v := range d.versions() {
		name := v.String("name")
		d.faults.Format(at.Index(i).Field("name"), name, meta.CheckDNS1035Label(name))
		unique = unique && !seen[name]
		seen[name] = true
		if v.Bool("storage") {
			storage++
		}
		d.checkDeprecationWarning(at.Index(i), v)
	}
	if !unique {
		d.faults.Invalid(at, len(seen), "must contain unique version names")
	}
	if storage != 1 {
		d.faults.Invalid(at, storage, "must have exactly one version marked as storage version")
	}
	if list := d.versions(); len(list) > 0 && list[0].String("name") != "" {
		name := list[0].String("name")
		d.faults.Format(check.At("spec", "version"), name, meta.CheckDNS1035Label(name))
	}
}

// checkDeprecationWarning checks the text of the deprecation warning of a version.
func (d *definition) checkDeprecationWarning(at *check.Path, v *meta.Object) {
	text, given := v.Get("deprecationWarning")
	if !given {
		return
	}
	word, _ := text.(string)
	path := at.Field("deprecationWarning")
	switch {
	case !v.Bool("deprecated"):
		d.faults.Invalid(path, word, "can only be set for deprecated versions")
	case word == "":
		d.faults.Invalid(path, word, "must not be an empty string")
	case len(word) > 256:
		d.faults.Invalid(path, word, "must be <= 256 characters long")
	}
	if i := strings.IndexFunc(word, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 {
		d.faults.Invalid(path, word, fmt.Sprintf("must only contain printable UTF-8 characters; non-printable character found at index %d", i))
	}
}

// checkNames checks the names of the resource at path, in spec.names or status.acceptedNames.
func (d *definition) checkNames(required bool, path ...string) {
	at, given := check.At(path...), meta.NewObject(d.Map(path...))
	for _, name := range []struct {
		field string
		form  func(string) []string
	}{
		{"plural", meta.CheckDNS1035Label}, {"singular", meta.CheckDNS1035Label}, {"kind", meta.CheckKind}, {"listKind", meta.CheckKind},
	} {
		switch w := given.String(name.field); {
		case w != "":
			d.faults.Format(at.Field(name.field), w, name.form(w))
		case required:
			d.faults.Required(at.Field(name.field), "")
		}
	}
	if k := given.String("kind"); k != "" && k == given.String("listKind") {
		d.faults.Invalid(at.Field("listKind"), k, "kind and listKind may not be the same")
	}
}

// checkVersions checks schema, subresources, columns and selectable fields of each version. If all
// versions have the same value, it is checked once and reported at the top-level path of v1beta1.
func (d *definition) checkVersions(ctx context.Context) {
	versions := d.versions()
	for i, v := range versions {
		if v.Map("schema", "openAPIV3Schema") == nil && !d.preservesUnknownFields() {
			d.faults.Required(check.At("spec", "versions").Index(i).Field("schema").Field("openAPIV3Schema"), "")
		}
	}
	for _, part := range []struct {
		field, shared string
		check         func(at *check.Path, v *meta.Object)
	}{
		{"schema", "validation", func(at *check.Path, v *meta.Object) { d.checkSchema(ctx, at, v) }}, {"subresources", "subresources", d.checkSubresources},
		{"additionalPrinterColumns", "additionalPrinterColumns", d.checkColumns}, {"selectableFields", "selectableFields", d.checkSelectableFields},
	} {
		if allEqual(versions, part.field) {
			part.check(check.At("spec", part.shared), versions[0])
			continue
		}
		for i, v := range versions {
			part.check(check.At("spec", "versions").Index(i).Field(part.field), v)
		}
	}
}

// allEqual reports whether all versions have the same value in the field; it is false without versions.
func allEqual(versions []*meta.Object, field string) bool {
	for _, v := range versions {
		if !meta.Equal(v.Tree()[field], versions[0].Tree()[field]) {
			return false
		}
	}
	return len(versions) > 0
}

func (d *definition) checkSubresources(at *check.Path, v *meta.Object) {
	scale := v.Map("subresources", "scale")
	if scale == nil {
		return
	}
	at = at.Field("scale")
	for _, p := range []struct {
		field    string
		under    []string
		words    string
		optional bool
	}{{"specReplicasPath", []string{".spec."}, ".spec", false}, {"statusReplicasPath", []string{".status."}, ".status", false},
		{"labelSelectorPath", []string{".spec.", ".status."}, "either .spec or .status", true}} {
		text, _ := scale[p.field].(string)
		switch {
		case text == "" && !p.optional:
			d.faults.Required(at.Field(p.field), "")
		case text == "":
		case text[0] != '.':
			d.faults.Invalid(at.Field(p.field), text, "must be a simple json path starting with .")
		case !slices.ContainsFunc(p.under, func(prefix string) bool { return strings.HasPrefix(text, prefix) }):
			d.faults.Invalid(at.Field(p.field), text, "should be a json path under "+p.words)
		}
	}
}

// maxColumns limits the printer columns of a version, because each column is computed for each object
// of a list.
const maxColumns = 128

func (d *definition) checkColumns(at *check.Path, v *meta.Object) {
	types := []string{"boolean", "date", "integer", "number", "string"}
	formats := []string{"byte", "date", "date-time", "double", "float", "int32", "int64", "password"}
	list := v.List("additionalPrinterColumns")
	if len(list) > maxColumns {
		d.faults.TooMany(at, len(list), maxColumns)
		return
	}
	for i, e := range list {
		m, _ := e.(map[string]any)
		c, at := meta.NewObject(m), at.Index(i)
		if c.String("name") == "" {
			d.faults.Required(at.Field("name"), "")
		}
		if t := c.String("type"); t == "" {
			d.faults.Required(at.Field("type"), "must be one of "+strings.Join(types, ","))
		} else if !slices.Contains(types, t) {
			d.faults.Invalid(at.Field("type"), t, "must be one of "+strings.Join(types, ","))
		}
		if f := c.String("format"); f != "" && !slices.Contains(formats, f) {
			d.faults.Invalid(at.Field("format"), f, "must be one of "+strings.Join(formats, ","))
		}
		if text := c.String("jsonPath"); text == "" {
			d.faults.Required(at.Field("JSONPath"), "")
		} else if text[0] != '.' {
			d.faults.Invalid(at.Field("JSONPath"), text, "must be a simple json path starting with .")
		}
	}
}

// maxSelectable limits the selectable fields of a version.
const maxSelectable = 8

func (d *definition) checkSelectableFields(at *check.Path, v *meta.Object) {
	list := v.List("selectableFields")
	if len(list) == 0 {
		return
	}
	doc := v.Map("schema", "openAPIV3Schema")
	root, _ := schema.OpenAPI(doc, d.names, nil)
	seen := map[string]bool{}
	for i, e := range list {
		m, _ := e.(map[string]any)
		text, _ := m["jsonPath"].(string)
		at := at.Index(i).Field("jsonPath")
		if i >= 100*maxSelectable {
			break
		}
		switch why := selectablePathViolation(root, text); {
		case text == "":
			d.faults.Required(at, "")
		case why != "":
			d.faults.Invalid(at, text, why)
		case seen[text]:
			d.faults.Duplicate(at, text)
		}
		seen[text] = true
	}
	if len(seen) > maxSelectable {
		d.faults.TooMany(at, len(seen), maxSelectable)
	}
}

// selectablePathViolation describes the violation in the path of a selectable field, or returns "". Any
// path is valid if root is nil, because the schema has violations of its own.
func selectablePathViolation(root *schema.Schema, text string) string {
	if root == nil {
		return ""
	}
	s, first := root, ""
	for rest := text; rest != ""; {
		if end := max(strings.IndexAny(rest, ".["), 0); rest[0] != '.' && rest[0] != '[' {
			return "is an invalid path: expected [ or . but got: " + rest[:end]
		}
		if rest[0] == '[' {
			return "is an invalid path: array notation is not allowed"
		}
		name := rest[1:]
		if name == "" {
			return "is an invalid path: unexpected end of JSON path"
		}
		if end := strings.IndexAny(name[1:], ".["); end >= 0 {
			name = name[:1+end]
		}
		rest = rest[1+len(name):]
		if f := s.Struct.Field(name); f != nil {
			s = f.Schema
		} else if s = s.Values; s == nil {
			return "is an invalid path: does not refer to a valid field"
		}
		if first == "" {
			first = name
		}
	}
	if first == "metadata" {
		return "must not point to fields in metadata"
	}
	switch s.Type {
	case schema.String, schema.Integer, schema.Boolean:
		return ""
	}
	return "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed."
}

// checkStoredVersions checks that status.storedVersions contains the storage version and only versions
// of the spec.
func (d *definition) checkStoredVersions() {
	at := check.At("status", "storedVersions")
	list := d.Strings("status", "storedVersions")
	if len(list) == 0 {
		d.faults.Invalid(at, list, "must have at least one stored version")
		return
	}
	known := map[string]bool{}
	for _, v := range d.versions() {
		known[v.String("name")] = true
		if v.Bool("storage") && !slices.Contains(list, v.String("name")) {
			d.faults.Invalid(at, list, "must have the storage version "+v.String("name"))
		}
	}
	for i, name := range list {
		if !known[name] {
			d.faults.Invalid(at.Index(i), name, fmt.Sprintf("missing from spec.versions; %[1]s was previously a storage version, and must remain in spec.versions "+
				"until a storage migration ensures no data remains persisted in %[1]s and removes %[1]s from status.storedVersions", name))
		}
	}
}
