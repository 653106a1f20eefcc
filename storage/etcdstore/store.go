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

// Options configures Open. Only Endpoints is required.
type Options struct {
	// Endpoints are the client addresses of members, such as https://10.0.0.1:2379.
	Endpoints []string
	// SyncEndpoints is the interval at which the store reads the member list of the cluster, so that it
	// uses members that joined later and stops using members that left. If it is 0, the store only uses
	// Endpoints. The members must advertise addresses that the store can reach.
	SyncEndpoints time.Duration
	// TLS configures connections to etcd, including the client certificate. If it is nil, the store
	// uses no TLS. Its GetClientCertificate is called for each new connection, so a certificate can be
	// replaced while the store is open.
	TLS *tls.Config
	// Username and Password authenticate the store, if etcd has authentication enabled.
	Username, Password string
	// Prefix is the prefix of all keys of the store, /controlplane by default. None of its path
	// segments may be data, stamps or fences, because the prefix might then lie inside another store.
	Prefix string
	// Retain is how long a replaced record stays readable. 0 means 5 minutes. If it is negative, the
	// store never compacts the history.
	Retain time.Duration
	// Logger receives the log of the store. If it is nil, nothing is logged.
	Logger *slog.Logger
}

// Limits of calls, in time and bytes.
const (
	callTime      = 20 * time.Second // for all attempts of a call
	firstAttempt  = time.Second / 2  // first attempt of a read; each later attempt has twice the time
	firstCommit   = time.Second      // first attempt of a commit
	attemptTime   = 5 * time.Second  // longest attempt
	pauseTime     = 50 * time.Millisecond
	longPauseTime = time.Second
	aliveTime     = 10 * time.Second // an idle connection is probed after this time
	aliveTimeout  = 5 * time.Second  // for the answer to the probe
	maxSend       = 32 << 20         // the limit of etcd is smaller
	maxReceive    = 3 * maxSend      // an event with the new and the replaced record, and the encoding around them
)

// Store is a storage.Backend in etcd. It also implements storage.Stamper, storage.StampReader,
// storage.Checker, storage.Writer, storage.Sizer and storage.Shared.
type Store struct {
	client       *clientv3.Client
	logger       *slog.Logger
	user         bool   // whether the store authenticates with a user name
	prefix       string // of all keys of the store, ends with a slash
	data         string // prefix of the record keys
	stamps       string
	head         string
	compactorKey string // holds the revision of the latest compaction
	fences       string // prefix of the fences of all stores

	lifetime    context.Context // ended by Close
	endLifetime context.CancelFunc
	background  sync.WaitGroup // the goroutines of the store

	leader     leader
	queue      queue
	fence      fence
	seen       atomic.Int64                      // the newest etcd revision in any answer or event
	shown      atomic.Int64                      // the newest store revision that a caller or Revision has seen
	heads      shared[struct{}, head]            // combines concurrent reads of the head
	batchNames shared[history, map[string]int64] // combines searches for the outcome of batches
	known      head                              // the head of the previous call of readNewest, which alone uses it
	health     health
	acked      atomic.Int64 // the newest store revision that this Store committed or read
	lost       atomic.Int64 // a revision that was the newest before commits were lost, or 0

	mu     sync.Mutex
	closed bool
	calls  sync.WaitGroup // running calls; Add is called with mu held, and not after closed is set
}

var (
	_ storage.Backend = (*Store)(nil)
	_ storage.Stamper = (*Store)(nil)
	_ storage.Checker = (*Store)(nil)
	_ storage.Writer  = (*Store)(nil)
	_ storage.Sizer   = (*Store)(nil)
	_ storage.Shared  = (*Store)(nil)
)

// Open opens the store below o.Prefix. Without keys below the prefix, the store is empty. Open fails if
// etcd does not answer before ctx ends or 20 seconds have passed. The caller must call Close.
func Open(ctx context.Context, o Options) (*Store, error) {
	if len(o.Endpoints) == 0 {
		return nil, errors.New("open storage: Options.Endpoints is empty")
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
	s := &Store{logger: o.Logger, user: o.Username != "", prefix: prefix, data: prefix + "data/", stamps: prefix + "stamps/", head: prefix + "head", compactorKey: prefix + "compactor", fences: prefix + "fences/"}
	s.fence.begin(s.fences)
	s.lifetime, s.endLifetime = context.WithCancel(context.Background())
	s.heads.read, s.health.read, s.batchNames.read = s.readNewest, s.readHealth, s.readBatchNames
	err := checkPrefix(o.Prefix)
	if err == nil {
		err = s.connect(ctx, o)
	}
	if err == nil {
		err = s.createHead(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open storage in etcd at %s: %w", strings.Join(o.Endpoints, ", "), err), s.Close())
	}
	s.background.Go(s.sweepLoop)
	if o.Retain > 0 {
		s.background.Go(func() { s.compactLoop(o.Retain) })
	}
	return s, nil
}

// checkPrefix rejects a prefix of keys that could belong to another store, too.
func checkPrefix(prefix string) error {
	for part := range strings.SplitSeq(prefix, "/") {
		switch part {
		case "data", "stamps", "fences":
			return fmt.Errorf("prefix %q may be within another store: no path segment may be %q", prefix, part)
		}
	}
	return nil
}

// connect creates the client. If the store has a user, creating the client already requests a token, so
// connect tries the endpoints in turn: a member that is cut off from the others does not answer.
func (s *Store) connect(ctx context.Context, o Options) error {
	stop := context.AfterFunc(ctx, s.endLifetime)
	defer stop()
	tries := 0
	err := s.retry(ctx, func(attempt context.Context) (err error) {
		end, _ := attempt.Deadline()
		i := tries % len(o.Endpoints)
		tries++
		s.client, err = clientv3.New(clientv3.Config{
			Endpoints: o.Endpoints[i : i+1], AutoSyncInterval: o.SyncEndpoints,
			TLS: o.TLS, Username: o.Username, Password: o.Password,
			DialTimeout: max(time.Until(end), time.Millisecond), DialKeepAliveTime: aliveTime, DialKeepAliveTimeout: aliveTimeout,
			MaxCallSendMsgSize: maxSend, MaxCallRecvMsgSize: maxReceive,
			MaxUnaryRetries: 1, // the store retries calls itself
			Logger:          zap.NewNop(), Context: s.lifetime, DialOptions: append(s.followRoutes(), reconnect()),
		})
		return err
	})
	if err == nil {
		s.client.SetEndpoints(o.Endpoints...)
	}
	return s.storageError(ctx, err)
}

// reconnect limits the delay between connection attempts to a member that is down. By default, gRPC
// would wait up to two minutes.
func reconnect() grpc.DialOption {
	return grpc.WithConnectParams(grpc.ConnectParams{
		Backoff:           backoff.Config{BaseDelay: pauseTime, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * longPauseTime},
		MinConnectTimeout: attemptTime,
	})
}

// createHead writes the head of an empty store, so that Revision has a revision of the store to return.
// A store that is not empty has a head, unless etcd was out of space.
func (s *Store) createHead(ctx context.Context) error {
	inner, leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	var there bool
	err = s.retry(inner, func(ctx context.Context) error {
		resp, err := s.client.Get(ctx, s.prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly(), clientv3.WithLimit(1))
		there = err == nil && len(resp.Kvs) > 0
		return err
	})
	if err != nil || there {
		return s.storageError(ctx, err)
	}
	err = s.retry(inner, func(ctx context.Context) error {
		_, err := s.client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(s.head), "=", 0)).
			Then(clientv3.OpPut(s.head, "")).Commit()
		return err
	})
	if err = s.storageError(ctx, err); errors.Is(err, storage.ErrFull) {
		return nil
	}
	return err
}

// attemptContext returns the context of one attempt, with a timeout. A member without a leader then
// refuses the call at once.
func attemptContext(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(clientv3.WithRequireLeader(ctx), d)
}

// enter begins a call and returns its context, which also ends when the store is closed. The caller
// must call leave; Close waits for it.
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
	ctx, cancel := s.withLifetime(ctx)
	return ctx, func() { cancel(); s.calls.Done() }, nil
}

// withLifetime returns a context that also ends when the store is closed.
func (s *Store) withLifetime(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.lifetime, cancel)
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
	err = s.retry(inner, func(ctx context.Context) (err error) { // idempotent, so it may be retried
		resp, err = s.client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).
			Then(clientv3.OpPut(key, value)).Else(clientv3.OpGet(key)).Commit()
		return err
	})
	if err != nil {
		return "", s.storageError(ctx, err)
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
	s.endLifetime()
	s.calls.Wait()
	s.background.Wait()
	if s.client == nil {
		return nil
	}
	if err := s.client.Close(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}
