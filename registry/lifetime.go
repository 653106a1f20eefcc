package registry

// Lifetime says in which releases callers find a version, by words such as "1.22"; see
// Release of a server's Builder. The zero value is a version that is always there.
//
// Whatever is written in it stays readable: a version that is not served in a release is
// still converted from, where an object was stored in it.
type Lifetime struct {
	Introduced string // the first release that serves the version; empty: all before serve it, too
	Deprecated string // the first release that warns who asks for it; empty: none
	Removed    string // the first release that does not serve it any more; empty: none
}
