package features

import "slices"

// The gates that the library uses itself.
const (
	APIListChunking                         = "APIListChunking"
	APIResponseCompression                  = "APIResponseCompression"
	AnyVolumeDataSource                     = "AnyVolumeDataSource"
	CSIMigration                            = "CSIMigration"
	CrossNamespaceVolumeDataSource          = "CrossNamespaceVolumeDataSource"
	ExcludeAdmissionWebhookVirtualResources = "ExcludeAdmissionWebhookVirtualResources"
	ExpandCSIVolumes                        = "ExpandCSIVolumes"
	HPAScaleToZero                          = "HPAScaleToZero"
	MaxUnavailableStatefulSet               = "MaxUnavailableStatefulSet"
	RecoverVolumeExpansionFailure           = "RecoverVolumeExpansionFailure"
	RemainingItemCount                      = "RemainingItemCount"
	WatchBookmark                           = "WatchBookmark"
	WatchList                               = "WatchList"
)

// Gates returns the gates of every server, sorted by name.
func Gates() []Gate { return slices.Clone(gates) }

var gates = []Gate{
	{Name: APIListChunking, Alpha: "1.8", Beta: "1.9", Stable: "1.29", Removed: "1.33",
		Doc: "lists in pages, by limit and continue"},
	{Name: APIResponseCompression, Alpha: "1.8", Beta: "1.16",
		Doc: "long answers are compressed with gzip"},
	{Name: AnyVolumeDataSource, Alpha: "1.18", Beta: "1.24", Stable: "1.33", Removed: "1.36",
		Doc: "a claim is filled from any object, by dataSourceRef"},
	{Name: "AtomicWriteVolumeUserFields", Alpha: "1.37",
		Doc: "files of secrets, configuration and projected volumes have owners, by defaultUser and user"},
	{Name: CSIMigration, Alpha: "1.14", Beta: "1.17", Stable: "1.25", Removed: "1.27",
		Doc: "a volume of a pod itself can be attached, by inlineVolumeSpec"},
	{Name: "CSIVolumeHealth", Alpha: "1.21",
		Doc: "Pods, claims and CSINodes report the health of volumes"},
	{Name: "ContainerStopSignals", Alpha: "1.33",
		Doc: "a container names the signal that stops it, by lifecycle.stopSignal"},
	{Name: "CoordinatedLeaderElection", Alpha: "1.31", BetaOff: "1.33",
		Doc: "a Lease names its preferred holder and how it is chosen"},
	{Name: CrossNamespaceVolumeDataSource, Alpha: "1.26",
		Doc: "a claim is filled from an object of another namespace"},
	{Name: "DRADerivedAttributes", Alpha: "1.37",
		Doc: "requests for devices compute attributes, by derivedAttributes"},
	{Name: "DRADeviceCompatibilityGroups", Alpha: "1.37",
		Doc: "devices that share counters form groups, by compatibilityGroups"},
	{Name: "DRAListTypeAttributes", Alpha: "1.36",
		Doc: "an attribute of a device has a list of values"},
	{Name: "DRANodeAllocatableResources", Alpha: "1.36",
		Doc: "devices count against the allocatable resources of their node"},
	{Name: "DRAOptionalNodeOperations", Alpha: "1.37",
		Doc: "drivers skip operations on nodes, by skipNodeOperations"},
	{Name: "DRAPartitionableDevicesType", Alpha: "1.37",
		Doc: "a ResourceSlice names the attribute with the type of its partitions"},
	{Name: "EmptyDirVolumeMode", Alpha: "1.37",
		Doc: "an emptyDir volume has permissions, by mode"},
	{Name: "EvictionRequestAPI", Alpha: "1.37",
		Doc: "a Pod names the responders to requests for its eviction"},
	{Name: ExcludeAdmissionWebhookVirtualResources, Beta: "1.37",
		Doc: "admission webhooks are not called for reviews of identities and permissions"},
	{Name: ExpandCSIVolumes, Alpha: "1.14", Beta: "1.16", Stable: "1.24", Removed: "1.27",
		Doc: "volumes of CSI drivers have a secret for enlarging them"},
	{Name: "GRPCContainerProbeTLS", Alpha: "1.37",
		Doc: "gRPC probes use TLS, by mode"},
	{Name: "GenericWorkload", Alpha: "1.35", BetaOff: "1.37",
		Doc: "a Pod belongs to a group that is scheduled together, by schedulingGroup"},
	{Name: "H2CContainerProbe", Alpha: "1.37",
		Doc: "HTTP probes and hooks use HTTP/2, by protocol"},
	{Name: HPAScaleToZero, Alpha: "1.16", Beta: "1.37",
		Doc: "a HorizontalPodAutoscaler scales to zero by external and object metrics"},
	{Name: "ImageVolumeWithDigest", Alpha: "1.35",
		Doc: "the status of a Pod has the digests of its image volumes"},
	{Name: "InPlacePodVerticalScalingSchedulerPreemption", Alpha: "1.37",
		Doc: "a Node opts out of preemption for resized Pods"},
	{Name: MaxUnavailableStatefulSet, Alpha: "1.24", BetaOff: "1.35", Beta: "1.37",
		Doc: "a rolling update of a StatefulSet replaces several Pods at a time, by maxUnavailable"},
	{Name: RecoverVolumeExpansionFailure, Alpha: "1.23", Beta: "1.32", Stable: "1.34",
		Doc: "a claim that could not grow may ask for less again"},
	{Name: RemainingItemCount, Alpha: "1.15", Beta: "1.16", Stable: "1.29", Removed: "1.33",
		Doc: "a page of a list has the number of remaining objects"},
	{Name: "VolumeBindMountOptions", Alpha: "1.37",
		Doc: "mounts in containers have options, by bindMountOptions"},
	{Name: WatchBookmark, Alpha: "1.15", Beta: "1.16", Stable: "1.17", Removed: "1.33",
		Doc: "watches send bookmarks with their progress"},
	{Name: WatchList, Alpha: "1.27", Beta: "1.32",
		Doc: "a watch can begin with the existing objects and a bookmark that marks their end"},
	{Name: "WorkloadWithJob", Alpha: "1.36",
		Doc: "a Job says how its Pods are scheduled together"},
}
