package features

// The gates that the library itself asks for.
const (
	APIListChunking                = "APIListChunking"
	APIResponseCompression         = "APIResponseCompression"
	AnyVolumeDataSource            = "AnyVolumeDataSource"
	CSIMigration                   = "CSIMigration"
	CrossNamespaceVolumeDataSource = "CrossNamespaceVolumeDataSource"
	ExpandCSIVolumes               = "ExpandCSIVolumes"
	RecoverVolumeExpansionFailure  = "RecoverVolumeExpansionFailure"
	RemainingItemCount             = "RemainingItemCount"
	WatchBookmark                  = "WatchBookmark"
	WatchList                      = "WatchList"
)

// Gates returns the gates that every server has, by name.
func Gates() []Gate {
	return []Gate{
		{Name: APIListChunking, Alpha: "1.8", Beta: "1.9", Stable: "1.29", Removed: "1.33",
			Doc: "lists in pages, by limit and continue"},
		{Name: APIResponseCompression, Alpha: "1.8", Beta: "1.16",
			Doc: "long answers are compressed with gzip"},
		{Name: AnyVolumeDataSource, Alpha: "1.18", Beta: "1.24", Stable: "1.33", Removed: "1.36",
			Doc: "a claim is filled from any object, by dataSourceRef"},
		{Name: CSIMigration, Alpha: "1.14", Beta: "1.17", Stable: "1.25", Removed: "1.27",
			Doc: "a volume of a pod itself can be attached, by inlineVolumeSpec"},
		{Name: "CSIVolumeHealth", Alpha: "1.37",
			Doc: "the status of a CSINode tells what is wrong with the storage behind its drivers"},
		{Name: CrossNamespaceVolumeDataSource, Alpha: "1.26",
			Doc: "a claim is filled from an object of another namespace"},
		{Name: ExpandCSIVolumes, Alpha: "1.14", Beta: "1.16", Stable: "1.24", Removed: "1.27",
			Doc: "volumes of CSI drivers have a secret for enlarging them"},
		{Name: RecoverVolumeExpansionFailure, Alpha: "1.23", Beta: "1.32", Stable: "1.34",
			Doc: "a claim that could not grow may ask for less again"},
		{Name: RemainingItemCount, Alpha: "1.15", Beta: "1.16", Stable: "1.29", Removed: "1.33",
			Doc: "a page of a list tells how many objects come after it"},
		{Name: WatchBookmark, Alpha: "1.15", Beta: "1.16", Stable: "1.17", Removed: "1.33",
			Doc: "watches tell now and then how far they are"},
		{Name: WatchList, Alpha: "1.27", Beta: "1.32",
			Doc: "a watch can begin with the objects that there are, and say when it had them all"},
	}
}
