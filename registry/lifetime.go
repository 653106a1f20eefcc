package registry

// Lifetime gives the releases that serve a version, such as "1.22"; see Release of a server's
// Builder. The zero value is served by all releases.
//
// Stored objects stay readable in any release: a release that does not serve a version still
// converts objects that were stored in it.
type Lifetime struct {
	Introduced string // the first release that serves the version; empty: all releases before Removed
	Deprecated string // the first release that warns clients of the version; empty: none
	Removed    string // the first release that no longer serves the version; empty: none
}
