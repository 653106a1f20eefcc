package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// The health of etcd is read at most once in healthEvery, and a read takes at most healthTime.
const (
	healthEvery = 2 * time.Second
	healthTime  = 3 * time.Second
)

// health caches the latest result of readHealth.
type health struct {
	shared[struct{}, error]

	mu    sync.Mutex
	at    time.Time
	fault error
}

// Writable implements storage.Writer. The store accepts writes if the members have a leader and no
// member has raised the CORRUPT alarm.
func (s *Store) Writable(ctx context.Context) error {
	s.health.mu.Lock()
	at, fault := s.health.at, s.health.fault
	s.health.mu.Unlock()
	if !at.IsZero() && time.Since(at) < healthEvery && s.lifetime.Err() == nil {
		return fault
	}
	fault, err := s.health.get(ctx, s, noParams)
	if err != nil {
		return err
	}
	return fault
}

// readHealth finds out whether the store accepts writes, and caches the result.
func (s *Store) readHealth(ctx context.Context, _ struct{}) (fault, _ error) {
	inner, cancel := context.WithTimeout(ctx, healthTime)
	defer cancel()
	err := s.retry(inner, func(ctx context.Context) error {
		_, err := s.client.Get(ctx, s.head)
		return err
	})
	if fault = s.storageError(ctx, err); fault == nil {
		fault = s.corruptAlarm(inner)
	}
	s.health.mu.Lock()
	defer s.health.mu.Unlock()
	s.health.at, s.health.fault = time.Now(), fault
	return fault, nil
}

// corruptAlarm returns an error if a member has raised the CORRUPT alarm. It ignores NOSPACE, and a
// user without permission to list alarms.
func (s *Store) corruptAlarm(ctx context.Context) error {
	var resp *clientv3.AlarmResponse
	err := s.retry(ctx, func(ctx context.Context) (err error) {
		resp, err = s.client.AlarmList(ctx)
		return err
	})
	if errors.Is(err, rpctypes.ErrPermissionDenied) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list the alarms of etcd: %w", err)
	}
	for _, a := range resp.Alarms {
		if a.Alarm == pb.AlarmType_CORRUPT {
			return fmt.Errorf("etcd member %x has corrupt data", a.MemberID)
		}
	}
	return nil
}

// Check implements storage.Checker. etcd has lost commits if its newest revision is older than a
// revision that this Store has seen, or if the newest revision of the store is older than a commit that
// this Store made or read. That happens if a cluster is restored from a backup. Later commits do not
// clear the error, because they do not bring back the lost commits.
func (s *Store) Check(ctx context.Context) error {
	if _, err := s.Revision(ctx); err != nil {
		return err
	}
	if lost := s.lost.Load(); lost != 0 {
		return fmt.Errorf("etcd has lost commits: the newest revision of the store was %d, and later it was older", lost)
	}
	inner, leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	inner, cancel := context.WithTimeout(inner, healthTime)
	defer cancel()
	return s.storageError(ctx, s.corruptAlarm(inner))
}

// Missing implements storage.Checker. There are no damaged records, because etcd returns no record that
// it cannot read.
func (s *Store) Missing() (damaged, losses int) {
	if s.lost.Load() != 0 {
		losses = 1
	}
	return 0, losses
}

// Size implements storage.Sizer. It returns the size of the database of one member; those of the others
// are about the same.
func (s *Store) Size() (size int64) {
	inner, leave, err := s.enter(s.lifetime)
	if err != nil {
		return 0
	}
	defer leave()
	inner, cancel := context.WithTimeout(inner, healthTime)
	defer cancel()
	members := pb.NewMaintenanceClient(s.client.ActiveConnection()) // the client's Status method would open a connection for each call
	err = s.retry(inner, func(ctx context.Context) error {
		resp, err := members.Status(ctx, &pb.StatusRequest{})
		size = resp.GetDbSize()
		return rpctypes.Error(err)
	})
	if err != nil {
		return 0
	}
	return size
}

// Shared implements storage.Shared. It returns true: any number of servers can use one cluster.
func (s *Store) Shared() bool { return true }
