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

// Compile turns a kind into the type that a server with these names serves. The
// error joins everything that is wrong with the definition.
func Compile(k *registry.Kind, p names.Profile) (*Type, error) {
	return (&compiler{kind: k, names: p, rules: compat.RulesOf(p, release.Newest)}).compile()
}

func (c *compiler) compile() (*Type, error) {
	t := c.typeOf()
	c.checkNames(t)
	c.versions(t)
	if len(c.faults) == 0 {
		c.behavior(t)
	}
	if err := errors.Join(c.faults...); err != nil {
		return nil, err
	}
	return t, nil
}

type compiler struct {
	kind    *registry.Kind
	names   names.Profile
	rules   compat.Rules
	plain   bool                    // the kind is of what a query or a call says, which need not have metadata
	schemas func() []*schema.Schema // see Type.schemas
	faults  []error
}

func (c *compiler) fault(format string, args ...any) {
	c.faults = append(c.faults, fmt.Errorf("%s: %w", c.kind, fmt.Errorf(format, args...)))
}

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

func (c *compiler) checkNames(t *Type) {
	k := c.kind
	if k.Err() != nil {
		c.fault("%w", k.Err())
	}
	if k.Group == "" && k.Custom() && k.Err() == nil {
		c.fault("spec.group is empty")
	}
	if k.Group != "" {
		c.form("Group", k.Group, meta.CheckDNSSubdomain)
	}
	if k.Scope != registry.Namespaced && k.Scope != registry.Cluster {
		c.fault("Scope %d is neither Namespaced nor Cluster", k.Scope)
	}
	if k.Kind == "" {
		c.fault("Kind is empty")
		return
	}
	if (k.Kind[0] < 'A' || k.Kind[0] > 'Z') && !k.Custom() {
		c.fault("Kind %q must begin with an upper-case letter", k.Kind)
	}
	c.form("Kind", strings.ToLower(k.Kind), meta.CheckDNS1035Label)
	c.form("ListKind", strings.ToLower(t.ListKind), meta.CheckDNS1035Label)
	c.form("Plural", t.Plural, meta.CheckDNS1035Label)
	c.form("Singular", t.Singular, meta.CheckDNS1035Label)
	if t.ListKind == t.Kind {
		c.fault("ListKind is the same as Kind")
	}
	for i, s := range t.ShortNames {
		c.form("ShortNames", s, meta.CheckDNS1035Label)
		c.once("ShortNames", t.ShortNames[:i], s)
	}
	for i, s := range t.Categories {
		c.form("Categories", s, meta.CheckDNS1035Label)
		c.once("Categories", t.Categories[:i], s)
	}
	c.declared(t)
}

func (c *compiler) form(what, word string, check func(string) []string) {
	for _, why := range check(word) {
		c.fault("%s %q %s", what, word, why)
	}
}

func (c *compiler) versions(t *Type) {
	storage := 0
	for at, kv := range c.kind.Versions {
		c.form("Version", kv.Name, meta.CheckDNS1035Label)
		group := t.Group
		if kv.Group != "" {
			c.form("Group", kv.Group, meta.CheckDNSSubdomain)
			group = c.names.Group(kv.Group)
		}
		if t.VersionIn(meta.GroupVersion{Group: group, Version: kv.Name}) != nil {
			c.fault("version %q is given twice", &kv)
		}
		v := &Version{Type: t, at: at, Group: group, Name: kv.Name, Deprecated: c.deprecation(kv, group), lacks: kv.MissingSubresources, Served: kv.Served, Dummy: t.OnlySubresources[kv.String()]}
		if v.columns = v; v.Deprecated != "" {
			v.Removed = kv.Lifetime.Removed
		}
		if c.schemas == nil {
			v.schema = c.schema(kv)
		}
		v.rules = sync.OnceValue(func() (r ruled) {
			r.rules, r.faults = cel.Compile(context.Background(), v.Schema(), t.Names, nil) // for all, whoever asks first
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
		t.lean()
		t.Source = Source(c.kind, c.names)
	}
	if storage != 1 && c.kind.Err() == nil {
		c.fault("exactly one version must be the storage version, not %d", storage)
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

// conversions makes those of a kind whose versions have structs of their own.
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
			c.versionFaults(kv.Name, err)
		}
		if v.schema.HasUnique() && (err != nil || !v.conversion.SameShape) {
			c.fault("version %q: unique is said in the hub", kv.Name)
		}
	}
}

// successor ends the warning of a version of a definition that has no text of its own with the
// version to use instead: the first that is served, not deprecated and of higher priority.
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

// deprecation is the warning for callers of a deprecated version.
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

// versionFaults takes each of joined errors as a fault of its own.
func (c *compiler) versionFaults(version string, err error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			c.versionFaults(version, e)
		}
		return
	}
	c.fault("version %q: %w", version, err)
}

func (c *compiler) schema(kv registry.KindVersion) *schema.Schema {
	if kv.Schema == nil {
		return nil
	}
	s, err := kv.Schema(c.names)
	if err != nil {
		c.versionFaults(kv.Name, err)
		return nil
	}
	if s == nil {
		return nil
	}
	if err := s.Compile(); err != nil {
		c.versionFaults(kv.Name, err)
	}
	if !s.Struct.Canonical() {
		return s
	}
	for _, f := range []string{"apiVersion", "kind"} {
		if s.Struct.Field(f).Type() != schema.String {
			c.fault("the field %s is missing: put meta.TypeMeta into the struct, inline", f)
		}
	}
	if m := s.Struct.Field("metadata"); c.plain && m == nil {
		return s
	} else if m == nil || m.Schema.Struct != schema.Metadata(c.names).Struct && c.kind.Act == nil {
		c.fault("the field metadata is missing: add a meta.ObjectMeta with the json name metadata")
	}
	return s
}

func (c *compiler) behavior(t *Type) {
	k := c.kind
	t.Behavior = k.Hooks(t.Hub.schema, c.names)
	if t.Upgrade != nil && k.Custom() {
		c.fault("Upgrade is for kinds of Go structs")
	}
	for _, s := range k.Subresources {
		t.Subresources = append(t.Subresources, Subresource{Subresource: s, Body: c.body(s)})
	}
	if t.Status && t.Subresource("status") == nil {
		for _, v := range t.Versions {
			if v.schema != nil && v.schema.Struct.Canonical() && v.schema.Struct.Field("status") == nil && !slices.Contains(v.lacks, "status") {
				c.fault("Status is set, but version %q has no field status", v.Name)
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
	if !k.Custom() { // those of a definition stand in its own order
		slices.SortFunc(t.Subresources, func(a, b Subresource) int { return strings.Compare(a.Name, b.Name) })
	}
	c.subresources(t)
	c.lacks(t)
	c.served(t)
	c.selectables(t)
}

// body compiles the kind of the body of a sub-resource, and returns its hub, or of one that
// acts the newest version.
func (c *compiler) body(s registry.Subresource) *Version {
	if s.Body == nil {
		return nil
	}
	t, err := (&compiler{kind: s.Body, names: c.names, rules: c.rules, plain: s.Connect != nil || s.Act != nil}).compile()
	if err != nil {
		c.fault("sub-resource %q: %w", s.Name, err)
		return nil
	}
	switch many := len(t.ServedVersions) != 1; {
	case many && s.Connect != nil:
		c.fault("sub-resource %q: its options have %d versions, not one", s.Name, len(t.ServedVersions))
	case many && s.Act == nil && !t.converts:
		c.fault("sub-resource %q: its body has %d versions and no hub, which Merge takes", s.Name, len(t.ServedVersions))
	case s.Act == nil || len(t.ServedVersions) == 0:
		return t.Hub
	}
	return t.VersionIn(t.ServedVersions[0])
}

// served gives each version the sub-resources that it serves, as its callers know them: a
// body that has a version in the same group and of the same name is of that.
func (c *compiler) served(t *Type) {
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

func (c *compiler) subresources(t *Type) {
	seen := map[string]bool{}
	for _, s := range t.Subresources {
		c.form("sub-resource", s.Name, meta.CheckDNSLabel)
		switch {
		case seen[s.Name]:
			c.fault("sub-resource %q is given twice", s.Name)
		case s.Connect != nil && (s.Act != nil || s.Merge != nil || s.Connect.Target == nil || s.Body == nil):
			c.fault("sub-resource %q connects, which takes a Target and a Body that says its options, and nothing else", s.Name)
		case s.Merge == nil && s.Act == nil && s.Connect == nil:
			c.fault("sub-resource %q has neither Merge, Act nor Connect", s.Name)
		case s.WriteOnly && s.Merge == nil:
			c.fault("sub-resource %q is WriteOnly, which is for one with a Merge", s.Name)
		}
		for i, field := range s.Metadata {
			if !slices.Contains(writableMetadata(), field) {
				c.fault("sub-resource %q: Metadata[%d]: %q is none of %s%s", s.Name, i, field, strings.Join(writableMetadata(), ", "), suggest.Near(field, writableMetadata()...))
			}
		}
		seen[s.Name] = true
	}
}

// Clashes returns what names the types of one server share although they may
// not: kind, list kind, plural, singular and short names within a group.
func Clashes(types []*Type) error {
	type word struct{ group, text string }
	taken := map[word]*Type{}
	var faults []error
	for _, t := range types {
		words := append([]string{t.Plural, t.Singular}, t.ShortNames...)
		for _, group := range t.groups() {
			for _, w := range words {
				other := taken[word{group, w}]
				if other != nil && other != t {
					faults = append(faults, fmt.Errorf("kind %s and kind %s share the name %q", other.GroupKind(), t.GroupKind(), w))
				}
				taken[word{group, w}] = t
			}
			for _, w := range []string{t.Kind, t.ListKind} {
				other := taken[word{group, w}]
				if other != nil && other != t {
					faults = append(faults, fmt.Errorf("%s and %s share the kind %q", other.GroupResource(), t.GroupResource(), w))
				}
				taken[word{group, w}] = t
			}
		}
	}
	return errors.Join(faults...)
}

// groups returns the groups of the versions, each once.
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
