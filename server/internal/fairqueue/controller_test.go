package fairqueue

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/server/flowcontrol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// simple returns a configuration with the given levels. A user's group with the name of a level
// selects it.
func simple(levels ...flowcontrol.PriorityLevel) flowcontrol.Config {
	config := flowcontrol.Config{Levels: levels}
	all := []string{flowcontrol.All}
	for _, l := range levels {
		config.Schemas = append(config.Schemas, flowcontrol.FlowSchema{Name: l.Name, Level: l.Name, Distinguisher: flowcontrol.ByUser, Rules: []flowcontrol.Rule{{
			Subjects: []flowcontrol.Subject{{Group: l.Name}}, Paths: []flowcontrol.PathRule{{Verbs: all, Paths: all}},
		}}})
	}
	return config
}

func queuing(queues, hand, length int) *flowcontrol.Queuing {
	return &flowcontrol.Queuing{Queues: queues, HandSize: hand, QueueLength: length}
}

// crowd makes requests of many users to a controller within a synctest bubble.
type crowd struct {
	*testing.T
	c   *Controller
	reg *prometheus.Registry

	mu      sync.Mutex
	order   []string // users in the order in which they got seats
	refused []error
	all     sync.WaitGroup
}

func (c *crowd) flow(level, user string) Flow {
	return c.c.Classify(&auth.Attributes{User: &auth.User{Name: user, Groups: []string{level}}, Verb: "get", Path: "/"})
}

func (c *crowd) hold(level, user string, seats int) Seat {
	c.Helper()
	s, err := c.c.Acquire(c.Context(), c.flow(level, user), seats)
	require.NoError(c, err)
	return s
}

// ask starts a request that holds its seats for the duration work.
func (c *crowd) ask(level, user string, seats int, work time.Duration) {
	f := c.flow(level, user)
	c.all.Go(func() {
		s, err := c.c.Acquire(c.Context(), f, seats)
		c.mu.Lock()
		if err != nil {
			c.refused = append(c.refused, err)
		} else {
			c.order = append(c.order, user)
		}
		c.mu.Unlock()
		time.Sleep(work)
		s.Release()
	})
	synctest.Wait()
}

// seatedUsers returns the users that got seats so far, in order.
func (c *crowd) seatedUsers() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.order)
}

// turnedAway returns the errors of refused requests.
func (c *crowd) turnedAway() []error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.refused)
}

// served returns how many of the first requests that got seats are of a user.
func (c *crowd) served(user string, first int) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, u := range c.order[:min(first, len(c.order))] {
		if u == user {
			n++
		}
	}
	return n
}

// idle waits for all requests and checks that every seat was released.
func (c *crowd) idle() {
	c.Helper()
	c.all.Wait()
	c.c.mu.Lock()
	defer c.c.mu.Unlock()
	kept := 0
	for _, l := range c.c.levels {
		assert.Zero(c, l.inUse, l.config.Name)
		assert.Zero(c, l.waiting, l.config.Name)
		kept += l.kept
	}
	assert.Zero(c, c.c.waiting)
	assert.Equal(c, kept, c.c.reserved)
}

// inBubble runs a test with a controller in a synctest bubble and checks idle at its end.
func inBubble(t *testing.T, seats int, config flowcontrol.Config, test func(*crowd)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := &crowd{T: t, reg: prometheus.NewRegistry()}
		var err error
		c.c, err = New(Options{Seats: seats, MaxWait: 15 * time.Second, Metrics: c.reg}, config)
		require.NoError(t, err)
		test(c)
		c.idle()
	})
}

func metricsOf(reg *prometheus.Registry) string {
	w := httptest.NewRecorder()
	promhttp.HandlerFor(reg, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}

// TestFairQueues checks that a flood of requests of one user does not delay another user, whatever
// the requests cost.
func TestFairQueues(t *testing.T) {
	level := flowcontrol.PriorityLevel{Name: "l", Shares: 1, Queuing: queuing(64, 4, 50)}
	inBubble(t, 10, simple(level), func(c *crowd) {
		var held []Seat
		for range 10 {
			held = append(held, c.hold("l", "flood", 1))
		}
		for range 100 {
			c.ask("l", "flood", 1, 10*time.Millisecond)
		}
		c.ask("l", "quiet", 1, 10*time.Millisecond)
		assert.Empty(c, c.seatedUsers())
		for i := range 5 {
			held[i].Release()
			synctest.Wait()
		}
		assert.Equal(c, 1, c.served("quiet", 5), "served after at most one request of each of the four queues of the flood: %v", c.seatedUsers())
		for i := range held {
			held[i].Release()
		}
	})
	// Flows share equally by work: if the requests of one user take three times as long, or three
	// seats, a third as many of them are served.
	for _, test := range []struct {
		name  string
		seats int
		work  time.Duration
	}{{"seats", 3, 10 * time.Millisecond}, {"time", 1, 30 * time.Millisecond}} {
		inBubble(t, 30, simple(level), func(c *crowd) {
			held := c.hold("l", "other", 1)
			rest := make([]Seat, 0, 29)
			for range 29 {
				rest = append(rest, c.hold("l", "other", 1))
			}
			for range 180 {
				c.ask("l", "greedy", test.seats, test.work)
				c.ask("l", "modest", 1, 10*time.Millisecond)
			}
			held.Release()
			for i := range rest[:5] {
				rest[i].Release()
			}
			time.Sleep(400 * time.Millisecond)
			greedy, modest := c.served("greedy", 1000), c.served("modest", 1000)
			assert.InDelta(c, 3, float64(modest)/float64(greedy), 1, "%s: %d %d", test.name, modest, greedy)
			for i := range rest {
				rest[i].Release()
			}
		})
	}
}

// TestQueueIsFirstInFirstOut checks the order within a queue.
func TestQueueIsFirstInFirstOut(t *testing.T) {
	inBubble(t, 1, simple(flowcontrol.PriorityLevel{Name: "l", Shares: 1, Queuing: queuing(1, 1, 50)}), func(c *crowd) {
		s := c.hold("l", "a", 1)
		var want []string
		for i := range 20 {
			want = append(want, fmt.Sprint(i))
			c.ask("l", want[i], 1, time.Millisecond)
		}
		s.Release()
		c.all.Wait()
		assert.Equal(c, want, c.seatedUsers())
	})
}

// TestIdleFlowsSaveNoTime checks that a flow that sent nothing until now takes turns with a busy one.
func TestIdleFlowsSaveNoTime(t *testing.T) {
	inBubble(t, 1, simple(flowcontrol.PriorityLevel{Name: "l", Shares: 1, Queuing: queuing(64, 1, 50)}), func(c *crowd) {
		s := c.hold("l", "a", 1)
		for range 14 {
			c.ask("l", "busy", 1, 500*time.Millisecond)
		}
		s.Release()
		time.Sleep(3750 * time.Millisecond)
		assert.Len(c, c.seatedUsers(), 8)
		for range 6 {
			c.ask("l", "late", 1, 500*time.Millisecond)
		}
		c.all.Wait()
		assert.Len(c, c.seatedUsers(), 20)
		assert.LessOrEqual(c, c.served("late", 14), 4, "of six requests after the first eight: %v", c.seatedUsers())
	})
}

// TestShuffleSharding checks that a flooding flow does not fill all queues of other flows.
func TestShuffleSharding(t *testing.T) {
	level := flowcontrol.PriorityLevel{Name: "l", Shares: 1, Queuing: queuing(128, 6, 50)}
	inBubble(t, 1, simple(level), func(c *crowd) {
		s := c.hold("l", "a", 1)
		for range 400 {
			c.ask("l", "flood", 1, 0)
		}
		assert.Len(c, c.turnedAway(), 100, "its six queues are full")
		for i := range 200 {
			c.ask("l", fmt.Sprint("quiet", i), 1, 0)
		}
		assert.Len(c, c.turnedAway(), 100, "no other flow is refused")
		s.Release()
	})
}

// TestLevelsBorrowUnusedSeats checks that levels borrow unused seats up to the part that their owner keeps, and
// that the owner gets released seats before another level borrows them.
func TestLevelsBorrowUnusedSeats(t *testing.T) {
	half := 50
	levels := []flowcontrol.PriorityLevel{
		{Name: "lender", Shares: 1, Lendable: 60, Queuing: queuing(8, 2, 50)},
		{Name: "miser", Shares: 1, Queuing: queuing(8, 2, 50)},
		{Name: "bounded", Shares: 1, Borrowing: &half},
		{Name: "greedy", Shares: 1, Queuing: queuing(8, 2, 50)},
	}
	inBubble(t, 40, simple(levels...), func(c *crowd) {
		var held []Seat
		for range 13 { // ten of its own and three of the lender
			held = append(held, c.hold("bounded", "b", 1))
		}
		for range 2 {
			held = append(held, c.hold("bounded", "b", 1))
		}
		_, err := c.c.Acquire(c.Context(), c.flow("bounded", "b"), 1)
		assert.Equal(c, ConcurrencyLimit, err, "the limit is 15: its own seats and half as many")

		var borrowed []Seat
		for range 11 {
			borrowed = append(borrowed, c.hold("greedy", "g", 1))
		}
		for range 30 {
			c.ask("greedy", "waits", 1, 10*time.Millisecond)
		}
		assert.Empty(c, c.seatedUsers(), "six seats are lent: five to bounded, one to greedy")
		for range 10 {
			held = append(held, c.hold("miser", "m", 1))
		}
		for range 4 {
			held = append(held, c.hold("lender", "l", 1))
		}
		for range 3 {
			c.ask("lender", "back", 1, time.Second)
		}
		assert.Empty(c, c.seatedUsers())
		for _, s := range []*Seat{&borrowed[0], &held[0], &held[1]} {
			s.Release()
			synctest.Wait()
		}
		assert.Equal(c, []string{"back", "back", "back"}, c.seatedUsers(), "the owner comes first")
		for i := range borrowed {
			borrowed[i].Release()
		}
		for i := range held {
			held[i].Release()
		}
	})
}

// TestWideRequests checks that a request for many seats is not starved by requests for one seat,
// and is reduced to the maximum of its level.
func TestWideRequests(t *testing.T) {
	inBubble(t, 40, simple(flowcontrol.PriorityLevel{Name: "l", Shares: 1, Queuing: queuing(8, 2, 50)}), func(c *crowd) {
		wide := c.hold("l", "w", 1000)
		assert.Equal(c, 6, wide.seats, "15 percent of 40 seats")
		wide.Release()
		var held []Seat
		for range 40 {
			held = append(held, c.hold("l", "a", 1))
		}
		c.ask("l", "wide", 6, time.Second)
		for range 5 {
			c.ask("l", "narrow", 1, time.Second)
		}
		for i := range held[:8] {
			held[i].Release()
			synctest.Wait()
		}
		assert.Contains(c, c.seatedUsers(), "wide")
		for i := range held {
			held[i].Release()
		}
	})
}

// TestQueueBounds checks that requests are refused if the queue is full or the wait is too long,
// and that a cancelled request leaves the queue.
func TestQueueBounds(t *testing.T) {
	inBubble(t, 1, simple(flowcontrol.PriorityLevel{Name: "l", Shares: 1, Queuing: queuing(1, 1, 3)}), func(c *crowd) {
		s := c.hold("l", "a", 1)
		for range 5 {
			c.ask("l", "b", 1, 0)
		}
		assert.Equal(c, []error{QueueFull, QueueFull}, c.turnedAway())
		begun := time.Now()
		c.all.Wait()
		assert.Equal(c, 15*time.Second, time.Since(begun))
		assert.Equal(c, []error{QueueFull, QueueFull, Timeout, Timeout, Timeout}, c.turnedAway())

		ctx, cancel := context.WithCancel(c.Context())
		f := c.flow("l", "gone")
		c.all.Go(func() {
			_, err := c.c.Acquire(ctx, f, 1)
			assert.Equal(c, Cancelled, err)
		})
		synctest.Wait()
		c.ask("l", "next", 1, 0)
		cancel()
		synctest.Wait()
		short, stop := context.WithTimeout(c.Context(), time.Second)
		defer stop()
		_, err := c.c.Acquire(short, f, 1)
		assert.Equal(c, Timeout, err)
		s.Release()
		s.Release() // has no effect
		c.all.Wait()
		assert.Equal(c, []string{"next"}, c.seatedUsers())

		const labels = `{flow_schema="l",priority_level="l"`
		for _, line := range []string{
			"rejected_requests_total" + labels + `,reason="queue-full"} 2`, "rejected_requests_total" + labels + `,reason="time-out"} 4`,
			"rejected_requests_total" + labels + `,reason="cancelled"} 1`, "dispatched_requests_total" + labels + "} 2",
			"current_inqueue_requests" + labels + "} 0", "current_executing_requests" + labels + "} 0", "current_executing_seats" + labels + "} 0",
			"request_wait_duration_seconds_count{execute=\"false\",flow_schema=\"l\",priority_level=\"l\"} 7",
			"request_wait_duration_seconds_bucket{execute=\"true\",flow_schema=\"l\",priority_level=\"l\",le=\"0\"} 1",
			`nominal_limit_seats{priority_level="l"} 1`, `lower_limit_seats{priority_level="l"} 1`, `upper_limit_seats{priority_level="l"} 1`,
		} {
			assert.Contains(c, metricsOf(c.reg), "\napiserver_flowcontrol_"+line+"\n")
		}
	})
}

// TestCancelledWideRequestUnblocksQueue cancels a request that the next request in the queue waits
// for.
func TestCancelledWideRequestUnblocksQueue(t *testing.T) {
	inBubble(t, 40, simple(flowcontrol.PriorityLevel{Name: "l", Shares: 1, Queuing: queuing(1, 1, 50)}), func(c *crowd) {
		var held []Seat
		for range 38 {
			held = append(held, c.hold("l", "a", 1))
		}
		ctx, cancel := context.WithCancel(c.Context())
		f := c.flow("l", "wide")
		c.all.Go(func() { _, _ = c.c.Acquire(ctx, f, 6) })
		synctest.Wait()
		c.ask("l", "narrow", 1, 0)
		assert.Empty(c, c.seatedUsers())
		cancel()
		synctest.Wait()
		assert.Equal(c, []string{"narrow"}, c.seatedUsers())
		for i := range held {
			held[i].Release()
		}
	})
}

// TestExemptRequestsNeverWait makes exempt requests while all seats are in use.
func TestExemptRequestsNeverWait(t *testing.T) {
	inBubble(t, 1, simple(flowcontrol.PriorityLevel{Name: "free", Exempt: true}, flowcontrol.PriorityLevel{Name: "l", Shares: 1}), func(c *crowd) {
		s := c.hold("l", "a", 1)
		for range 100 {
			free := c.hold("free", "root", 10)
			defer free.Release()
		}
		_, err := c.c.Acquire(c.Context(), c.flow("l", "a"), 1)
		assert.Equal(c, ConcurrencyLimit, err)
		s.Release()
	})
}

// TestSetConfig checks that requests in flight keep their seats, and that waiting requests and
// older Flows are classified again.
func TestSetConfig(t *testing.T) {
	a := flowcontrol.PriorityLevel{Name: "a", Shares: 1, Queuing: queuing(4, 2, 50)}
	b := flowcontrol.PriorityLevel{Name: "b", Shares: 1, Queuing: queuing(1, 1, 2)}
	inBubble(t, 4, simple(a, b), func(c *crowd) {
		held := []Seat{c.hold("a", "x", 1), c.hold("a", "x", 1), c.hold("b", "x", 1), c.hold("b", "x", 1)}
		old := c.flow("a", "old")
		for i := range 5 {
			c.ask("a", fmt.Sprint("a", i), 1, time.Second)
		}
		require.Error(c, c.c.SetConfig(flowcontrol.Config{}))

		// Requests of a belong to b now, whose queue has room for two.
		moved := simple(b)
		moved.Schemas[0].Rules[0].Subjects[0].Group = "a"
		require.NoError(c, c.c.SetConfig(moved))
		synctest.Wait()
		assert.ElementsMatch(c, []string{"a0", "a1"}, c.seatedUsers(), "b has all four seats")
		assert.Len(c, c.turnedAway(), 1)
		assert.Equal(c, 6, c.c.reserved, "two seats of a are still in use")
		for i := range held {
			held[i].Release()
		}
		c.all.Wait()
		assert.ElementsMatch(c, []string{"a0", "a1", "a2", "a3"}, c.seatedUsers())
		s, err := c.c.Acquire(c.Context(), old, 1)
		require.NoError(c, err)
		assert.Equal(c, "b", s.schema.level.config.Name)
		s.Release()

		// A waiting request may become exempt.
		s = c.hold("a", "x", 1)
		rest := []Seat{c.hold("a", "x", 1), c.hold("a", "x", 1), c.hold("a", "x", 1)}
		c.ask("a", "freed", 1, time.Second)
		free := moved
		free.Levels = []flowcontrol.PriorityLevel{{Name: "b", Exempt: true}}
		require.NoError(c, c.c.SetConfig(free))
		synctest.Wait()
		assert.Contains(c, c.seatedUsers(), "freed")
		s.Release()
		for i := range rest {
			rest[i].Release()
		}
		require.NoError(c, c.c.SetConfig(moved))
	})
}

// TestConcurrentSetConfig checks that all seats are released and all requests end while the
// configuration changes.
func TestConcurrentSetConfig(t *testing.T) {
	inBubble(t, 20, flowcontrol.Default(names.Kubernetes), func(c *crowd) {
		groups := []string{auth.Masters, auth.Authenticated, auth.ServiceAccounts, "system:nodes", "nobody"}
		configs := []flowcontrol.Config{flowcontrol.Default(names.Kubernetes), flowcontrol.Default(names.Orch), {
			Levels: []flowcontrol.PriorityLevel{{Name: "only", Shares: 1, Queuing: queuing(2, 1, 5)}}, Schemas: []flowcontrol.FlowSchema{{Name: "only", Level: "only"}},
		}}
		for i := range 100 {
			c.all.Go(func() {
				random := rand.New(rand.NewPCG(1, uint64(i)))
				for range 50 {
					ctx, cancel := context.WithTimeout(c.Context(), time.Duration(random.IntN(100))*time.Millisecond)
					f := c.c.Classify(&auth.Attributes{User: &auth.User{Name: fmt.Sprint(random.IntN(10)), Groups: []string{groups[random.IntN(5)], auth.Authenticated}}, Verb: "get", Path: "/"})
					s, err := c.c.Acquire(ctx, f, random.IntN(12))
					if err == nil {
						time.Sleep(time.Duration(random.IntN(30)) * time.Millisecond)
						s.Release()
					}
					cancel()
				}
			})
		}
		c.all.Go(func() {
			for i := range 60 {
				time.Sleep(7 * time.Millisecond)
				assert.NoError(c, c.c.SetConfig(configs[i%len(configs)]))
				c.c.mu.Lock()
				reserved := 0
				for _, l := range c.c.levels {
					reserved += max(l.inUse, l.kept)
				}
				assert.Equal(c, reserved, c.c.reserved)
				c.c.mu.Unlock()
			}
			assert.NoError(c, c.c.SetConfig(configs[0]))
		})
	})
}

func BenchmarkAcquire(b *testing.B) {
	c, err := New(Options{Seats: 600, MaxWait: time.Second}, flowcontrol.Default(names.Kubernetes))
	if err != nil {
		b.Fatal(err)
	}
	a := &auth.Attributes{User: &auth.User{Name: "alice", Groups: []string{"devs", auth.Authenticated}}, Verb: "get", Resource: "pods", Namespace: "a"}
	b.ReportAllocs()
	for b.Loop() {
		s, err := c.Acquire(b.Context(), c.Classify(a), 1)
		if err != nil {
			b.Fatal(err)
		}
		s.Release()
	}
}

// TestMetricsOfRemovedSchemas checks that the series of a schema begin with its first request and
// are removed with the schema, even if a request still has it. Names of schemas are names of
// objects, so that their number is not bounded over time.
func TestMetricsOfRemovedSchemas(t *testing.T) {
	level := flowcontrol.PriorityLevel{Name: "l", Shares: 1, Queuing: queuing(64, 4, 50)}
	free := flowcontrol.PriorityLevel{Name: "free", Exempt: true}
	inBubble(t, 10, simple(level, free), func(c *crowd) {
		first := c.hold("l", "somebody", 1)
		first.Release()
		before := strings.Count(metricsOf(c.reg), "\n")
		var late Flow
		for i := range 20 {
			name := fmt.Sprint("schema-", i)
			config := simple(level, free)
			for j, s := range config.Schemas { // a schema of each level
				s.Name, s.Rules = name+s.Level, slices.Clone(s.Rules)
				s.Rules[0].Subjects = []flowcontrol.Subject{{Group: s.Name}}
				config.Schemas = slices.Insert(config.Schemas, j, s)
			}
			require.NoError(c, c.c.SetConfig(config))
			assert.NotContains(c, metricsOf(c.reg), "schema-", "the schema has no requests yet")
			used := c.hold(name+"l", "somebody", 1)
			used.Release()
			assert.Contains(c, metricsOf(c.reg), name+"l\"")
			late = c.flow(name+"free", "somebody")
		}
		held := c.hold("l", "somebody", 1)
		require.NoError(c, c.c.SetConfig(simple(level, free)))
		seat, err := c.c.Acquire(c.Context(), late, 1)
		require.NoError(c, err)
		seat.Release()
		page := metricsOf(c.reg)
		assert.NotContains(c, page, "schema-")
		assert.Contains(c, page, "\napiserver_flowcontrol_current_limit_seats{priority_level=\"l\"} 10\n")
		held.Release()
		assert.Equal(c, before, strings.Count(metricsOf(c.reg), "\n"))
	})
}
