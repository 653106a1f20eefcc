package rbac

import (
	"slices"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/wellknown"
)

// userRoles returns the roles for users: cluster-admin, and admin, edit and view.
// The latter aggregate other roles, so that roles for new kinds can extend them.
func userRoles() []defaultRole {
	return []defaultRole{
		{name: "cluster-admin", rules: fullAuthority()},
		{name: "admin", from: "admin"},
		{name: "edit", from: "edit", to: []string{"admin"}},
		{name: "view", from: "view", to: []string{"edit"}},
		{name: "system:aggregate-to-admin", to: []string{"admin"}, rules: []rule{
			on("create", wellknown.GroupAuthorization, "localsubjectaccessreviews"),
			on(readWrite, wellknown.GroupRBAC, roles, roleBindings),
		}},
		{name: "system:aggregate-to-edit", to: []string{"edit"}, rules: editRules()},
		{name: "system:aggregate-to-view", to: []string{"view"}, rules: viewRules()},
	}
}

func viewRules() []rule {
	return []rule{
		on(read, "", "pods", "replicationcontrollers", "replicationcontrollers/scale", "serviceaccounts", "services",
			"services/status", "endpoints", "persistentvolumeclaims", "persistentvolumeclaims/status", "configmaps"),
		on(read, "", "limitranges", "resourcequotas", "bindings", "pods/status", "resourcequotas/status",
			"namespaces/status", "replicationcontrollers/status", "pods/log"),
		on(read, "", "namespaces"),
		on(read, eventGroups, "events"),
		on(read, wellknown.GroupEndpoints, "endpointslices"),
		on(read, "apps", "controllerrevisions", "statefulsets", "statefulsets/status", "statefulsets/scale",
			"daemonsets", "daemonsets/status", "deployments", "deployments/status", "deployments/scale",
			"replicasets", "replicasets/status", "replicasets/scale"),
		on(read, "autoscaling", "horizontalpodautoscalers", "horizontalpodautoscalers/status"),
		on(read, "batch", "jobs", "cronjobs", "cronjobs/status", "jobs/status"),
		on(read, "extensions", "daemonsets", "daemonsets/status", "deployments", "deployments/scale",
			"deployments/status", "ingresses", "ingresses/status", "replicasets", "replicasets/scale",
			"replicasets/status", "replicationcontrollers/scale", "networkpolicies"),
		on(read, "policy", "poddisruptionbudgets", "poddisruptionbudgets/status"),
		on(read, wellknown.GroupNetworking, "networkpolicies", "ingresses", "ingresses/status"),
		on(read, wellknown.GroupDevices, "resourceclaims", "resourceclaims/status", "resourceclaimtemplates"),
	}
}

func editRules() []rule {
	return []rule{
		on(read, "", "pods/attach", "pods/proxy", "pods/exec", "pods/portforward", "secrets", "services/proxy"),
		on("impersonate", "", "serviceaccounts"),
		on(write, "", "pods", "pods/attach", "pods/proxy", "pods/exec", "pods/portforward"),
		on("create", "", "pods/eviction"),
		on(write, "", "replicationcontrollers", "replicationcontrollers/scale", "serviceaccounts", "services",
			"services/proxy", "persistentvolumeclaims", "configmaps", "secrets"),
		on("create", "", "serviceaccounts/token"),
		on(write, eventGroups, "events"),
		on(write, "apps", "statefulsets", "statefulsets/scale", "daemonsets", "deployments", "deployments/scale",
			"deployments/rollback", "replicasets", "replicasets/scale"),
		on(write, "autoscaling", "horizontalpodautoscalers"),
		on(write, "batch", "jobs", "cronjobs"),
		on(write, "extensions", "daemonsets", "deployments", "deployments/scale", "deployments/rollback", "ingresses",
			"replicasets", "replicasets/scale", "replicationcontrollers/scale", "networkpolicies"),
		on(write, "policy", "poddisruptionbudgets"),
		on(write, wellknown.GroupNetworking, "networkpolicies", "ingresses"),
		on(readWrite, wellknown.GroupCoordination, "leases"),
		on(write, wellknown.GroupDevices, "resourceclaims", "resourceclaimtemplates"),
	}
}

// discoveryRoles returns the roles for discovery, version and health endpoints.
func discoveryRoles() []defaultRole {
	return []defaultRole{
		{name: "system:basic-user", rules: []rule{
			on("create", wellknown.GroupAuthorization, "selfsubjectaccessreviews", "selfsubjectrulesreviews"),
			on("create", wellknown.GroupAuthentication, "selfsubjectreviews"),
		}},
		{name: "system:discovery", rules: []rule{urls("get", "/livez", "/readyz", "/healthz", "/version", "/version/",
			"/openapi", "/openapi/*", "/api", "/api/*", "/apis", "/apis/*")}},
		{name: "system:public-info-viewer", rules: []rule{urls("get", "/livez", "/readyz", "/healthz", "/version", "/version/")}},
		{name: "system:monitoring", rules: []rule{urls("get", "/metrics", "/metrics/slis",
			"/livez", "/readyz", "/healthz", "/livez/*", "/readyz/*", "/healthz/*", "/flagz", "/statusz"),
			on("get", "", "nodes/metrics")}},
		{name: "system:service-account-issuer-discovery", rules: []rule{urls("get",
			"/.well-known/openid-configuration", "/.well-known/openid-configuration/", "/openid/v1/jwks", "/openid/v1/jwks/")}},
	}
}

// componentRoles returns the roles for the components of a cluster.
func componentRoles() []defaultRole {
	delegation := []rule{
		on("create", wellknown.GroupAuthentication, "tokenreviews"),
		on("create", wellknown.GroupAuthorization, "subjectaccessreviews"),
	}
	return []defaultRole{
		{name: "system:heapster", rules: []rule{on(read, "", "events", "pods", "nodes", "namespaces"), on(read, "extensions", "deployments")}},
		{name: "system:node", rules: nodeRules()},
		{name: "system:node-problem-detector", rules: []rule{on("get", "", "nodes"), on("patch", "", "nodes/status"), events()}},
		{name: "system:node-proxier", rules: []rule{on("list,watch", "", "services", "endpoints"), on(read, "", "nodes"),
			events(), on("list,watch", wellknown.GroupNetworking, "servicecidrs"), on("list,watch", wellknown.GroupEndpoints, "endpointslices")}},
		{name: wellknown.RoleNodeAPIAdmin, rules: []rule{on(read, "", "nodes"), on("proxy", "", "nodes"),
			on("*", "", "nodes/proxy", "nodes/metrics", "nodes/log", "nodes/stats"),
			on("*", "", "nodes/configz", "nodes/healthz", "nodes/pods")}},
		{name: "system:node-bootstrapper", rules: []rule{on("create,get,list,watch", wellknown.GroupCertificates, "certificatesigningrequests")}},
		{name: "system:auth-delegator", rules: delegation},
		{name: wellknown.RoleAggregator, rules: []rule{on(read, "", "services", "endpoints")}},
		{name: wellknown.UserControllerManager, rules: slices.Insert(controllerManagerRules(), 7, delegation...)},
		{name: wellknown.RoleDNS, rules: []rule{on("list,watch", "", "endpoints", "services")}},
		{name: "system:persistent-volume-provisioner", rules: []rule{
			on("get,list,watch,create,delete", "", "persistentvolumes"), on("get,list,watch,update", "", "persistentvolumeclaims"),
			on(read, wellknown.GroupStorage, "storageclasses"), on("watch", "", "events"), events()}},
		{name: "system:volume-scheduler", rules: []rule{on(readUpdate, "", "persistentvolumes"),
			on(read, wellknown.GroupStorage, "storageclasses"), on(readUpdate, "", "persistentvolumeclaims")}},
		{name: wellknown.UserScheduler, rules: slices.Concat(schedulerRules(), delegation, schedulerDevices())},
	}
}

func controllerManagerRules() []rule {
	return []rule{
		events(),
		on("create", wellknown.GroupCoordination, "leases"),
		named("get,update", wellknown.GroupCoordination, "leases", wellknown.LeaseControllers),
		on("create", "", "secrets", "serviceaccounts"),
		on("delete", "", "secrets"),
		on("get", "", "configmaps", "namespaces", "secrets", "serviceaccounts"),
		on("update", "", "secrets", "serviceaccounts"),
		on("list,watch", "*", "*"),
		on("create", "", "serviceaccounts/token"),
	}
}

func schedulerRules() []rule {
	return []rule{
		events(),
		on("create", wellknown.GroupCoordination, "leases"),
		named(read+",update", wellknown.GroupCoordination, "leases", wellknown.LeaseScheduler),
		on(readWrite, wellknown.GroupCoordination, "leasecandidates"),
		on(read, "", "nodes"),
		on("get,list,watch,delete", "", "pods"),
		on("create", "", "bindings", "pods/binding"),
		on("patch,update", "", "pods/status"),
		on(read, "", "replicationcontrollers", "services"),
		on(read, workloads, "replicasets"),
		on(read, "apps", "statefulsets"),
		on(read, "policy", "poddisruptionbudgets"),
		on(read, "", "persistentvolumeclaims", "persistentvolumes"),
	}
}

// schedulerDevices returns the scheduler's rules for volumes and devices.
func schedulerDevices() []rule {
	return []rule{
		on(read, wellknown.GroupStorage, "csinodes"),
		on(read, wellknown.GroupStorage, "volumeattachments"),
		on(read, "", "namespaces"),
		on(read, wellknown.GroupStorage, "csidrivers"),
		on(read, wellknown.GroupStorage, "csistoragecapacities"),
		on(read, wellknown.GroupDevices, "deviceclasses"),
		on(readUpdate, wellknown.GroupDevices, "resourceclaims"),
		on(readUpdate, wellknown.GroupDevices, "resourceclaims/status"),
		on("update", "", "pods/finalizers"),
		on(read, wellknown.GroupDevices, "resourceslices"),
		on("create,delete", wellknown.GroupDevices, "resourceclaims"),
		on("update,patch", wellknown.GroupDevices, "resourceclaims/binding"),
	}
}

// nodeRules returns the rules for node agents that do not depend on the node. The
// node authorizer restricts an agent to the objects of its node.
func nodeRules() []rule {
	return []rule{
		on("create", wellknown.GroupAuthentication, "tokenreviews"),
		on("create", wellknown.GroupAuthorization, "subjectaccessreviews", "localsubjectaccessreviews"),
		on(read, "", "services"),
		on("create,get,list,watch", "", "nodes"),
		on("update,patch", "", "nodes/status"),
		on("update,patch", "", "nodes"),
		events(),
		on(read, "", "pods"),
		on("create,delete", "", "pods"),
		on("update,patch", "", "pods/status"),
		on("create", "", "pods/eviction"),
		on(read, "", "secrets", "configmaps"),
		on("get", "", "persistentvolumeclaims", "persistentvolumes"),
		on("get", "", "endpoints"),
		on("create,get,list,watch", wellknown.GroupCertificates, "certificatesigningrequests"),
		on("get,create,update,patch,delete", wellknown.GroupCoordination, "leases"),
		on("get", wellknown.GroupStorage, "volumeattachments"),
		on("create", "", "serviceaccounts/token"),
		on("get,update,patch", "", "persistentvolumeclaims/status"),
		on(read, wellknown.GroupStorage, "csidrivers"),
		on("get,create,update,patch,delete", wellknown.GroupStorage, "csinodes"),
		on(read, wellknown.GroupNode, "runtimeclasses"),
		on("get", wellknown.GroupDevices, "resourceclaims"),
		on("deletecollection", wellknown.GroupDevices, "resourceslices"),
		on("get", "", "serviceaccounts"),
	}
}

// certificateRoles returns the roles whose CertificateSigningRequests are approved
// automatically, and the roles that may approve requests for a built-in signer.
func certificateRoles(p names.Profile) []defaultRole {
	g := p.Group(wellknown.GroupCertificates)
	prefix := "system:" + g + ":"
	node := func(sub string) defaultRole {
		return defaultRole{name: prefix + "certificatesigningrequests:" + sub,
			rules: []rule{on("create", wellknown.GroupCertificates, "certificatesigningrequests/"+sub)}}
	}
	out := []defaultRole{node("nodeclient"), node("selfnodeclient")}
	for _, s := range []string{wellknown.SignerLegacyUnknown, wellknown.SignerNodeServing, wellknown.SignerClient, wellknown.SignerClientNode} {
		signer := p.Wire(s)
		out = append(out, defaultRole{name: prefix + signerWord(signer) + "-approver",
			rules: []rule{named("approve", wellknown.GroupCertificates, "signers", signer)}})
	}
	return out
}

func signerWord(signer string) string {
	for i := range signer {
		if signer[i] == '/' {
			return signer[i+1:]
		}
	}
	return signer
}

func namespacedRoles() []defaultRole {
	leader := func(lease string) defaultRole {
		return defaultRole{namespace: "system", name: wellknown.LeaderRole + lease, rules: []rule{
			on(read+",create,update", wellknown.GroupCoordination, "leases"),
			on(read+",create,update", wellknown.GroupCoordination, "leasecandidates")}}
	}
	return []defaultRole{
		{namespace: "public", name: controllerPrefix + "bootstrap-signer", rules: []rule{
			on(read, "", "configmaps"), named("update", "", "configmaps", wellknown.ClusterInfo), events()}},
		{namespace: "system", name: controllerPrefix + "bootstrap-signer", rules: []rule{on(read, "", "secrets")}},
		{namespace: "system", name: controllerPrefix + "cloud-provider", rules: []rule{on("create,get,list,watch", "", "configmaps")}},
		{namespace: "system", name: controllerPrefix + "token-cleaner", rules: []rule{on("get,list,watch,delete", "", "secrets"), events()}},
		{namespace: "system", name: wellknown.ReaderRole, rules: []rule{named(read, "", "configmaps", wellknown.ReaderConfigMap)}},
		leader(wellknown.LeaseControllers),
		leader(wellknown.LeaseScheduler),
	}
}
