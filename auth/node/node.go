// Package node authorizes the requests of node agents, which are the users
// system:node:NAME in the group system:nodes.
//
// A node may read a Secret, ConfigMap, claim, volume, VolumeAttachment or
// ServiceAccount, and request a token of the account, only while a pod bound to the
// node refers to the object. It may write its own Lease, Node, CSINode and
// ResourceSlices. The admission plugin NodeRestriction restricts these writes further,
// by their content. The graph of references is updated from the store before each
// decision.
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

// Resources in the graph.
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

const (
	UserPrefix = "system:node:" // prefix of the user names of node agents
	Group      = "system:nodes" // group of node agents
)

// Authorizer allows the requests that node agents need to run their pods. It has no
// opinion on other requests and other users, and never denies. It is safe for
// concurrent use.
type Authorizer struct {
	names names.Profile
	graph *client.Index[*graph]
}

// New returns an Authorizer for the objects of a server, which need not be built
// yet. The graph omits kinds that the server does not serve.
func New(c client.Client, p names.Profile) *Authorizer {
	types := []meta.GroupResource{{Resource: pods}, {Resource: volumes}, {Group: p.Group(wellknown.GroupStorage), Resource: attachments},
		{Group: p.Group(wellknown.GroupDevices), Resource: resourceSlices}}
	mirror := p.Wire(wellknown.MirrorPod)
	return &Authorizer{p, client.NewIndex(c, types, func() *graph { return newGraph(mirror) }, (*graph).apply)}
}

// Close stops the watch of the store.
func (n *Authorizer) Close() { n.graph.Close() }

// Name returns the node of a node agent. It returns false if the user is not a node
// agent.
func Name(u *auth.User) (string, bool) {
	if u == nil || !u.InGroup(Group) {
		return "", false
	}
	return strings.CutPrefix(u.Name, UserPrefix)
}

// Authorize allows the requests of node agents described in the package comment.
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
	switch reason := n.refusal(name, &a); reason {
	case "":
		return auth.Allow, "", nil
	case noRight:
		return auth.NoOpinion, "", nil
	default:
		return auth.NoOpinion, reason, nil
	}
}

// RulesFor returns incomplete rules for node agents, because their rights depend on
// single objects. Other users have no rules here.
func (n *Authorizer) RulesFor(_ context.Context, u *auth.User, _ string) auth.Rules {
	if _, ok := Name(u); !ok {
		return auth.Rules{}
	}
	return auth.Rules{Incomplete: true, Fault: "node authorizer does not support user rule resolution"}
}

// noRight is the refusal of a request that nodes never have the right to. Authorize
// returns it without a reason.
const noRight = "nodes have no such right"

// refusal returns the reason why the node may not do a, or "" if it may.
func (n *Authorizer) refusal(node string, a *auth.Attributes) string {
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
		return ownObject(node, a)
	case meta.GroupResource{Group: storage, Resource: "csinodes"}:
		return ownObject(node, a)
	case meta.GroupResource{Resource: "nodes"}:
		return nodeObjects(node, a)
	case meta.GroupResource{Resource: pods}:
		return n.pods(node, a)
	}
	if n.allNodes(a) {
		return ""
	}
	return noRight
}

// needed allows the verbs on an object that the node needs, but not on its
// subresources. Like the functions below, it returns the reason of a refusal, or "".
func (n *Authorizer) needed(node string, a *auth.Attributes, verbs ...string) string {
	if a.Subresource != "" {
		return "subresources of this type cannot be accessed"
	}
	return n.neededSub(node, a, verbs...)
}

// neededSub is like needed, but allows the subresource of a.
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

// ownObject allows access to the object with the node's name. Admission checks the name of
// a new object, which is not known yet.
func ownObject(node string, a *auth.Attributes) string {
	switch {
	case a.Subresource != "":
		return "subresources of this type cannot be accessed"
	case !slices.Contains([]string{"get", "create", "update", "patch", "delete"}, a.Verb):
		return "can only get, create, update, patch, or delete an object of this type"
	case a.Verb != "create" && a.Name != node:
		return "can only access the object with the same name as the requesting node"
	}
	return ""
}

// nodeObjects allows reads of the node's own Node, and writes of Nodes, which admission
// restricts to the own Node.
func nodeObjects(node string, a *auth.Attributes) string {
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

// pods allows reads of the pods bound to the node, and writes of pods, which
// admission restricts to them.
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

// slices allows access to the ResourceSlices with the node as spec.nodeName. Admission
// checks the spec of a new ResourceSlice, which is not known yet.
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

// selectsNode reports whether a field selector requires spec.nodeName to be the node.
func selectsNode(fields, node string) bool {
	for _, term := range strings.Split(fields, ",") {
		term = strings.Replace(term, "==", "=", 1)
		if term == "spec.nodeName="+node {
			return true
		}
	}
	return false
}

// allNodes reports whether every node may do a, independently of its pods.
func (n *Authorizer) allNodes(a *auth.Attributes) bool {
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
