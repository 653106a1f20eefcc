package rbac

import (
	"context"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/client"
)

// Aggregate fills all aggregated roles once.
func Aggregate(ctx context.Context, client client.Client, p names.Profile) error {
	return (&aggregator{client, p}).reconcile(ctx)
}
