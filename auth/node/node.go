// Package node decides what node agents may do: users system:node:NAME in the
// group system:nodes.
//
// A node reads a secret, a config map, a claim, a volume, an attachment or a service
// account, and gets a token of that, only while a pod that is bound to it refers to
// it; it keeps its own lease, Node, CSINode and ResourceSlices. What it may write of
// those, the NodeRestriction admission plugin narrows further. The graph of references
// follows the store with every question.
package node

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/podspec"
	"orch.io/controlplane/internal/wellknown"
)

// Resource types that the graph is made of or leads to.
const (
	pods           = "pods"
	secrets        = podspec.Secrets
	configMaps     = podspec.ConfigMaps
	accounts       = podspec.Accounts
	claims         = podspec.Claims
	volumes        = "persistentvolumes"
	attachments    = "volumeattachments"
	resourceClaims = podspec.ResourceClaims
	resourceSlices = "resourceslices"
)

// Names of node agents.
const (
	UserPrefix = "system:node:"
	Group      = "system:nodes"
)

// Authorizer allows node agents what their pods need. It has no opinion on
// anybody else, and never denies.
type Authorizer struct {
	names names.Profile
	graph *client.Index[*graph]
}

// New returns an Authorizer over the objects of a server. Kinds that the server
// does not have are left out of the graph.
func New(c client.Client, p names.Profile) *Authorizer {
	types := []meta.GroupResource{{Resource: pods}, {Resource: volumes}, {Group: p.Group(wellknown.GroupStorage), Resource: attachments},
		{Group: p.Group(wellknown.GroupDevices), Resource: resourceSlices}}
	mirror := p.Wire(wellknown.MirrorPod)
	return &Authorizer{p, client.NewIndex(c, types, func() *graph { return newGraph(mirror) }, (*graph).apply)}
}

// Close ends following the store.
func (n *Authorizer) Close() { n.graph.Close() }

// Name returns the node that a user is the agent of.
func Name(u *auth.User) (string, bool) {
	if u == nil || !u.InGroup(Group) {
		return "", false
	}
	return strings.CutPrefix(u.Name, UserPrefix)
}

// Authorize allows what the node of the caller needs.
func (n *Authorizer) Authorize(_ context.Context, a auth.Attributes) (auth.Decision, string, error) {
	name, ok := Name(a.User)
	switch {
	case !ok:
		return auth.NoOpinion, "", nil
	case name == "":
		return auth.NoOpinion, fmt.Sprintf("unknown node for user %q", a.User.Name), nil
	case a.Resource == "":
		return auth.NoOpinion, "", nil
	}
	switch why := n.refuses(name, &a); why {
	case "":
		return auth.Allow, "", nil
	case noRight:
		return auth.NoOpinion, "", nil
	default:
		return auth.NoOpinion, why, nil
	}
}

// RulesFor cannot tell the rules of nodes: they depend on single objects.
// Others have none here.
func (n *Authorizer) RulesFor(_ context.Context, u *auth.User, _ string) auth.Rules {
	if _, ok := Name(u); !ok {
		return auth.Rules{}
	}
	return auth.Rules{Incomplete: true, Fault: "node authorizer does not support user rule resolution"}
}

// noRight says that nodes never do that, which needs no reason.
const noRight = "nodes have no such right"

// refuses returns why a node may not do something, or "".
func (n *Authorizer) refuses(node string, a *auth.Attributes) string {
	storage, devices := n.names.Group(wellknown.GroupStorage), n.names.Group(wellknown.GroupDevices)
	switch (meta.GroupResource{Group: a.Group, Resource: a.Resource}) {
	case meta.GroupResource{Resource: secrets}, meta.GroupResource{Resource: configMaps}:
		return n.needed(node, a, "get", "list", "watch")
	case meta.GroupResource{Resource: claims}:
		if a.Subresource == "status" {
			return n.neededSub(node, a, "update", "patch")
		}
		return n.needed(node, a, "get")
	case meta.GroupResource{Resource: volumes}, meta.GroupResource{Group: storage, Resource: attachments},
		meta.GroupResource{Group: devices, Resource: resourceClaims}:
		return n.needed(node, a, "get")
	case meta.GroupResource{Group: devices, Resource: resourceSlices}:
		return n.slices(node, a)
	case meta.GroupResource{Resource: accounts}:
		if a.Subresource == "token" {
			return n.neededSub(node, a, "create")
		}
		return n.needed(node, a, "get")
	case meta.GroupResource{Group: n.names.Group(wellknown.GroupCoordination), Resource: "leases"}:
		if a.Namespace != n.names.SystemNamespace("node-lease") {
			return "leases can only be accessed in the namespace " + n.names.SystemNamespace("node-lease")
		}
		return own(node, a)
	case meta.GroupResource{Group: storage, Resource: "csinodes"}:
		return own(node, a)
	case meta.GroupResource{Resource: "nodes"}:
		return nodes(node, a)
	case meta.GroupResource{Resource: pods}:
		return n.pods(node, a)
	}
	if n.rest(a) {
		return ""
	}
	return noRight
}

// needed allows verbs on an object that a pod of the node leads to.
func (n *Authorizer) needed(node string, a *auth.Attributes, verbs ...string) string {
	if a.Subresource != "" {
		return "sub-resources of this type cannot be accessed"
	}
	return n.neededSub(node, a, verbs...)
}

func (n *Authorizer) neededSub(node string, a *auth.Attributes, verbs ...string) string {
	if !slices.Contains(verbs, a.Verb) {
		return "can only " + strings.Join(verbs, ", ") + " resources of this type"
	}
	if a.Name == "" {
		return "only single objects of this type can be accessed"
	}
	o := object{a.Resource, meta.Key{Namespace: a.Namespace, Name: a.Name}}
	needed := false
	n.graph.Read(func(g *graph) { needed = g.has(node, o) })
	if needed {
		return ""
	}
	return fmt.Sprintf("no relationship found between node '%s' and this object", node)
}

// own allows a node the object of its name. The name of a new object is not
// known yet; admission checks it.
func own(node string, a *auth.Attributes) string {
	switch {
	case a.Subresource != "":
		return "sub-resources of this type cannot be accessed"
	case !slices.Contains([]string{"get", "create", "update", "patch", "delete"}, a.Verb):
		return "can only get, create, update, patch, or delete an object of this type"
	case a.Verb != "create" && a.Name != node:
		return "can only access the object with the same name as the requesting node"
	}
	return ""
}

// nodes allows a node its own Node, and writes that admission narrows to it.
func nodes(node string, a *auth.Attributes) string {
	switch {
	case a.Subresource == "" && slices.Contains([]string{"create", "update", "patch"}, a.Verb),
		a.Subresource == "status" && slices.Contains([]string{"update", "patch"}, a.Verb):
		return ""
	case a.Subresource == "" && slices.Contains([]string{"get", "list", "watch"}, a.Verb):
		if a.Name == node {
			return ""
		}
		return fmt.Sprintf("node '%s' can only read its own Node object", node)
	}
	return noRight
}

// pods allows a node the pods bound to it, and writes that admission narrows to
// them.
func (n *Authorizer) pods(node string, a *auth.Attributes) string {
	switch a.Subresource {
	case "":
		switch a.Verb {
		case "create", "delete":
			return ""
		case "list", "watch":
			if selectsNode(a.Fields, node) {
				return ""
			}
		}
		return n.needed(node, a, "get", "list", "watch")
	case "status":
		if a.Verb == "update" || a.Verb == "patch" {
			return ""
		}
	case "eviction":
		if a.Verb == "create" {
			return ""
		}
	}
	return noRight
}

// slices allows a node the ResourceSlices that name it. What a new one says is not known
// yet; admission checks it.
func (n *Authorizer) slices(node string, a *auth.Attributes) string {
	switch a.Verb {
	case "create":
		if a.Subresource == "" {
			return ""
		}
	case "list", "watch", "deletecollection":
		if a.Subresource != "" {
			break
		}
		if selectsNode(a.Fields, node) {
			return ""
		}
		return "can only list, watch or delete collections of resourceslices with a field selector for spec.nodeName"
	}
	return n.needed(node, a, "get", "update", "patch", "delete")
}

// selectsNode reports whether a field selector narrows to the objects of the node.
func selectsNode(fields, node string) bool {
	for _, term := range strings.Split(fields, ",") {
		term = strings.Replace(term, "==", "=", 1)
		if term == "spec.nodeName="+node {
			return true
		}
	}
	return false
}

// rest allows what all nodes may do, whatever runs on them.
func (n *Authorizer) rest(a *auth.Attributes) bool {
	allowed := func(group, verbs string, resources ...string) bool {
		resource := a.Resource
		if a.Subresource != "" {
			resource += "/" + a.Subresource
		}
		return a.Group == n.names.Group(group) && slices.Contains(resources, resource) && slices.Contains(strings.Split(verbs, ","), a.Verb)
	}
	return allowed(wellknown.GroupAuthentication, "create", "tokenreviews") ||
		allowed(wellknown.GroupAuthorization, "create", "subjectaccessreviews", "localsubjectaccessreviews") ||
		allowed("", "get,list,watch", "services") ||
		allowed("", "get", "endpoints") ||
		allowed("", "create,update,patch", "events") ||
		allowed(wellknown.GroupEvents, "create,update,patch", "events") ||
		allowed(wellknown.GroupCertificates, "create,get,list,watch", "certificatesigningrequests") ||
		allowed(wellknown.GroupCertificates, "get,list,watch", "clustertrustbundles") ||
		allowed(wellknown.GroupStorage, "get,list,watch", "csidrivers") ||
		allowed(wellknown.GroupNode, "get,list,watch", "runtimeclasses")
}
