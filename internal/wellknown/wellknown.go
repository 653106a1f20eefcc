// Package wellknown contains the well-known names of the API: groups, labels, annotations,
// finalizers, users, types and metrics.
//
// The constants are spec names. names.Profile.Wire translates a spec name to the name that the
// clients of a profile expect. No other package contains such names, except for the translation
// tables of names.
package wellknown

// Spec names of API groups.
const (
	GroupApps           = "apps"
	GroupBatch          = "batch"
	GroupAutoscaling    = "autoscaling"
	GroupMeta           = "meta.orch.io"
	GroupRBAC           = "rbac.authorization.orch.io"
	GroupAuthentication = "authentication.orch.io"
	GroupAuthorization  = "authorization.orch.io"
	GroupCertificates   = "certificates.orch.io"
	GroupCoordination   = "coordination.orch.io"
	GroupEvents         = "events.orch.io"
	GroupEndpoints      = "discovery.orch.io"
	GroupStorage        = "storage.orch.io"
	GroupSnapshots      = "snapshot.storage.orch.io"
	GroupScheduling     = "scheduling.orch.io"
	GroupPolicy         = "policy"
	GroupExtensions     = "apiextensions.orch.io"
	GroupFormer         = "extensions" // former group of workloads, ingresses, network policies and pod security policies
	GroupAdmission      = "admission.orch.io"
	GroupDiscovery      = "apidiscovery.orch.io"
	GroupAudit          = "audit.orch.io"
	GroupTolerations    = "podtolerationrestriction.admission.orch.io"
	GroupServerConfig   = "apiserver.config.orch.io"
	GroupServerAlpha    = "apiserver.orch.io"
	GroupFlowControl    = "flowcontrol.apiserver.orch.io"
	GroupRegistration   = "admissionregistration.orch.io"
	GroupAggregation    = "apiregistration.orch.io"
	GroupDevices        = "resource.orch.io"
	GroupEventRate      = "eventratelimit.admission.orch.io"
	GroupImagePolicy    = "imagepolicy.orch.io"
	GroupExec           = "client.authentication.orch.io"
	GroupABAC           = "abac.authorization.orch.io"
	GroupPodSecurity    = "pod-security.admission.config.orch.io"
	GroupMigration      = "storagemigration.orch.io"
	GroupQuotaConfig    = "resourcequota.admission.orch.io"
)

// Labels, annotations, finalizers, types and other names.
const (
	NamespaceNameLabel      = "orch.io/metadata.name"
	NamespaceFinalizer      = "orch"
	InitialEventsEnd        = "orch.io/initial-events-end"
	Deprecated              = "orch.io/deprecated"
	RemovedRelease          = "orch.io/removed-release"
	LastApplied             = "kubectl.orch.io/last-applied-configuration"
	SecretServiceToken      = "orch.io/service-account-token"
	SecretBasicAuth         = "orch.io/basic-auth"
	SecretSSHAuth           = "orch.io/ssh-auth"
	SecretTLS               = "orch.io/tls"
	SecretDockercfg         = "orch.io/dockercfg"
	SecretDockerConfig      = "orch.io/dockerconfigjson"
	SecretBootstrap         = "bootstrap.orch.io/token"
	ServiceAccountName      = "orch.io/service-account.name"
	ServiceAccountUID       = "orch.io/service-account.uid"
	Bootstrapping           = "orch.io/bootstrapping"
	RBACAutoupdate          = "rbac.authorization.orch.io/autoupdate"
	RBACAggregate           = "rbac.authorization.orch.io/aggregate-to-"
	RootCAConfigMap         = "orch-root-ca.crt"
	APIAccessVolume         = "orch-api-access-"
	SignerClient            = "orch.io/apiserver-client"
	SignerClientNode        = "orch.io/apiserver-client-nodeagent"
	SignerNodeServing       = "orch.io/nodeagent-serving"
	SignerLegacyUnknown     = "orch.io/legacy-unknown"
	ExecInfoEnv             = "ORCH_EXEC_INFO"
	AuditDecision           = "authorization.orch.io/decision"
	AuditReason             = "authorization.orch.io/reason"
	AuditUnsafeDelete       = "apiserver.orch.io/unsafe-delete-ignore-read-error"
	AuditPatch              = "patch.webhook.admission.orch.io/"
	ServiceName             = "orch.io/service-name"
	LabelHostname           = "orch.io/hostname"
	LabelZone               = "topology.orch.io/zone"
	LabelZoneBeta           = "failure-domain.beta.orch.io/zone"
	ScalerMetrics           = "autoscaling.alpha.orch.io/metrics"
	ScalerMeasured          = "autoscaling.alpha.orch.io/current-metrics"
	ScalerConditions        = "autoscaling.alpha.orch.io/conditions"
	ScalerBehavior          = "autoscaling.alpha.orch.io/behavior"
	IngressClass            = "orch.io/ingress.class"
	DefaultStorageClass     = "storageclass.orch.io/is-default-class"
	DefaultIngressClass     = "ingressclass.orch.io/is-default-class"
	NodeSelector            = "scheduler.alpha.orch.io/node-selector"
	DefaultTolerations      = "scheduler.alpha.orch.io/defaultTolerations"
	AllowedTolerations      = "scheduler.alpha.orch.io/tolerationsWhitelist"
	TaintMemoryPressure     = "node.orch.io/memory-pressure"
	MountableSecrets        = "orch.io/enforce-mountable-secrets"
	AccountMount            = "/var/run/secrets/orch.io/serviceaccount"
	LimitsSet               = "orch.io/limit-ranger"
	PodSecurity             = "pod-security.orch.io/" // prefix of the mode, or of an audit annotation
	SecurityPolicy          = "orch.io/psp"
	CriticalPod             = "scheduler.alpha.orch.io/critical-pod"
	Sysctls                 = "security.alpha.orch.io/sysctls"
	UnsafeSysctls           = "security.alpha.orch.io/unsafe-sysctls"
	AppArmorProfile         = "container.apparmor.security.beta.orch.io/" // prefix of the container name
	SeccompPod              = "seccomp.security.alpha.orch.io/pod"
	SeccompContainer        = "container.seccomp.security.alpha.orch.io/" // prefix of the container name
	SeccompDefault          = "seccomp.security.alpha.orch.io/defaultProfileName"
	SeccompAllowed          = "seccomp.security.alpha.orch.io/allowedProfileNames"
	AppArmorDefault         = "apparmor.security.beta.orch.io/defaultProfileName"
	AppArmorAllowed         = "apparmor.security.beta.orch.io/allowedProfileNames"
	QuotaStorageClass       = "storageclass.storage.orch.io"
	QuotaDeviceClass        = "deviceclass.resource.orch.io"
	StorageClassBeta        = "volume.beta.orch.io/storage-class"
	ClaimProtection         = "orch.io/pvc-protection"
	VolumeProtection        = "orch.io/pv-protection"
	ClassProtection         = "orch.io/vac-protection"
	NetworkProtection       = "networking.orch.io/service-addresses"
	SkipMirror              = "endpointslice.orch.io/skip-mirror"
	TemplateGeneration      = "deprecated.daemonset.template.generation"
	RollbackTo              = "deprecated.deployment.rollback.to"
	EmptySelector           = "pdb.orch.io/deprecated-v1beta1-empty-selector-match"
	PodDeletionCost         = "controller.orch.io/pod-deletion-cost"
	JobUIDLabel             = "batch.orch.io/controller-uid"
	JobNameLabel            = "batch.orch.io/job-name"
	OldJobUIDLabel          = "controller-uid"
	OldJobNameLabel         = "job-name"
	NodeRole                = "node-role.orch.io/" // prefix of the role
	OldNodeRole             = "orch.io/role"
	ImagePolicyKeys         = ".image-policy.orch.io/" // in annotation keys for the image policy backend
	ImagePolicyFailedOpen   = "alpha.image-policy.orch.io/failed-open"
	AuditImagePolicy        = "imagepolicywebhook.image-policy.orch.io/"
	AgentLabels             = "kubelet.orch.io/"
	NodeLabels              = "node.orch.io/"
	RestrictedLabels        = "node-restriction.orch.io/"
	DeviceAdminAccess       = "resource.orch.io/admin-access"
	TaintNotReady           = "node.orch.io/not-ready"
	TaintUnreachable        = "node.orch.io/unreachable"
	DefinitionFinalizer     = "customresourcecleanup.apiextensions.orch.io"
	DefinitionApproval      = "api-approved.orch.io"
	FlowAutoupdate          = "apf.orch.io/autoupdate-spec"
	AutoManaged             = "aggregator.orch.io/automanaged"
	HubForm                 = "orch.io/hub-form" // only in the store
	ServerManager           = "orch-apiserver"
	HealthMetric            = "orch_healthcheck"
	HealthRunsMetric        = "orch_healthchecks_total"
	FeatureMetric           = "orch_feature_enabled"
	BuildMetric             = "orch_build_info"
	SocketBearer            = "base64url.bearer.authorization.orch.io." // prefix of the token in a WebSocket sub-protocol
	DefaultStorageClassBeta = "storageclass.beta.orch.io/is-default-class"
	AuditMutation           = "mutation.webhook.admission.orch.io/"
	AuditValidation         = "validating.webhook.admission.orch.io/"
	AuditPolicyFailure      = "validation.policy.admission.orch.io/validation_failure"
	ExpressionTypes         = "orch." // prefix of type names in CEL
)

// Identities of service accounts: the private claim of their tokens, the claims of tokens in
// Secrets, and the extra attributes of their users.
const (
	TokenClaim           = "orch.io"
	NativeResource       = "orch.io/" // domain of the product's own node resources
	LegacyTokenIssuer    = "orch/serviceaccount"
	LegacyTokenNamespace = "orch.io/serviceaccount/namespace"
	LegacyTokenName      = "orch.io/serviceaccount/service-account.name"
	LegacyTokenUID       = "orch.io/serviceaccount/service-account.uid"
	LegacyTokenSecret    = "orch.io/serviceaccount/secret.name"
	TokenIssuer          = "https://orch.default.svc.cluster.local"
	ExtraCredentialID    = "authentication.orch.io/credential-id"
	ExtraPodName         = "authentication.orch.io/pod-name"
	ExtraPodUID          = "authentication.orch.io/pod-uid"
	ExtraNodeName        = "authentication.orch.io/node-name"
	ExtraNodeUID         = "authentication.orch.io/node-uid"
)

// OpenAPI definition names of types with special encodings.
const (
	MetaDefinitions  = "apimachinery.pkg.apis.meta.v1"
	QuantityForm     = "apimachinery.pkg.api.resource.Quantity"
	IntOrStringForm  = "apimachinery.pkg.util.intstr.IntOrString"
	RawExtensionForm = "apimachinery.pkg.runtime.RawExtension"
)

// OpenAPIProtobuf returns the media types of the protobuf encoding of an OpenAPI document of
// version 2 or 3: the one to use in responses, and the older one that some clients request.
func OpenAPIProtobuf(version string) (now, before string) {
	const name = "application/com.github.proto-openapi.spec."
	return name + "v" + version + ".v1.0+protobuf", name + "v" + version + "@v1.0+protobuf"
}
