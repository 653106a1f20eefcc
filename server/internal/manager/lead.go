package manager

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/google/uuid"

	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/consistency"
	"orch.io/controlplane/internal/election"
	"orch.io/controlplane/server/internal/objects"
	"orch.io/controlplane/storage"
)

// leaseDuration is how long a Lease is valid after its last renewal.
const leaseDuration = election.Duration

// group is a set of controllers that run together in the server that holds their Lease.
type group struct {
	lease   string
	members []member
}

// groups returns the controllers that run in every server, and the other controllers grouped by Lease. If no other
// server uses the store, all controllers run in this server.
func (m *Manager) groups() (every []member, led []group) {
	if !m.sharesStore() {
		return m.members, nil
	}
	for _, c := range m.members {
		lease := leaseOf(c.Controller)
		if lease == everyServer {
			every = append(every, c)
			continue
		}
		i := slices.IndexFunc(led, func(g group) bool { return g.lease == lease })
		if i < 0 {
			i, led = len(led), append(led, group{lease: lease})
		}
		led[i].members = append(led[i].members, c)
	}
	return every, led
}

// sharesStore reports whether other servers may use the store.
func (m *Manager) sharesStore() bool {
	shared, ok := m.o.Backend.(storage.Shared)
	return ok && shared.Shared()
}

// leaseOf returns the name of the Lease of a controller, or everyServer. Each controller of an embedding program has
// its own Lease, because programs with other controllers may use the same store.
func leaseOf(c client.Controller) string {
	if b, ok := builtinOf(c.Name); ok {
		return b.lease
	}
	if c.EveryServer {
		return everyServer
	}
	return "controlplane-controller-" + objectName(c.Name)
}

// objectName returns a valid object name for any text. Different texts get different names.
func objectName(text string) string {
	const longest = 100
	plain := func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			return c
		}
		return '-'
	}
	name := strings.Trim(strings.Map(plain, strings.ToLower(text)), "-")
	if name == text && len(name) <= longest {
		return name
	}
	sum := sha256.Sum256([]byte(text))
	name = strings.Trim(name[:min(len(name), longest)], "-")
	return strings.TrimPrefix(name+"-"+hex.EncodeToString(sum[:4]), "-")
}

// candidateID returns the name of this server as a holder of Leases. It is unique among all servers.
func candidateID() string {
	host, err := os.Hostname()
	if err != nil {
		host = "server"
	}
	return host + "_" + uuid.NewString()
}

// leadGroup runs the controllers of a group whenever this server holds their Lease, until the context ends. It calls
// decided, possibly several times, when it is known which server holds the Lease.
func (m *Manager) leadGroup(ctx context.Context, g group, id string, decided func()) error {
	l := m.o.Objects.Leadership(g.lease)
	log := m.o.Log.With("lease", l.Lease().String(), "id", id)
	leads, holder, rerun := m.leads.WithLabelValues(g.lease), "", false
	leads.Set(0)
	candidate := election.Candidate{
		Record: l, Identity: id, Duration: leaseDuration, MaxDuration: leaseDuration, Log: log,
		Slow: m.slowRenewals.WithLabelValues(g.lease).Inc,
		Seen: func(now string) {
			switch {
			case now == id:
				leads.Set(1)
			case now == "":
				leads.Set(0)
			default:
				decided()
				if now != holder {
					log.Info("another server leads", "holder", now)
				}
			}
			holder = now
		},
	}
	work := func(ctx context.Context, fence *consistency.LeaderFence) error {
		again := rerun
		rerun = true
		return m.work(consistency.WithLeaderFence(ctx, fence), g.members, objects.LeaderClient{Client: m.o.Client, Fence: fence}, again, decided)
	}
	if g.lease == leaseCleanup {
		candidate.Vacant = func(ctx context.Context) {
			log.Warn("store is full; running cleanup without a leader")
			if err := work(ctx, &consistency.LeaderFence{}); err != nil {
				log.Error("cleanup without a leader failed", "error", err)
			}
		}
	}
	for ctx.Err() == nil {
		err := candidate.Run(ctx, func(ctx context.Context) error { return m.lead(ctx, l, work) })
		if err != nil && !errors.Is(err, election.ErrLost) {
			return err
		}
		// The other candidates see in their caches that the Lease is free. This server waits for its own cache, too.
		// Otherwise it would always be the first to acquire the Lease that it released.
		_ = m.o.Hub.Wait(ctx, l.Term())
	}
	return nil
}

// lead runs work in one term, until the term or the context ends.
func (m *Manager) lead(ctx context.Context, l *objects.Leadership, work func(context.Context, *consistency.LeaderFence) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	fence := l.Fence(sync.OnceFunc(func() {
		m.o.Log.Warn("write refused: another server leads", "lease", l.Lease().String())
		cancel()
	}))
	caughtUp, done := context.WithTimeout(ctx, election.Duration)
	defer done()
	if m.o.Hub.Wait(caughtUp, fence.Revision) != nil { // the controllers must see the writes of earlier leaders
		return nil // the term ended, the server is stopping, or its cache is stalled: let another server lead
	}
	return work(ctx, fence)
}
