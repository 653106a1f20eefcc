// Package conformance compares package apply with client-go, apimachinery and
// structured-merge-diff on generated inputs: both must create equivalent patches, merge
// alike, record the same owners and extract the same fields.
package conformance
