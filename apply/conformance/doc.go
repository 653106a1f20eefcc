// Package conformance compares package apply with the implementation that the
// field's clients and servers use, on random inputs: both must merge the same
// and record the same owners.
package conformance
