package etcdtest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// Join adds a member at the end of Members and waits until it serves. The member is a learner, which
// has no vote, until it is promoted.
func (c *Cluster) Join() *Member {
	c.t.Helper()
	i, peer := len(c.Members), c.add()
	m := c.Members[i]
	var all []*pb.Member
	c.change(func(ctx context.Context, client *clientv3.Client) error {
		resp, err := client.MemberAddAsLearner(ctx, []string{peer})
		if err == nil {
			all = resp.Members
		}
		return err
	})
	var known []string
	for _, member := range all {
		name := member.Name
		if name == "" {
			name = m.name // the new member has not published its name yet
		}
		known = append(known, fmt.Sprintf("%s=%s", name, member.PeerURLs[0]))
	}
	m.args = append(m.args, "--initial-cluster", strings.Join(known, ","), "--initial-cluster-state", "existing")
	m.start()
	m.Ready()
	return m
}

// Promote makes member i, which must be a learner that has caught up, a voting member.
func (c *Cluster) Promote(i int) {
	c.t.Helper()
	id := c.id(i)
	c.change(func(ctx context.Context, client *clientv3.Client) error {
		_, err := client.MemberPromote(ctx, id)
		return err
	})
}

// leaveTime is how long a removed member may take to exit by itself.
const leaveTime = 5 * time.Second

// Leave removes a member from the cluster permanently. The member may answer for a moment before it
// exits.
func (c *Cluster) Leave(i int) {
	c.t.Helper()
	id := c.id(i)
	c.change(func(ctx context.Context, client *clientv3.Client) error {
		_, err := client.MemberRemove(ctx, id)
		return err
	})
	select {
	case <-c.Members[i].exited:
	case <-time.After(leaveTime):
		c.Members[i].Kill()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = append(c.gone, i)
}

// id returns the etcd ID of a member.
func (c *Cluster) id(i int) (id uint64) {
	c.t.Helper()
	c.change(func(ctx context.Context, client *clientv3.Client) error {
		resp, err := client.MemberList(ctx)
		if err != nil {
			return err
		}
		for _, member := range resp.Members {
			if member.Name == c.Members[i].name {
				id = member.ID
			}
		}
		return nil
	})
	require.NotZero(c.t, id, "no such member")
	return id
}

// change calls do with a client of the current members until it succeeds. etcd refuses changes of the
// membership until all members have been connected to each other for some seconds.
func (c *Cluster) change(do func(context.Context, *clientv3.Client) error) {
	c.t.Helper()
	var endpoints []string
	for i, m := range c.Members {
		if !slices.Contains(c.gone, i) && m.cmd != nil {
			endpoints = append(endpoints, m.Endpoint)
		}
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints, Logger: zap.NewNop()})
	require.NoError(c.t, err)
	defer func() { require.NoError(c.t, client.Close()) }()
	ctx, cancel := context.WithTimeout(c.t.Context(), 5*time.Minute)
	defer cancel()
	for {
		attempt, done := context.WithTimeout(ctx, 5*time.Second)
		err := do(attempt, client)
		done()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			require.NoError(c.t, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
