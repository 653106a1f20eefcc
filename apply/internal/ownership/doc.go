// Package ownership derives from the schema of a kind which fields an object has, how an
// applied object merges into a live one, and which fields differ between two objects.
//
// A Type answers these questions in two ways. A plan walks plain trees; it covers nearly
// all writes and gives up on every unusual value. The same schema compiled for
// structured-merge-diff answers whenever the plan gives up. Where the plan does not give
// up, both give the same answer; FuzzPlan and TestBuiltinKindsUsePlans compare them. The
// documentation of package apply explains why both exist.
//
// No function of this package changes its arguments, and a Type is safe for concurrent use.
package ownership
