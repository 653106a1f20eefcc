package serviceaccount

import (
	"context"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
)

func (t *Tokens) TokenRequest(ctx context.Context, call *registry.Call) (*meta.Object, error) {
	return t.request(ctx, call)
}

func (t *Tokens) SecretToken(namespace, account, accountUID, secret string) (string, error) {
	return t.secretToken(namespace, account, accountUID, secret)
}

var NewKey = newKey
