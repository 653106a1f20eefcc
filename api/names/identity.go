package names

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
	LeaderRole            = "system::leader-locking-" // and the Lease
	ReaderRole            = "extension-apiserver-authentication-reader"
	ReaderConfigMap       = "extension-apiserver-authentication"
	RBACDefaults          = "rbac-defaults"
	FlowScheduler         = "orch-scheduler"
	FlowControllers       = "orch-controller-manager"
)

// Objects that a control plane keeps for itself.
const (
	ClusterInfo         = "cluster-info"
	ClusterInfoRole     = "system:bootstrap-signer-clusterinfo"
	ServerService       = NamespaceFinalizer // in the namespace default: the product's name
	LegacyTokenTracking = "orch-apiserver-legacy-service-account-token-tracking"
)

// API groups that default roles name.
const (
	GroupNetworking      = "networking.orch.io"
	GroupNode            = "node.orch.io"
	GroupMetrics         = "metrics.orch.io"
	GroupCustomMetrics   = "custom.metrics.orch.io"
	GroupExternalMetrics = "external.metrics.orch.io"
)

// MirrorPod marks a pod that a node started by itself.
const MirrorPod = "orch.io/config.mirror"

// Description is the annotation that tells people what an object is for.
const Description = "orch.io/description"
