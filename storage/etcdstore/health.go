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

// Health is asked for so often at most, and waited for no longer.
const (
	healthEvery = 2 * time.Second
	healthTime  = 3 * time.Second
)

// health is what was last found out.
type health struct {
	shared[struct{}, error]

	mu    sync.Mutex
	at    time.Time
	fault error
}

// Writable implements storage.Writer. The store takes writes if the members agree on a leader
// and none of them has raised the alarm that its data is corrupt.
func (s *Store) Writable(ctx context.Context) error {
	s.health.mu.Lock()
	at, fault := s.health.at, s.health.fault
	s.health.mu.Unlock()
	if !at.IsZero() && time.Since(at) < healthEvery && s.life.Err() == nil {
		return fault
	}
	fault, err := s.health.ask(ctx, s, whole)
	if err != nil {
		return err
	}
	return fault
}

// readHealth finds out whether the store takes writes.
func (s *Store) readHealth(ctx context.Context, _ struct{}) (fault, _ error) {
	inner, cancel := context.WithTimeout(ctx, healthTime)
	defer cancel()
	err := s.again(inner, func(ctx context.Context) error {
		_, err := s.client.Get(ctx, s.head)
		return err
	})
	if fault = s.told(ctx, err); fault == nil {
		fault = s.alarm(inner)
	}
	s.health.mu.Lock()
	defer s.health.mu.Unlock()
	s.health.at, s.health.fault = time.Now(), fault
	return fault, nil
}

// alarm returns what a member has raised the alarm of. That there is no room is none. A user
// may not be allowed to ask.
func (s *Store) alarm(ctx context.Context) error {
	var resp *clientv3.AlarmResponse
	err := s.again(ctx, func(ctx context.Context) (err error) {
		resp, err = s.client.AlarmList(ctx)
		return err
	})
	if errors.Is(err, rpctypes.ErrPermissionDenied) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("etcd does not tell its alarms: %w", err)
	}
	for _, a := range resp.Alarms {
		if a.Alarm == pb.AlarmType_CORRUPT {
			return fmt.Errorf("member %x of etcd has corrupt data", a.MemberID)
		}
	}
	return nil
}

// Check implements storage.Checker. etcd has lost commits if its newest revision is older than one
// that it has told before, or that of the store older than a commit that this one has made or answered, as
// when a cluster is restored from a backup. What is committed after that does not bring them back.
func (s *Store) Check(ctx context.Context) error {
	if _, err := s.Revision(ctx); err != nil {
		return err
	}
	if lost := s.lost.Load(); lost != 0 {
		return fmt.Errorf("etcd has lost commits: %d was the newest revision of the store, and later an older one was", lost)
	}
	inner, leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	inner, cancel := context.WithTimeout(inner, healthTime)
	defer cancel()
	return s.told(ctx, s.alarm(inner))
}

// Missing implements storage.Checker. etcd gives out no record that it cannot read.
func (s *Store) Missing() (damaged, losses int) {
	if s.lost.Load() != 0 {
		losses = 1
	}
	return 0, losses
}

// Size implements storage.Sizer: the size of the file of a member, which is about that of each.
func (s *Store) Size() (size int64) {
	inner, leave, err := s.enter(s.life)
	if err != nil {
		return 0
	}
	defer leave()
	inner, cancel := context.WithTimeout(inner, healthTime)
	defer cancel()
	members := pb.NewMaintenanceClient(s.client.ActiveConnection()) // the client's own connects to one member each time
	err = s.again(inner, func(ctx context.Context) error {
		resp, err := members.Status(ctx, &pb.StatusRequest{})
		size = resp.GetDbSize()
		return rpctypes.Error(err)
	})
	if err != nil {
		return 0
	}
	return size
}

// Shared implements storage.Shared: any number of servers may be over one cluster.
func (s *Store) Shared() bool { return true }
