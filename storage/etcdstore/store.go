package etcdstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"orch.io/controlplane/storage"
)

// Options say where etcd is, what part of it belongs to the store, and how much history
// it keeps.
type Options struct {
	// Endpoints are the addresses of members, such as https://10.0.0.1:2379.
	Endpoints []string
	// SyncEndpoints is how often the members are asked who they are, so that those that
	// join later are used and those that left are not; 0 is never. The members must
	// advertise addresses that can be reached from here.
	SyncEndpoints time.Duration
	// TLS has the certificates, that of the client included; nil is no TLS. Its GetClientCertificate
	// is asked for each connection, for certificates that are replaced while the store is open.
	TLS *tls.Config
	// Username and Password, if etcd asks for them.
	Username, Password string
	// Prefix is what all keys of the store begin with. It is /controlplane if it is empty.
	// No part of it between slashes can be data, stamps or fences, since it might lie within
	// another store then.
	Prefix string
	// Retain is how long a replaced record stays readable; 0 means 5 minutes, less than 0
	// forever.
	Retain time.Duration
	// Logger is told when etcd does not answer; nil is nobody.
	Logger *slog.Logger
}

// Bounds of calls, in time and bytes.
const (
	callTime      = 20 * time.Second // of a whole call
	firstAttempt  = time.Second / 2  // of the first attempt to read; each has twice the time of the one before
	firstCommit   = time.Second      // of the first attempt to commit
	attemptTime   = 5 * time.Second  // of the longest
	pauseTime     = 50 * time.Millisecond
	longPauseTime = time.Second
	aliveTime     = 10 * time.Second // after which a quiet connection is probed
	aliveTimeout  = 5 * time.Second  // for the answer to the probe
	maxSend       = 32 << 20         // etcd has the smaller bound
	maxReceive    = 3 * maxSend      // a record, what it replaced, and what is around them
)

// Store is a storage.Backend in etcd. It also implements storage.Stamper, storage.StampReader,
// storage.Checker, storage.Writer, storage.Sizer and storage.Shared.
type Store struct {
	client *clientv3.Client
	logger *slog.Logger
	user   bool   // etcd is told who the store is
	prefix string // of all that follow
	data   string // before the keys
	stamps string
	head   string
	floor  string // the key that says how far the stores have compacted
	fences string // before those of all stores

	life context.Context // ends with the store
	end  context.CancelFunc
	done sync.WaitGroup // the store's own goroutines

	leader leader
	queue  queue
	fence  fence
	seen   atomic.Int64 // the newest revision of etcd that an answer or a watch has told
	shown  atomic.Int64 // the newest revision of the store that was told
	heads  shared[struct{}, head]
	named  shared[history, map[string]int64]
	known  head // the newest one that heads has read, for its next call
	health health
	acked  atomic.Int64 // the newest revision of a commit that this store has made or answered
	lost   atomic.Int64 // a revision that there was, and that was gone later; 0: none

	mu     sync.Mutex
	closed bool
	calls  sync.WaitGroup // added to under mu, while the store is not closed
}

var (
	_ storage.Backend = (*Store)(nil)
	_ storage.Stamper = (*Store)(nil)
	_ storage.Checker = (*Store)(nil)
	_ storage.Writer  = (*Store)(nil)
	_ storage.Sizer   = (*Store)(nil)
	_ storage.Shared  = (*Store)(nil)
)

// Open opens the store, which is empty if nothing is under its prefix. It fails if etcd does
// not answer.
func Open(ctx context.Context, o Options) (*Store, error) {
	if len(o.Endpoints) == 0 {
		return nil, errors.New("open storage: no endpoint of etcd is given")
	}
	if o.Retain == 0 {
		o.Retain = 5 * time.Minute
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Prefix == "" {
		o.Prefix = "/controlplane"
	}
	prefix := strings.TrimSuffix(o.Prefix, "/") + "/"
	s := &Store{logger: o.Logger, user: o.Username != "", prefix: prefix, data: prefix + "data/", stamps: prefix + "stamps/", head: prefix + "head", floor: prefix + "compactor", fences: prefix + "fences/"}
	s.fence.begin(s.fences)
	s.life, s.end = context.WithCancel(context.Background())
	s.heads.read, s.health.read, s.named.read = s.newest, s.readHealth, s.readNames
	err := within(o.Prefix)
	if err == nil {
		err = s.connect(ctx, o)
	}
	if err == nil {
		err = s.begin(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open storage in etcd at %s: %w", strings.Join(o.Endpoints, ", "), err), s.Close())
	}
	s.done.Go(s.clean)
	if o.Retain > 0 {
		s.done.Go(func() { s.forget(o.Retain) })
	}
	return s, nil
}

// within refuses a prefix under which the keys of a store could be those of another one, too.
func within(prefix string) error {
	for part := range strings.SplitSeq(prefix, "/") {
		switch part {
		case "data", "stamps", "fences":
			return fmt.Errorf("the prefix %q may be within another store: no part of it can be %q", prefix, part)
		}
	}
	return nil
}

// connect makes the client, which asks for a token at once if it has a user: one member after the other,
// since one that is cut off from the others does not answer.
func (s *Store) connect(ctx context.Context, o Options) error {
	stop := context.AfterFunc(ctx, s.end)
	defer stop()
	tries := 0
	err := s.again(ctx, func(attempt context.Context) (err error) {
		end, _ := attempt.Deadline()
		i := tries % len(o.Endpoints)
		tries++
		s.client, err = clientv3.New(clientv3.Config{
			Endpoints: o.Endpoints[i : i+1], AutoSyncInterval: o.SyncEndpoints,
			TLS: o.TLS, Username: o.Username, Password: o.Password,
			DialTimeout: max(time.Until(end), time.Millisecond), DialKeepAliveTime: aliveTime, DialKeepAliveTimeout: aliveTimeout,
			MaxCallSendMsgSize: maxSend, MaxCallRecvMsgSize: maxReceive,
			MaxUnaryRetries: 1, // none by the client
			Logger:          zap.NewNop(), Context: s.life, DialOptions: append(s.followRoutes(), reconnect()),
		})
		return err
	})
	if err == nil {
		s.client.SetEndpoints(o.Endpoints...)
	}
	return s.told(ctx, err)
}

// reconnect is how often a member that is away is tried: by itself the connection would wait for
// two minutes when it has been away for long.
func reconnect() grpc.DialOption {
	return grpc.WithConnectParams(grpc.ConnectParams{
		Backoff:           backoff.Config{BaseDelay: pauseTime, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * longPauseTime},
		MinConnectTimeout: attemptTime,
	})
}

// begin makes the head of a store of which nothing is in etcd, so that Revision has a revision of
// the store to tell. Another one has a head, or is without one as long as etcd has no room.
func (s *Store) begin(ctx context.Context) error {
	inner, leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	var there bool
	err = s.again(inner, func(ctx context.Context) error {
		resp, err := s.client.Get(ctx, s.prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly(), clientv3.WithLimit(1))
		there = err == nil && len(resp.Kvs) > 0
		return err
	})
	if err != nil || there {
		return s.told(ctx, err)
	}
	err = s.again(inner, func(ctx context.Context) error {
		_, err := s.client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(s.head), "=", 0)).
			Then(clientv3.OpPut(s.head, "")).Commit()
		return err
	})
	if err = s.told(ctx, err); errors.Is(err, storage.ErrFull) {
		return nil
	}
	return err
}

// bounded is a context for one attempt: it ends in time, and a member that has no leader
// refuses the call at once.
func bounded(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(clientv3.WithRequireLeader(ctx), d)
}

// enter begins a call, which ends early if the store is closed; leave ends it.
func (s *Store) enter(ctx context.Context) (_ context.Context, leave func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, nil, storage.ErrClosed
	}
	s.calls.Add(1)
	ctx, cancel := s.living(ctx)
	return ctx, func() { cancel(); s.calls.Done() }, nil
}

// living returns a context that ends with the store, too.
func (s *Store) living(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.life, cancel)
	return ctx, func() { stop(); cancel() }
}

// Stamp implements storage.Stamper.
func (s *Store) Stamp(ctx context.Context, name, value string) (string, error) {
	inner, leave, err := s.enter(ctx)
	if err != nil {
		return "", err
	}
	defer leave()
	key := s.stamps + name
	var resp *clientv3.TxnResponse
	err = s.again(inner, func(ctx context.Context) (err error) { // what is made twice has one effect
		resp, err = s.client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).
			Then(clientv3.OpPut(key, value)).Else(clientv3.OpGet(key)).Commit()
		return err
	})
	if err != nil {
		return "", s.told(ctx, err)
	}
	if !resp.Succeeded {
		value = string(resp.Responses[0].GetResponseRange().Kvs[0].Value)
	}
	return value, nil
}

// Close implements storage.Backend.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.mu.Unlock()
	s.end()
	s.calls.Wait()
	s.done.Wait()
	if s.client == nil {
		return nil
	}
	if err := s.client.Close(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}
