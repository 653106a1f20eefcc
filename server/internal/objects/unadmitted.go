package objects

import "context"

type unadmittedKey struct{}

// Unadmitted returns a context in which deletions through a Client skip admission. It is for deletions that complete
// an operation that admission has already allowed, such as an eviction or the deletion of a CustomResourceDefinition.
func Unadmitted(ctx context.Context) context.Context {
	return context.WithValue(ctx, unadmittedKey{}, true)
}

func unadmitted(ctx context.Context) bool {
	skip, _ := ctx.Value(unadmittedKey{}).(bool)
	return skip
}
