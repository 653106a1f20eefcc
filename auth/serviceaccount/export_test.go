package serviceaccount

import (
	"context"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
)

func (t *Tokens) TokenRequest(ctx context.Context, call *registry.Call) (*meta.Object, error) {
	return t.request(ctx, call)
}
