package plugins

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth/node"
	"orch.io/controlplane/internal/pki"
	"orch.io/controlplane/internal/podspec"
	"orch.io/controlplane/internal/wellknown"
)

// nodeRestriction limits a node agent to its own Node, the pods bound to it and the objects that these need.
// It complements the node authorizer, which does not see the body of a write. It runs in the mutating phase
// so that it checks the object before later plugins change it.
func nodeRestriction() admission.Plugin {
	return admission.Plugin{
		Name: "NodeRestriction", Default: admission.Off,
		Rules: slices.Concat(
			on("", []string{"pods", "pods/*", "nodes", "nodes/*", "persistentvolumeclaims", "persistentvolumeclaims/*"}, admission.Create, admission.Update, admission.Delete),
			on("", []string{"serviceaccounts/token"}, admission.Create),
			on(wellknown.GroupCoordination, []string{"leases"}, admission.Create, admission.Update, admission.Delete),
			on(wellknown.GroupStorage, []string{"csinodes"}, admission.Create, admission.Update, admission.Delete),
			on(wellknown.GroupDevices, []string{"resourceslices"}, admission.Create, admission.Update, admission.Delete),
			on(wellknown.GroupCertificates, []string{"certificatesigningrequests"}, admission.Create)),
		Mutate: func(ctx context.Context, r *admission.Request) error {
			name, ok := node.Name(r.User)
			switch {
			case !ok:
				return nil
			case name == "":
				return fmt.Errorf("could not determine node from user %q", r.User.Name)
			}
			target := strings.TrimSuffix(r.Resource.Resource+"/"+r.Subresource, "/")
			for _, right := range nodeRights() {
				if right.resource == target && slices.Contains(right.operations, r.Operation) {
					return right.check(ctx, name, r)
				}
			}
			return fmt.Errorf("node %q may not %s %s", name, strings.ToLower(string(r.Operation)), target)
		},
	}
}

// nodeRight allows node agents some operations on a resource, if check returns nil.
type nodeRight struct {
	resource   string
	operations []admission.Operation
	check      func(ctx context.Context, node string, r *admission.Request) error
}

// nodeRights returns all operations that agents may do on the resources in the rules of the plugin.
func nodeRights() []nodeRight {
	type ops = []admission.Operation
	return []nodeRight{
		{"pods", ops{admission.Create}, mirrorPod},
		{"pods", ops{admission.Delete}, podOfNode},
		{"pods/status", ops{admission.Update}, podStatusByNode},
		{"pods/eviction", ops{admission.Create}, evictionByNode},
		{"nodes", ops{admission.Create, admission.Update, admission.Delete}, ownNode},
		{"nodes/status", ops{admission.Update}, ownNode},
		{"persistentvolumeclaims/status", ops{admission.Update}, claimStatusByNode},
		{"serviceaccounts/token", ops{admission.Create}, tokenForNode},
		{"leases", ops{admission.Create, admission.Update, admission.Delete}, leaseOfNode},
		{"csinodes", ops{admission.Create, admission.Update, admission.Delete}, csiNodeOfNode},
		{"resourceslices", ops{admission.Create, admission.Update, admission.Delete}, sliceOfNode},
		{"certificatesigningrequests", ops{admission.Create}, certificateOfNode},
	}
}

// mirrorPod allows the agent to create the mirror of a static pod. The pod must not reference any object
// except the Node, because the references of its pods give a node access to these objects.
func mirrorPod(ctx context.Context, node string, r *admission.Request) error {
	pod := r.Object
	if _, mirror := pod.Annotations()[r.Server.Wire(wellknown.MirrorPod)]; !mirror {
		return fmt.Errorf("pod does not have %q annotation, node %q can only create mirror pods", r.Server.Wire(wellknown.MirrorPod), node)
	}
	if pod.String("spec", "nodeName") != node {
		return fmt.Errorf("node %q can only create pods with spec.nodeName set to itself", node)
	}
	if err := ownedByNode(ctx, node, r); err != nil {
		return err
	}
	if to := podspec.References(pod); len(to) > 0 {
		return fmt.Errorf("node %q can not create pods that reference %s", node, to[0].Resource)
	}
	if len(pod.List("spec", "resourceClaims")) > 0 {
		return fmt.Errorf("node %q can not create pods that reference resourceclaims", node)
	}
	for _, v := range pod.Objects("spec", "volumes") {
		if v.Map("csi") != nil {
			return fmt.Errorf("node %q can not create pods that reference csidrivers (via CSI volumes)", node)
		}
		if v.Map("glusterfs") != nil {
			return fmt.Errorf("node %q can not create pods that reference endpoints (via glusterFS volumes)", node)
		}
		for _, source := range v.Objects("projected", "sources") {
			for _, by := range [][2]string{{"serviceAccountToken", "serviceaccounts"}, {"clusterTrustBundle", "clustertrustbundles"}, {"podCertificate", "podcertificates"}} {
				if source.Map(by[0]) != nil {
					return fmt.Errorf("node %q can not create pods that reference %s (via projected volumes)", node, by[1])
				}
			}
		}
	}
	return nil
}

// ownedByNode checks that the Node is the only owner of the pod.
func ownedByNode(ctx context.Context, node string, r *admission.Request) error {
	owners := r.Object.Objects("metadata", "ownerReferences")
	switch len(owners) {
	case 0:
		return fmt.Errorf("node %q can only create pods with an owner reference set to itself", node)
	case 1:
	default:
		return fmt.Errorf("node %q can only create pods with a single owner reference set to itself", node)
	}
	owner := owners[0]
	itself := owner.APIVersion() == "v1" && owner.Kind() == "Node" && owner.String("name") == node
	switch {
	case !itself:
		return fmt.Errorf("node %q can only create pods with an owner reference set to itself", node)
	case !owner.Bool("controller"):
		return fmt.Errorf("node %q can only create pods with a controller owner reference set to itself", node)
	case owner.Bool("blockOwnerDeletion"):
		return fmt.Errorf("node %q must not set blockOwnerDeletion on an owner reference", node)
	}
	found, err := r.Server.Find(ctx, "", "nodes", meta.Key{Name: node})
	switch {
	case err != nil:
		return err
	case found == nil:
		return meta.NotFound(meta.GroupResource{Resource: "nodes"}, node)
	case found.UID() != owner.String("uid"):
		return fmt.Errorf("node %s UID mismatch: expected %s got %s", node, owner.String("uid"), found.UID())
	}
	return nil
}

func podOfNode(_ context.Context, node string, r *admission.Request) error {
	if r.Old.String("spec", "nodeName") != node {
		return fmt.Errorf("node %q can only delete pods with spec.nodeName set to itself", node)
	}
	return nil
}

func podStatusByNode(_ context.Context, node string, r *admission.Request) error {
	if r.Old.String("spec", "nodeName") != node {
		return fmt.Errorf("node %q can only update pod status for pods with spec.nodeName set to itself", node)
	}
	if changed(r, "metadata", "labels") {
		return fmt.Errorf("node %q cannot update labels through pod status", node)
	}
	for _, claims := range []string{"resourceClaimStatuses", "extendedResourceClaimStatus", "nodeAllocatableResourceClaimStatuses"} {
		if changed(r, "status", claims) {
			return fmt.Errorf("node %q cannot update resource claim statuses", node)
		}
	}
	return nil
}

func evictionByNode(ctx context.Context, node string, r *admission.Request) error {
	pod, err := r.Server.Find(ctx, "", "pods", meta.Key{Namespace: r.Namespace, Name: r.Name})
	switch {
	case err != nil:
		return err
	case pod == nil:
		return meta.NotFound(r.Resource.GroupResource(), r.Name)
	case pod.String("spec", "nodeName") != node:
		return fmt.Errorf("node %s can only evict pods with spec.nodeName set to itself", node)
	}
	return nil
}

// ownNode allows the agent to write and delete its own Node, except spec.taints and ownerReferences on
// update, spec.configSource, and the reserved labels, which others trust.
func ownNode(_ context.Context, node string, r *admission.Request) error {
	update := r.Operation == admission.Update
	switch {
	case r.Name != node:
		return fmt.Errorf("node %q is not allowed to modify node %q", node, r.Name)
	case r.Operation == admission.Delete:
		return nil
	case setsConfigSource(r):
		return fmt.Errorf("node %q is not allowed to set a configSource", node)
	case update && changed(r, "spec", "taints"):
		return fmt.Errorf("node %q is not allowed to modify taints", node)
	case update && changed(r, "metadata", "ownerReferences"):
		return fmt.Errorf("node %q is not allowed to modify ownerReferences", node)
	}
	labels := reservedLabels(r)
	switch {
	case len(labels) == 0:
		return nil
	case update:
		return fmt.Errorf("is not allowed to modify labels: %s", strings.Join(labels, ", "))
	}
	return fmt.Errorf("node %q is not allowed to set the following labels: %s", node, strings.Join(labels, ", "))
}

// setsConfigSource reports whether a write sets or changes spec.configSource of a Node. Removing it is
// allowed.
func setsConfigSource(r *admission.Request) bool {
	now, set := r.Object.Get("spec", "configSource")
	if r.Operation != admission.Update {
		return set && now != nil
	}
	was, _ := r.Old.Get("spec", "configSource")
	return set && now != nil && !meta.Equal(now, was)
}

// reservedLabels returns the labels, sorted, that a write of a Node changes although they are in the domains
// of the product and not free for agents.
func reservedLabels(r *admission.Request) (list []string) {
	p := r.Server.Names
	free := []string{p.Wire(wellknown.LabelHostname)}
	for _, label := range p.OldNodeLabels() {
		free = append(free, label.Before, label.Now)
	}
	inDomain := func(domain, of string) bool {
		of = strings.TrimSuffix(of, "/")
		return domain == of || strings.HasSuffix(domain, "."+of)
	}
	now, before := r.Object.Labels(), r.Old.Labels()
	for label := range union(now, before) {
		domain, _, prefixed := strings.Cut(label, "/")
		was, had := before[label]
		is, has := now[label]
		own := slices.Contains(free, label) || inDomain(domain, p.Wire(wellknown.AgentLabels)) || inDomain(domain, p.Wire(wellknown.NodeLabels))
		reserved := inDomain(domain, p.Wire(wellknown.RestrictedLabels)) ||
			!own && slices.ContainsFunc(p.Domains(), func(of string) bool { return inDomain(domain, of) })
		if prefixed && reserved && (had != has || was != is) {
			list = append(list, label)
		}
	}
	slices.Sort(list)
	return list
}

func union(a, b map[string]string) map[string]bool {
	all := make(map[string]bool, len(a)+len(b))
	for k := range a {
		all[k] = true
	}
	for k := range b {
		all[k] = true
	}
	return all
}

// changed reports whether the request changes the value of a field. Empty and missing lists and maps are equal.
func changed(r *admission.Request, path ...string) bool {
	now, has := r.Object.Get(path...)
	was, had := r.Old.Get(path...)
	return (has || had) && !meta.Equal(nilIfEmpty(now), nilIfEmpty(was))
}

// nilIfEmpty returns nil for an empty list or map, else v.
func nilIfEmpty(v any) any {
	switch v := v.(type) {
	case []any:
		if len(v) == 0 {
			return nil
		}
	case map[string]any:
		if len(v) == 0 {
			return nil
		}
	}
	return v
}

// claimStatusByNode allows changes of the fields that report the expansion of a volume on the node.
func claimStatusByNode(_ context.Context, node string, r *admission.Request) error {
	withoutResizeStatus := func(claim *meta.Object) map[string]any {
		claim = claim.Clone()
		for _, field := range []string{"capacity", "conditions", "allocatedResources", "allocatedResourceStatuses"} {
			claim.Delete("status", field)
		}
		claim.Delete("metadata", "managedFields")
		claim.Delete("metadata", "resourceVersion")
		return claim.Tree()
	}
	if !meta.Equal(withoutResizeStatus(r.Object), withoutResizeStatus(r.Old)) {
		return fmt.Errorf("node %q is not allowed to update fields other than status.quantity and status.conditions", node)
	}
	return nil
}

func leaseOfNode(_ context.Context, node string, r *admission.Request) error {
	if namespace := r.Server.Names.SystemNamespace("node-lease"); r.Namespace != namespace {
		return fmt.Errorf("can only access leases in the %q system namespace", namespace)
	}
	if r.Name != node {
		return errors.New("can only access node lease with the same name as the requesting node")
	}
	return nil
}

func csiNodeOfNode(_ context.Context, node string, r *admission.Request) error {
	if r.Name != node {
		return errors.New("can only access CSINode with the same name as the requesting node")
	}
	return nil
}

func sliceOfNode(_ context.Context, node string, r *admission.Request) error {
	slice := r.Object // for an update the authorizer checks the node of the stored slice, and nodeName is immutable
	switch r.Operation {
	case admission.Update:
		return nil
	case admission.Delete:
		slice = r.Old
	}
	if slice.String("spec", "nodeName") != node {
		return fmt.Errorf("can only %s ResourceSlice with the same NodeName as the requesting node", strings.ToLower(string(r.Operation)))
	}
	return nil
}

// certificateOfNode checks that a request to a signer for node agents is for the name of the agent.
func certificateOfNode(_ context.Context, _ string, r *admission.Request) error {
	signers := []string{r.Server.Wire(wellknown.SignerClientNode), r.Server.Wire(wellknown.SignerNodeServing)}
	if !slices.Contains(signers, r.Object.String("spec", "signerName")) {
		return nil
	}
	data, err := base64.StdEncoding.DecodeString(r.Object.String("spec", "request"))
	if err != nil {
		return errors.New("unable to parse csr: not base64")
	}
	request, err := pki.ParseRequest(data)
	switch {
	case err != nil:
		return fmt.Errorf("unable to parse csr: %w", err)
	case request.Subject.CommonName != r.User.Name:
		return fmt.Errorf("can only create a node CSR with CN=%s", r.User.Name)
	}
	return nil
}
