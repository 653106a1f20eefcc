package resource

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/internal/cel"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/internal/release"
	"orch.io/controlplane/internal/suggest"
	"orch.io/controlplane/registry"
)

// Compile compiles a kind into the type that a server with the naming profile p serves. The error
// joins all errors of the declaration.
func Compile(k *registry.Kind, p names.Profile) (*Type, error) {
	return (&compiler{kind: k, names: p, rules: compat.RulesOf(p, release.Newest)}).compile()
}

func (c *compiler) compile() (*Type, error) {
	t := c.typeOf()
	c.checkNames(t)
	c.versions(t)
	if len(c.errs) == 0 {
		c.behavior(t)
	}
	if err := errors.Join(c.errs...); err != nil {
		return nil, err
	}
	return t, nil
}

// compiler compiles one kind. It collects errors instead of stopping at the first.
type compiler struct {
	kind    *registry.Kind
	names   names.Profile
	rules   compat.Rules
	plain   bool                    // the kind describes the options or the body of a call, which need not have metadata
	schemas func() []*schema.Schema // see Type.schemas
	errs    []error
}

func (c *compiler) errorf(format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf("%s: %w", c.kind, fmt.Errorf(format, args...)))
}

// typeOf returns the type without its versions. It derives the names that the kind does not
// declare.
func (c *compiler) typeOf() *Type {
	k := c.kind
	t := &Type{
		Type: registry.Type{
			Group: c.names.Group(k.Group), Kind: k.Kind, ListKind: k.ListKind, Plural: k.Plural, Singular: k.Singular,
			ShortNames: slices.Clone(k.ShortNames), Categories: slices.Clone(k.Categories),
			Namespaced: k.Scope == registry.Namespaced, Virtual: k.Act != nil || k.Read != nil,
		},
		Rules: c.rules, Status: k.Status, Fields: slices.Clone(k.Fields), ValidateName: k.ValidateName, Pool: k.Allocator,
		Behavior: k.Behavior, Names: c.names, Docs: k.Docs, Webhook: k.ConversionWebhook(),
	}
	if k.Reference != nil {
		t.Reference = *k.Reference
		t.Status = t.Status && (t.StatusRule == 0 || c.rules.Has(t.StatusRule))
	}
	if k.Custom() {
		t.Group = k.Group
	}
	t.Strategic, t.ConformOnRead = !k.Custom(), k.Custom()
	lower := strings.ToLower(k.Kind)
	if t.ListKind == "" {
		t.ListKind = k.Kind + "List"
	}
	if t.Singular == "" {
		t.Singular = lower
	}
	if t.Plural == "" {
		t.Plural = lower + "s"
	}
	return t
}

// checkNames checks the group and the names of the kind.
func (c *compiler) checkNames(t *Type) {
	k := c.kind
	if k.Err() != nil {
		c.errorf("%w", k.Err())
	}
	if k.Group == "" && k.Custom() && k.Err() == nil {
		c.errorf("spec.group is empty")
	}
	if k.Group != "" {
		c.checkFormat("Group", k.Group, meta.CheckDNSSubdomain)
	}
	if k.Scope != registry.Namespaced && k.Scope != registry.Cluster {
		c.errorf("Scope %d is neither Namespaced nor Cluster", k.Scope)
	}
	if k.Kind == "" {
		c.errorf("Kind is empty")
		return
	}
	if (k.Kind[0] < 'A' || k.Kind[0] > 'Z') && !k.Custom() {
		c.errorf("Kind %q must begin with an upper-case letter", k.Kind)
	}
	c.checkFormat("Kind", strings.ToLower(k.Kind), meta.CheckDNS1035Label)
	c.checkFormat("ListKind", strings.ToLower(t.ListKind), meta.CheckDNS1035Label)
	c.checkFormat("Plural", t.Plural, meta.CheckDNS1035Label)
	c.checkFormat("Singular", t.Singular, meta.CheckDNS1035Label)
	if t.ListKind == t.Kind {
		c.errorf("ListKind is the same as Kind")
	}
	for i, s := range t.ShortNames {
		c.checkFormat("ShortNames", s, meta.CheckDNS1035Label)
		c.checkDuplicate("ShortNames", t.ShortNames[:i], s)
	}
	for i, s := range t.Categories {
		c.checkFormat("Categories", s, meta.CheckDNS1035Label)
		c.checkDuplicate("Categories", t.Categories[:i], s)
	}
	c.checkDeclaration(t)
}

// checkFormat reports the violations that check finds in a word.
func (c *compiler) checkFormat(what, word string, check func(string) []string) {
	for _, why := range check(word) {
		c.errorf("%s %q %s", what, word, why)
	}
}

// versions compiles the versions and chooses the hub.
func (c *compiler) versions(t *Type) {
	storage := 0
	for at, kv := range c.kind.Versions {
		c.checkFormat("Version", kv.Name, meta.CheckDNS1035Label)
		group := t.Group
		if kv.Group != "" {
			c.checkFormat("Group", kv.Group, meta.CheckDNSSubdomain)
			group = c.names.Group(kv.Group)
		}
		if t.VersionIn(meta.GroupVersion{Group: group, Version: kv.Name}) != nil {
			c.errorf("duplicate version %q", &kv)
		}
		v := &Version{Type: t, at: at, Group: group, Name: kv.Name, Deprecated: c.deprecation(kv, group), lacks: kv.MissingSubresources, Served: kv.Served, DiscoveryKind: t.OnlySubresources[kv.String()]}
		if v.columns = v; v.Deprecated != "" {
			v.Removed = kv.Lifetime.Removed
		}
		if c.schemas == nil {
			v.schema = c.schema(kv)
		}
		v.rules = sync.OnceValue(func() (r compiledRules) {
			r.rules, r.faults = cel.Compile(context.Background(), v.Schema(), t.Names, nil) // shared by all requests, so it must not depend on the context of the first
			return r
		})
		v.Columns = c.columns(kv, v.schema)
		t.Versions = append(t.Versions, v)
		if kv.Conversion == nil {
			t.Hub = v
		}
		if kv.Storage {
			storage++
			t.Storage = v
		}
	}
	if t.schemas = c.schemas; c.kind.Custom() && t.schemas == nil {
		t.compactSchemas()
		t.Source = Source(c.kind, c.names)
	}
	if storage != 1 && c.kind.Err() == nil {
		c.errorf("exactly one version must be the storage version, not %d", storage)
	}
	if t.converts = slices.ContainsFunc(c.kind.Versions, func(kv registry.KindVersion) bool { return kv.Conversion != nil }); t.converts {
		c.conversions(t)
	} else {
		t.Hub = t.Storage
	}
	slices.SortStableFunc(t.Versions, func(a, b *Version) int { return CompareVersions(a.Name, b.Name) })
	for _, v := range t.Versions {
		t.AllVersions = append(t.AllVersions, v.GroupVersion())
	}
	t.Serve(func(*Version) bool { return true })
	if t.Hub != nil {
		t.HubVersion = t.Hub.Name
	}
}

// conversions compiles the conversions of a kind with a Go struct for each version.
func (c *compiler) conversions(t *Type) {
	for i, kv := range c.kind.Versions {
		v := t.Versions[i]
		if kv.Conversion == nil {
			continue
		}
		if kv.Columns == nil {
			v.Columns, v.columns = t.Hub.Columns, t.Hub
		}
		var err error
		if v.conversion, err = kv.Conversion(v.schema, c.names); err != nil {
			c.versionErrors(kv.Name, err)
		}
		if v.schema.HasUnique() && (err != nil || !v.conversion.SameShape) {
			c.errorf("version %q: unique is allowed only in the hub version", kv.Name)
		}
	}
}

// successor returns the end of the default deprecation warning of a custom kind: the version to use
// instead. This is the version of highest priority that is served, not deprecated and of higher
// priority than kv.
func (c *compiler) successor(kv registry.KindVersion, group string) string {
	kind := " " + c.kind.Kind
	if !c.kind.Custom() || kv.Deprecated != group+"/"+kv.Name+kind+" is deprecated" {
		return ""
	}
	best := kv.Name
	for _, v := range c.kind.Versions {
		if v.Served && v.Deprecated == "" && CompareVersions(v.Name, best) < 0 {
			best = v.Name
		}
	}
	if best == kv.Name {
		return ""
	}
	return "; use " + group + "/" + best + kind
}

// deprecation returns the warning for clients of a deprecated version.
func (c *compiler) deprecation(kv registry.KindVersion, group string) string {
	if l := kv.Lifetime; kv.Deprecated == "" && l.Deprecated != "" {
		kv.Deprecated = meta.GroupVersion{Group: group, Version: kv.Name}.String() + " " + c.kind.Kind + " is deprecated in v" + l.Deprecated + "+"
		if l.Removed != "" {
			kv.Deprecated += ", unavailable in v" + l.Removed + "+"
		}
	}
	if kv.Replacement == (meta.GroupVersionKind{}) {
		return kv.Deprecated + c.successor(kv, group)
	}
	now := kv.Replacement
	now.Group = c.names.Group(now.Group)
	return kv.Deprecated + "; use " + now.APIVersion() + " " + now.Kind
}

// versionErrors records each of the joined errors as an error of the version.
func (c *compiler) versionErrors(version string, err error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			c.versionErrors(version, e)
		}
		return
	}
	c.errorf("version %q: %w", version, err)
}

// schema returns the compiled schema of a version, nil if any object is valid.
func (c *compiler) schema(kv registry.KindVersion) *schema.Schema {
	if kv.Schema == nil {
		return nil
	}
	s, err := kv.Schema(c.names)
	if err != nil {
		c.versionErrors(kv.Name, err)
		return nil
	}
	if s == nil {
		return nil
	}
	if err := s.Compile(); err != nil {
		c.versionErrors(kv.Name, err)
	}
	if !s.Struct.Canonical() {
		return s
	}
	for _, f := range []string{"apiVersion", "kind"} {
		if s.Struct.Field(f).Type() != schema.String {
			c.errorf("the field %s is missing: embed meta.TypeMeta with the tag `json:\",inline\"`", f)
		}
	}
	if m := s.Struct.Field("metadata"); c.plain && m == nil {
		return s
	} else if m == nil || m.Schema.Struct != schema.Metadata(c.names).Struct && c.kind.Act == nil {
		c.errorf("the field metadata is missing: embed meta.ObjectMeta with the tag `json:\"metadata\"`")
	}
	return s
}

// behavior compiles the hooks, the subresources and the selectable fields. It runs only if the
// versions have no errors.
func (c *compiler) behavior(t *Type) {
	k := c.kind
	t.Behavior = k.Hooks(t.Hub.schema, c.names)
	if t.Upgrade != nil && k.Custom() {
		c.errorf("Upgrade is allowed only for kinds of Go structs")
	}
	for _, s := range k.Subresources {
		t.Subresources = append(t.Subresources, Subresource{Subresource: s, Body: c.body(s)})
	}
	if t.Status && t.Subresource("status") == nil {
		for _, v := range t.Versions {
			if v.schema != nil && v.schema.Struct.Canonical() && v.schema.Struct.Field("status") == nil && !slices.Contains(v.lacks, "status") {
				c.errorf("Status is set, but version %q has no field status", v.Name)
			}
		}
		t.Subresources = append(t.Subresources, Subresource{Subresource: registry.Subresource{Name: "status", Merge: mergeStatus}})
	}
	if k.Scale != nil && t.Subresource("scale") == nil {
		c.scale(t)
	}
	if s := t.Subresource("status"); s != nil && s.Metadata == nil {
		s.Metadata = t.StatusMetadata
	}
	if !k.Custom() { // subresources of a custom kind keep their own order
		slices.SortFunc(t.Subresources, func(a, b Subresource) int { return strings.Compare(a.Name, b.Name) })
	}
	c.checkSubresources(t)
	c.checkLacks(t)
	c.assignSubresources(t)
	c.selectables(t)
}

// body compiles the kind of the body of a subresource. It returns the hub, or the newest version if
// the subresource acts.
func (c *compiler) body(s registry.Subresource) *Version {
	if s.Body == nil {
		return nil
	}
	t, err := (&compiler{kind: s.Body, names: c.names, rules: c.rules, plain: s.Connect != nil || s.Act != nil}).compile()
	if err != nil {
		c.errorf("subresource %q: %w", s.Name, err)
		return nil
	}
	switch many := len(t.ServedVersions) != 1; {
	case many && s.Connect != nil:
		c.errorf("subresource %q: the kind of the options must have one version, not %d", s.Name, len(t.ServedVersions))
	case many && s.Act == nil && !t.converts:
		c.errorf("subresource %q: the kind of the body has %d versions but no hub, which Merge requires", s.Name, len(t.ServedVersions))
	case s.Act == nil || len(t.ServedVersions) == 0:
		return t.Hub
	}
	return t.VersionIn(t.ServedVersions[0])
}

// assignSubresources gives each version the subresources that it serves. The body of a subresource
// is in the version with the same group and name as the item's version, if the body's kind has it.
func (c *compiler) assignSubresources(t *Type) {
	for _, v := range t.Versions {
		v.Subresources = t.Subresources
		if len(t.Versions) == 1 && len(v.lacks) == 0 {
			return
		}
		v.Subresources = nil
		for _, s := range t.Subresources {
			if slices.Contains(v.lacks, s.Name) {
				continue
			}
			if s.Body != nil {
				s.Body = s.bodyIn(v.GVK().APIVersion())
			}
			v.Subresources = append(v.Subresources, s)
		}
	}
}

// checkSubresources checks the declarations of the subresources.
func (c *compiler) checkSubresources(t *Type) {
	seen := map[string]bool{}
	for _, s := range t.Subresources {
		c.checkFormat("subresource", s.Name, meta.CheckDNSLabel)
		switch {
		case seen[s.Name]:
			c.errorf("duplicate subresource %q", s.Name)
		case s.Connect != nil && (s.Act != nil || s.Merge != nil || s.Connect.Target == nil || s.Body == nil):
			c.errorf("subresource %q: Connect needs Target and Body and excludes Act and Merge", s.Name)
		case s.Merge == nil && s.Act == nil && s.Connect == nil:
			c.errorf("subresource %q needs Merge, Act or Connect", s.Name)
		case s.WriteOnly && s.Merge == nil:
			c.errorf("subresource %q: WriteOnly needs Merge", s.Name)
		}
		for i, field := range s.Metadata {
			if !slices.Contains(writableMetadata(), field) {
				c.errorf("subresource %q: Metadata[%d]: %q is not one of %s%s", s.Name, i, field, strings.Join(writableMetadata(), ", "), suggest.Near(field, writableMetadata()...))
			}
		}
		seen[s.Name] = true
	}
}

// CheckNameConflicts returns an error for each name that two types share within a group: kind, list kind,
// plural, singular and short names must be unique.
func CheckNameConflicts(types []*Type) error {
	type word struct{ group, text string }
	owners := map[word]*Type{}
	var errs []error
	for _, t := range types {
		words := append([]string{t.Plural, t.Singular}, t.ShortNames...)
		for _, group := range t.groups() {
			for _, w := range words {
				other := owners[word{group, w}]
				if other != nil && other != t {
					errs = append(errs, fmt.Errorf("kind %s and kind %s share the name %q", other.GroupKind(), t.GroupKind(), w))
				}
				owners[word{group, w}] = t
			}
			for _, w := range []string{t.Kind, t.ListKind} {
				other := owners[word{group, w}]
				if other != nil && other != t {
					errs = append(errs, fmt.Errorf("%s and %s share the kind %q", other.GroupResource(), t.GroupResource(), w))
				}
				owners[word{group, w}] = t
			}
		}
	}
	return errors.Join(errs...)
}

// groups returns the groups of the versions without duplicates.
func (t *Type) groups() []string {
	var list []string
	for _, v := range t.Versions {
		if !slices.Contains(list, v.Group) {
			list = append(list, v.Group)
		}
	}
	return list
}

func mergeStatus(obj, in *meta.Object) { obj.CopyField(in, "status") }
