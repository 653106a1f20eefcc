package server

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
	"orch.io/controlplane/internal/election"
	"orch.io/controlplane/server/internal/objects"
	"orch.io/controlplane/storage"
)

// leaseDuration is how long the Lease of a leader counts that does not renew it.
const leaseDuration = election.Duration

// member is a controller of the server, with the plugin that asks for its keys, if one does.
type member struct {
	client.Controller
	plugged *plugged // nil: none
}

// crew is the controllers that one of several servers runs, by a Lease.
type crew struct {
	lease   string
	members []member
}

// crews returns the controllers that run in every server, and the others by their Leases.
func (s *Server) crews() (every []member, led []crew) {
	var all []member
	for _, c := range s.controllers {
		all = append(all, member{Controller: c})
	}
	for _, p := range s.plugged {
		all = append(all, member{p.controller, p})
	}
	if !s.sharesStore() {
		return all, nil
	}
	for _, m := range all {
		lease := leaseOf(m.Controller)
		if lease == everyServer {
			every = append(every, m)
			continue
		}
		i := slices.IndexFunc(led, func(c crew) bool { return c.lease == lease })
		if i < 0 {
			i, led = len(led), append(led, crew{lease: lease})
		}
		led[i].members = append(led[i].members, m)
	}
	return every, led
}

// sharesStore reports whether other servers may be over the store.
func (s *Server) sharesStore() bool {
	shared, ok := s.backend.(storage.Shared)
	return ok && shared.Shared()
}

// leaseOf returns the name of the Lease by which a controller is led, or everyServer. A
// program's own have one each: programs with other controllers may be over the same store.
func leaseOf(c client.Controller) string {
	if i := slices.IndexFunc(builtinControllers, func(b builtinController) bool { return b.name == c.Name }); i >= 0 {
		return builtinControllers[i].lease
	}
	if c.EveryServer {
		return everyServer
	}
	return "controlplane-controller-" + nameOfObject(c.Name)
}

// nameOfObject makes a name that objects may have of any text: others of other texts.
func nameOfObject(text string) string {
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

// identity names this server among those that may lead.
func identity() string {
	host, err := os.Hostname()
	if err != nil {
		host = "server"
	}
	return host + "_" + uuid.NewString()
}

// leadCrew runs a crew whenever this server leads it, until the context ends. decided is
// called, maybe several times, when it is known who leads it.
func (s *Server) leadCrew(ctx context.Context, c crew, as string, decided func()) error {
	l := s.objects.Leadership(c.lease)
	log := s.log.With("lease", l.Lease().String(), "as", as)
	leads, holder, again := s.metrics.leads.WithLabelValues(c.lease), "", false
	leads.Set(0)
	candidate := election.Candidate{
		Record: l, Identity: as, Duration: leaseDuration, Longest: leaseDuration, Log: log,
		Slow: s.metrics.slowRenewals.WithLabelValues(c.lease).Inc,
		Seen: func(now string) {
			switch {
			case now == as:
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
	work := func(ctx context.Context, term *objects.Term) error {
		forget := again
		again = true
		return s.work(objects.WithTerm(ctx, term), c.members, objects.Led{Client: s.client, Term: term}, forget, decided)
	}
	if c.lease == leaseCleanup {
		candidate.Vacant = func(ctx context.Context) {
			log.Warn("the store is full, so that nobody can be elected: what may go is deleted without a leader")
			if err := work(ctx, &objects.Term{}); err != nil {
				log.Error("nothing is deleted without a leader", "error", err)
			}
		}
	}
	for ctx.Err() == nil {
		err := candidate.Run(ctx, func(ctx context.Context) error { return s.lead(ctx, l, work) })
		if err != nil && !errors.Is(err, election.ErrLost) {
			return err
		}
		_ = s.hub.Wait(ctx, l.Term(nil).Revision) // else it would be faster than those who hear that the Lease is free
	}
	return nil
}

// lead works in a term of this server until that or the context ends.
func (s *Server) lead(ctx context.Context, l *objects.Leadership, work func(context.Context, *objects.Term) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	term := l.Term(sync.OnceFunc(func() {
		s.log.Warn("a write was refused, since another server leads", "lease", l.Lease().String())
		cancel()
	}))
	seen, done := context.WithTimeout(ctx, election.Duration)
	defer done()
	if s.hub.Wait(seen, term.Revision) != nil { // what leaders before it wrote is seen from the start
		return nil // the term has ended, or the server, or it hears of nothing and leaves this to others
	}
	return work(ctx, term)
}
