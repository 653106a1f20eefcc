package rbac

import (
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/older"
)

// Kinds of subjects.
const (
	UserKind           = "User"
	GroupKind          = "Group"
	ServiceAccountKind = "ServiceAccount"
)

// RoleBinding grants a Role or a ClusterRole to subjects within its namespace.
type RoleBinding struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Subjects that are granted the role.
	Subjects []Subject `json:"subjects,omitempty" protobuf:"2" schema:"listType=atomic"`

	// RoleRef is a Role in the namespace of the binding or a ClusterRole. It is immutable.
	RoleRef RoleRef `json:"roleRef" protobuf:"3"`
}

// ClusterRoleBinding grants a ClusterRole to subjects in the whole cluster.
type ClusterRoleBinding struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Subjects that are granted the role.
	Subjects []Subject `json:"subjects,omitempty" protobuf:"2" schema:"listType=atomic"`

	// RoleRef is a ClusterRole. It is immutable.
	RoleRef RoleRef `json:"roleRef" protobuf:"3"`
}

// Subject is a user, a group or a service account.
type Subject struct {
	_ struct{} `schema:"mapType=atomic"`

	// Kind is User, Group or ServiceAccount.
	Kind string `json:"kind" protobuf:"1" schema:"enum=ServiceAccount|User|Group"`

	// APIGroup of the subject: empty for service accounts; for users and groups the RBAC group, which
	// is the default.
	APIGroup string `json:"apiGroup,omitempty" protobuf:"2"`

	// Name of the subject.
	Name string `json:"name" protobuf:"3" schema:"required"`

	// Namespace of a service account; empty for users and groups. A ClusterRoleBinding requires it for
	// service accounts.
	Namespace string `json:"namespace,omitempty" protobuf:"4"`
}

// RoleRef identifies a role.
type RoleRef struct {
	_ struct{} `schema:"mapType=atomic"`

	// APIGroup of the role; the default and only value is the RBAC group.
	APIGroup string `json:"apiGroup" protobuf:"1"`

	// Kind is Role or ClusterRole.
	Kind string `json:"kind" protobuf:"2"`

	// Name of the role.
	Name string `json:"name" protobuf:"3" schema:"required,format=path-segment"`
}

func roleBindings() *registry.Kind {
	return registry.Of(registry.Definition[RoleBinding]{
		Group:   wellknown.GroupRBAC,
		Version: version,
		Versions: []registry.VersionOf[RoleBinding]{
			older.Same[RoleBinding]("v1beta1", "1.6", "1.17", "1.22", wellknown.GroupRBAC+"/v1"),
		},
		Columns: bindingColumns(),
		Default: func(w *registry.Change[RoleBinding]) { defaultBinding(w.Names, w.New.Subjects, &w.New.RoleRef) },
		Validate: func(w *registry.Change[RoleBinding]) {
			b := binding{w.Names, w.New.Subjects, w.New.RoleRef, true}
			b.validate(&w.Violations)
			if w.Old != nil {
				b.checkRoleRefUnchanged(&w.Violations, w.Old.RoleRef)
			}
		},
		ValidateName: meta.NameChecker(meta.CheckPathSegment),
		Reference:    reference(),
	})
}

func clusterRoleBindings() *registry.Kind {
	return registry.Of(registry.Definition[ClusterRoleBinding]{
		Group:   wellknown.GroupRBAC,
		Version: version,
		Versions: []registry.VersionOf[ClusterRoleBinding]{
			older.Same[ClusterRoleBinding]("v1beta1", "1.6", "1.17", "1.22", wellknown.GroupRBAC+"/v1"),
		},
		Scope:   registry.Cluster,
		Columns: bindingColumns(),
		Default: func(w *registry.Change[ClusterRoleBinding]) { defaultBinding(w.Names, w.New.Subjects, &w.New.RoleRef) },
		Validate: func(w *registry.Change[ClusterRoleBinding]) {
			b := binding{w.Names, w.New.Subjects, w.New.RoleRef, false}
			b.validate(&w.Violations)
			if w.Old != nil {
				b.checkRoleRefUnchanged(&w.Violations, w.Old.RoleRef)
			}
		},
		ValidateName: meta.NameChecker(meta.CheckPathSegment),
		Reference:    reference(),
	})
}

func bindingColumns() []registry.Column {
	named := func(kind string) func(o *meta.Object) any {
		return func(o *meta.Object) any { return subjectNames(o, kind) }
	}
	return []registry.Column{
		{Name: "Role", Type: "string", Doc: "The granted role.", Cell: func(o *meta.Object) any {
			return o.String("roleRef", "kind") + "/" + o.String("roleRef", "name")
		}},
		registry.AgeColumn(),
		{Name: "Users", Type: "string", Doc: "The users that are granted the role.", Priority: 1, Cell: named(UserKind)},
		{Name: "Groups", Type: "string", Doc: "The groups that are granted the role.", Priority: 1, Cell: named(GroupKind)},
		{Name: "ServiceAccounts", Type: "string", Doc: "The service accounts that are granted the role.", Priority: 1, Cell: named(ServiceAccountKind)},
	}
}

// subjectNames joins the names of the subjects of a kind.
func subjectNames(o *meta.Object, kind string) string {
	var out []string
	for _, v := range o.List("subjects") {
		m, _ := v.(map[string]any)
		switch s := meta.NewObject(m); {
		case s.Kind() != kind:
		case kind == ServiceAccountKind:
			out = append(out, s.String("namespace")+"/"+s.String("name"))
		default:
			out = append(out, s.String("name"))
		}
	}
	return strings.Join(out, ", ")
}

func defaultBinding(p names.Profile, subjects []Subject, ref *RoleRef) {
	if ref.APIGroup == "" {
		ref.APIGroup = p.Group(wellknown.GroupRBAC)
	}
	for i := range subjects {
		if s := &subjects[i]; s.APIGroup == "" && (s.Kind == UserKind || s.Kind == GroupKind) {
			s.APIGroup = p.Group(wellknown.GroupRBAC)
		}
	}
}

// binding is the common view of both kinds of bindings, for validation.
type binding struct {
	names      names.Profile
	subjects   []Subject
	ref        RoleRef
	namespaced bool
}

func (b *binding) validate(f *check.Violations) {
	at := check.At("roleRef")
	f.OneOf(at.Field("apiGroup"), b.ref.APIGroup, b.names.Group(wellknown.GroupRBAC))
	if b.namespaced {
		f.OneOf(at.Field("kind"), b.ref.Kind, "Role", "ClusterRole")
	} else {
		f.OneOf(at.Field("kind"), b.ref.Kind, "ClusterRole")
	}
	for i, s := range b.subjects {
		b.checkSubject(f, check.At("subjects").Index(i), s)
	}
}

// checkRoleRefUnchanged reports a change of the role. Its message equals kube-apiserver's, which
// people search for.
func (b *binding) checkRoleRefUnchanged(f *check.Violations, old RoleRef) {
	if old != b.ref {
		f.Invalid(check.At("roleRef"), b.ref, "cannot change roleRef")
	}
}

func (b *binding) checkSubject(f *check.Violations, at *check.Path, s Subject) {
	switch s.Kind {
	case ServiceAccountKind:
		if s.Name != "" {
			f.Format(at.Field("name"), s.Name, meta.CheckDNSSubdomain(s.Name))
		}
		f.OneOf(at.Field("apiGroup"), s.APIGroup, "")
		if !b.namespaced && s.Namespace == "" {
			f.Required(at.Field("namespace"), "")
		}
	case UserKind, GroupKind:
		f.OneOf(at.Field("apiGroup"), s.APIGroup, b.names.Group(wellknown.GroupRBAC))
	}
}
