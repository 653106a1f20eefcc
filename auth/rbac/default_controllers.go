package rbac

import (
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/wellknown"
)

const controllerPrefix = "system:controller:"

// controllerRoles returns a role for each controller of a control plane. Each
// controller can run as its own service account.
func controllerRoles(p names.Profile) []defaultRole {
	var out []defaultRole
	add := func(name string, rules ...rule) {
		out = append(out, defaultRole{name: controllerPrefix + name, rules: rules})
	}
	storageControllers(add)
	workloadControllers(add)
	upkeepControllers(add)
	networkControllers(add)
	certificateController(p, add)
	return out
}

func storageControllers(add func(string, ...rule)) {
	add("attachdetach-controller", on("list,watch", "", "persistentvolumes", "persistentvolumeclaims"),
		on(read, "", "nodes"), on("patch,update", "", "nodes/status"), on("list,watch", "", "pods"), events(),
		on("get,create,delete,list,watch", wellknown.GroupStorage, "volumeattachments"),
		on(read, wellknown.GroupStorage, "csidrivers"), on(read, wellknown.GroupStorage, "csinodes"))
	add("ephemeral-volume-controller", on(read, "", "pods"), on("update", "", "pods/finalizers"),
		on("get,list,watch,create", "", "persistentvolumeclaims"), events())
	add("expand-controller", on("get,list,watch,patch,update", "", "persistentvolumes"),
		on("update,patch", "", "persistentvolumeclaims/status"), on(read, "", "persistentvolumeclaims"), events())
	add("persistent-volume-binder", on("get,list,watch,update,create,delete", "", "persistentvolumes"),
		on("update", "", "persistentvolumes/status"), on("get,list,watch,update", "", "persistentvolumeclaims"),
		on("update", "", "persistentvolumeclaims/status"), on("list,watch,get,create,delete", "", "pods"),
		on(read, wellknown.GroupStorage, "storageclasses"), on("list,watch", "", "nodes"), events(), on("watch", "", "events"))
	add("pv-protection-controller", on("get,list,watch,update", "", "persistentvolumes"), events())
	add("pvc-protection-controller", on("get,list,watch,update", "", "persistentvolumeclaims"),
		on("update", "", "persistentvolumeclaims/status"), on("list,watch,get", "", "pods"), events())
	add("selinux-warning-controller", events(), on(read, "", "persistentvolumes"), on(read, "", "persistentvolumeclaims"),
		on(read, "", "pods"), on(read, wellknown.GroupStorage, "csidrivers"))
	add("volumeattributesclass-protection-controller", on(read, "", "persistentvolumeclaims"), on(read, "", "persistentvolumes"),
		on("get,list,watch,update", wellknown.GroupStorage, "volumeattributesclasses"), events())
}

func workloadControllers(add func(string, ...rule)) {
	add("cronjob-controller", on("get,list,watch,update", "batch", "cronjobs"),
		on("get,list,watch,create,update,delete,patch", "batch", "jobs"), on("update", "batch", "cronjobs/status"),
		on("update", "batch", "cronjobs/finalizers"), on("list,watch,delete", "", "pods"), events())
	add("daemon-set-controller", on(read, workloads, "daemonsets"), on("update", workloads, "daemonsets/status"),
		on("update", workloads, "daemonsets/finalizers"), on("list,watch", "", "nodes"),
		on("list,watch,create,delete,patch", "", "pods"), on("create", "", "pods/binding"),
		on("get,list,watch,create,delete,update,patch", "apps", "controllerrevisions"), events())
	add("deployment-controller", on("get,list,watch,update", workloads, "deployments"),
		on("update", workloads, "deployments/status"), on("update", workloads, "deployments/finalizers"),
		on("get,list,watch,create,update,patch,delete", workloads, "replicasets"),
		on("get,list,update,watch", "", "pods"), events())
	add("disruption-controller", on(read, workloads, "deployments"), on(read, workloads, "replicasets"),
		on(read, "", "replicationcontrollers"), on(read, "policy", "poddisruptionbudgets"),
		on(read, "apps", "statefulsets"), on("update", "policy", "poddisruptionbudgets/status"),
		on("patch,update", "", "pods/status"), on("get", "*", "*/scale"), events())
	add("horizontal-pod-autoscaler", on(read, "autoscaling", "horizontalpodautoscalers"),
		on("update", "autoscaling", "horizontalpodautoscalers/status"), on("get,update", "*", "*/scale"),
		on("list,watch", "", "pods"), on("list,watch", wellknown.GroupMetrics, "pods"),
		on(read, wellknown.GroupCustomMetrics, "*"), on(read, wellknown.GroupExternalMetrics, "*"), events())
	add("job-controller", on("get,list,watch,update,patch", "batch", "jobs"), on("update", "batch", "jobs/status"),
		on("update", "batch", "jobs/finalizers"), on("list,watch,create,delete,patch", "", "pods"), events())
	add("replicaset-controller", on("get,list,watch,update", workloads, "replicasets"),
		on("update", workloads, "replicasets/status"), on("update", workloads, "replicasets/finalizers"),
		on("list,watch,create,delete,patch", "", "pods"), events())
	add("replication-controller", on("get,list,watch,update", "", "replicationcontrollers"),
		on("update", "", "replicationcontrollers/status"), on("update", "", "replicationcontrollers/finalizers"),
		on("list,watch,create,delete,patch", "", "pods"), events())
	add("statefulset-controller", on("list,watch", "", "pods"), on(read, "apps", "statefulsets"),
		on("update", "apps", "statefulsets/status"), on("update", "apps", "statefulsets/finalizers"),
		on("get,create,delete,update,patch", "", "pods"),
		on("get,create,delete,update,patch,list,watch", "apps", "controllerrevisions"),
		on("get,create,list,watch", "", "persistentvolumeclaims"), on("update,delete", "", "persistentvolumeclaims"),
		on("update", "", "pods/finalizers"), events())
	add("ttl-after-finished-controller", on("get,list,watch,delete", "batch", "jobs"), events())
}

func upkeepControllers(add func(string, ...rule)) {
	add("clusterrole-aggregation-controller", on("escalate,get,list,watch,update,patch", wellknown.GroupRBAC, clusterRoles))
	add("generic-garbage-collector", on("get,list,watch,patch,update,delete", "*", "*"), events())
	add("legacy-service-account-token-cleaner", named("get", "", "configmaps", wellknown.LegacyTokenTracking),
		on("patch,delete", "", "secrets"))
	add("namespace-controller", on("get,list,watch,delete", "", "namespaces"),
		on("update", "", "namespaces/finalize", "namespaces/status"), on(read+",delete,deletecollection", "*", "*"))
	add("node-controller", on(read+",update,delete,patch", "", "nodes"), on("patch,update", "", "nodes/status"),
		on("patch,update", "", "pods/status"), on("list,watch,delete,get", "", "pods"), events(),
		on(read, wellknown.GroupCoordination, "leases"))
	add("pod-garbage-collector", on("list,watch,delete", "", "pods"), on(read, "", "nodes"),
		on("patch", "", "pods/status"))
	add("resourcequota-controller", on("list,watch", "*", "*"), on("update", "", "resourcequotas/status"), events())
	add("root-ca-cert-publisher", on("create,update", "", "configmaps"), events())
	add("service-account-controller", on("create", "", "serviceaccounts"), events())
	add("storage-version-migrator-controller", on("list,patch", "*", "*"), on("get", wellknown.GroupExtensions, "customresourcedefinitions"),
		on("patch", wellknown.GroupExtensions, "customresourcedefinitions/status"), on("update", wellknown.GroupMigration, "storageversionmigrations/status"))
	add("ttl-controller", on("update,patch,list,watch", "", "nodes"), events())
	add("validatingadmissionpolicy-status-controller",
		on(read, wellknown.GroupRegistration, "validatingadmissionpolicies"),
		on("get,update,patch", wellknown.GroupRegistration, "validatingadmissionpolicies/status"), events())
	deviceControllers(add)
}

func deviceControllers(add func(string, ...rule)) {
	add("device-taint-eviction-controller", on("get,list,watch,delete", "", "pods"), on("patch,update", "", "pods/status"),
		on(read, wellknown.GroupDevices, "resourceclaims"), on(read, wellknown.GroupDevices, "resourceslices"),
		on(read, wellknown.GroupDevices, "deviceclasses"), events())
	add("resource-claim-controller", on(read, "", "pods"), on("update", "", "pods/finalizers"),
		on("get,list,watch,create,delete", wellknown.GroupDevices, "resourceclaims"),
		on("update,patch", wellknown.GroupDevices, "resourceclaims", "resourceclaims/status"), on("update,patch", "", "pods/status"),
		events(), on("update,patch", wellknown.GroupDevices, "resourceclaims/binding"))
}

func networkControllers(add func(string, ...rule)) {
	add("endpoint-controller", on(read, "", "services", "pods"),
		on(read+",create,update,delete", "", "endpoints"), on("create", "", "endpoints/restricted"), events())
	slices := on(read+",create,update,delete", wellknown.GroupEndpoints, "endpointslices")
	add("endpointslice-controller", on(read, "", "services", "pods", "nodes"), on("update", "", "services/finalizers"),
		slices, events())
	add("endpointslicemirroring-controller", on(read, "", "services", "endpoints"), on("update", "", "services/finalizers"),
		on("update", "", "endpoints/finalizers"), slices, events())
	add("service-cidrs-controller", on("get,list,watch,patch,update", wellknown.GroupNetworking, "servicecidrs"),
		on("patch,update", wellknown.GroupNetworking, "servicecidrs/finalizers"), on("patch,update", wellknown.GroupNetworking, "servicecidrs/status"),
		on(read, wellknown.GroupNetworking, "ipaddresses"), events())
	add("route-controller", on("list,watch", "", "nodes"), on("patch", "", "nodes/status"), events())
	add("service-controller", on(read, "", "services"), on("patch,update", "", "services/status"),
		on("list,watch", "", "nodes"), events())
}

func certificateController(p names.Profile, add func(string, ...rule)) {
	add("certificate-controller",
		on("get,list,watch,delete", wellknown.GroupCertificates, "certificatesigningrequests"),
		on("update", wellknown.GroupCertificates, "certificatesigningrequests/status", "certificatesigningrequests/approval"),
		named("approve", wellknown.GroupCertificates, "signers", p.Wire(wellknown.SignerClientNode)),
		named("sign", wellknown.GroupCertificates, "signers", p.Wire(wellknown.SignerClient), p.Wire(wellknown.SignerClientNode),
			p.Wire(wellknown.SignerNodeServing), p.Wire(wellknown.SignerLegacyUnknown)),
		on("create", wellknown.GroupAuthorization, "subjectaccessreviews"), events())
}
