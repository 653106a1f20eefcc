package etcdstore

import (
	"context"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"orch.io/controlplane/storage"
)

var _ storage.StampReader = (*Store)(nil)

// Stamps implements storage.StampReader.
func (s *Store) Stamps(ctx context.Context) (map[string]string, error) {
	inner, leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	var resp *clientv3.GetResponse
	err = s.retry(inner, func(ctx context.Context) (err error) {
		resp, err = s.client.Get(ctx, s.stamps, clientv3.WithPrefix())
		return err
	})
	if err != nil {
		return nil, s.storageError(ctx, err)
	}
	stamps := make(map[string]string, len(resp.Kvs))
	for _, kv := range resp.Kvs {
		stamps[strings.TrimPrefix(string(kv.Key), s.stamps)] = string(kv.Value)
	}
	return stamps, nil
}
