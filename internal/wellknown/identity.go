package wellknown

// Users, roles, accounts, Leases and flow schemas of the components of a control plane.
const (
	UserScheduler         = "system:orch-scheduler"
	UserControllerManager = "system:orch-controller-manager"
	UserProxy             = "system:orch-proxy"
	RoleAggregator        = "system:orch-aggregator"
	RoleDNS               = "system:orch-dns"
	RoleNodeAPIAdmin      = "system:kubelet-api-admin"
	AccountDNS            = "orch-dns"
	LeaseScheduler        = "orch-scheduler"
	LeaseControllers      = "orch-controller-manager"
	LeaderRole            = "system::leader-locking-" // and of the Lease
	ReaderRole            = "extension-apiserver-authentication-reader"
	ReaderConfigMap       = "extension-apiserver-authentication"
	RBACDefaults          = "rbac-defaults"
	FlowScheduler         = "orch-scheduler"
	FlowControllers       = "orch-controller-manager"
)

// Objects that the server maintains.
const (
	ClusterInfo         = "cluster-info"
	ClusterInfoRole     = "system:bootstrap-signer-clusterinfo"
	ServerService       = NamespaceFinalizer // in the namespace default
	LegacyTokenTracking = "orch-apiserver-legacy-service-account-token-tracking"
)

// API groups in default roles.
const (
	GroupNetworking      = "networking.orch.io"
	GroupNode            = "node.orch.io"
	GroupMetrics         = "metrics.orch.io"
	GroupCustomMetrics   = "custom.metrics.orch.io"
	GroupExternalMetrics = "external.metrics.orch.io"
)

// MirrorPod is the annotation of a pod that a node started by itself.
const MirrorPod = "orch.io/config.mirror"

// Description is the annotation with the purpose of an object, for people.
const Description = "orch.io/description"
