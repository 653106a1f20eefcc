package names

// Users, groups and roles of a control plane's parts. They are the same under
// both profiles.
const (
	UserScheduler         = "system:kube-scheduler"
	UserControllerManager = "system:kube-controller-manager"
	UserProxy             = "system:kube-proxy"
	RoleAggregator        = "system:kube-aggregator"
	RoleDNS               = "system:kube-dns"
	RoleNodeAPIAdmin      = "system:kubelet-api-admin"
	AccountDNS            = "kube-dns"
	LeaseScheduler        = "kube-scheduler"
	LeaseControllers      = "kube-controller-manager"
	ReaderRole            = "extension-apiserver-authentication-reader"
	ReaderConfigMap       = "extension-apiserver-authentication"
	RBACDefaults          = "rbac-defaults"
	FlowScheduler         = "kube-scheduler"
	FlowControllers       = "kube-controller-manager"
)

// Objects that a control plane keeps for itself.
const (
	ClusterInfo         = "cluster-info"
	ClusterInfoRole     = "kubeadm:bootstrap-signer-clusterinfo" // as those who join machines know it
	ServerService       = NamespaceFinalizer                     // in the namespace default: the product's name
	LegacyTokenTracking = "kube-apiserver-legacy-service-account-token-tracking"
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
