package rbac

import (
	"context"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/client"
)

// Aggregate runs the reconciliation of Aggregator.
func Aggregate(ctx context.Context, client client.Client, p names.Profile) error {
	return (&aggregator{client, p}).reconcile(ctx)
}
