package registry

import "orch.io/controlplane/api/meta"

// Type tells of a resource type that a server serves: of a Kind under the names of
// that server. It must not be changed.
type Type struct {
	Group, Kind, ListKind, Plural, Singular string // wire names
	ShortNames, Categories                  []string
	Namespaced                              bool
	AllVersions                             []meta.GroupVersion // by priority, the most stable first; some may be in another group
	ServedVersions                          []meta.GroupVersion // those that callers can name
	HubVersion                              string              // of Group, that objects are in for hooks, admission and the clients in the process
	Virtual                                 bool                // nothing of the type is stored, such as reviews
	Closed                                  bool                // no objects may be created any more: the definition is being deleted
}

// GroupResource returns the wire name of the type.
func (t *Type) GroupResource() meta.GroupResource {
	return meta.GroupResource{Group: t.Group, Resource: t.Plural}
}

// GroupKind returns the wire name of the kind.
func (t *Type) GroupKind() meta.GroupKind { return meta.GroupKind{Group: t.Group, Kind: t.Kind} }
