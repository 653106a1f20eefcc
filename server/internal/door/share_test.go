package door_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/internal/faultinject"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/flowcontrol"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage/memstore"
)

// TestFlowHeaders checks that every response to an authenticated user has the UIDs of its flow
// schema and priority level.
func TestFlowHeaders(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		profile       names.Profile
		schema, level string
	}{
		{names.Kubernetes, "X-Kubernetes-Pf-Flowschema-Uid", "X-Kubernetes-Pf-Prioritylevel-Uid"},
		{names.Orch, "X-Orch-Pf-Flowschema-Uid", "X-Orch-Pf-Prioritylevel-Uid"},
	} {
		s := servertest.New(t, apitest.AuthenticateByHeader, func(b *server.Builder) {
			b.Names = test.profile
			b.Authorizer = auth.AuthorizerFunc(func(_ context.Context, a auth.Attributes) (auth.Decision, string, error) {
				if a.Resource == "secrets" {
					return auth.Deny, "", nil
				}
				return auth.Allow, "", nil
			})
		})
		a := apitest.InProcess(t, s)
		uids := map[string]int{}
		for _, path := range []string{"/api", "/healthz", "/metrics", "/nothing", "/openapi/v3", apitest.ConfigMapsPath, apitest.ConfigMapsPath + "/none", "/api/v1/secrets", apitest.ConfigMapsPath + "?watch=1&timeoutSeconds=1"} {
			got := a.Do("GET", path, nil, "X-User", "alice")
			assert.Len(t, got.Header.Get(test.schema), 36, path)
			assert.Len(t, got.Header.Get(test.level), 36, path)
			uids[got.Header.Get(test.schema)]++
			uids[got.Header.Get(test.level)]++
		}
		assert.ElementsMatch(t, []int{1, 1, 8, 8}, []int{uids[a.Do("GET", "/healthz", nil, "X-User", "b").Header.Get(test.schema)],
			uids[a.Do("GET", "/api", nil, "X-User", "root", "X-Group", auth.Masters).Header.Get(test.level)],
			uids[a.Do("GET", "/api", nil, "X-User", "b").Header.Get(test.schema)], uids[a.Do("GET", "/api", nil, "X-User", "b").Header.Get(test.level)]})
		got := a.Do("GET", "/api", nil)
		assert.Equal(t, 401, got.Code)
		assert.Empty(t, got.Header.Get(test.schema))
	}
}

// TestUserWithoutFreeSeatGets429 checks that a user who holds all seats of its share waits and then
// gets a 429, while other priority levels keep theirs.
func TestUserWithoutFreeSeatGets429(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	var held atomic.Int64
	store := faultinject.Wrap(memstore.New(memstore.Options{}), nil)
	s, _ := apitest.NewErrorFree(t, apitest.AuthenticateByHeader, func(b *server.Builder) {
		b.Storage, b.Limits.InFlight, b.Limits.Requests, b.Limits.RequestTime = store, 20, 2000, time.Hour
	})
	a := apitest.InProcess(t, s)
	store.SetPlan(func(c faultinject.Call) faultinject.Fault {
		if c.Op == faultinject.OpCommit {
			held.Add(1)
			return faultinject.Fault{Wait: hold}
		}
		return faultinject.Fault{}
	})
	var all sync.WaitGroup
	var refused atomic.Int64
	for i := range 400 {
		all.Go(func() {
			got := a.Do("POST", apitest.ConfigMapsPath, apitest.NewConfigMap(fmt.Sprint("c", i)), "X-User", "flood")
			if got.Code == 429 {
				assert.Equal(t, "1", got.Header.Get("Retry-After"))
				assert.Equal(t, "TooManyRequests", got.Body["reason"])
				refused.Add(1)
			} else {
				assert.Equal(t, 201, got.Code)
			}
		})
	}
	require.Eventually(t, func() bool { return held.Load() == 14 && refused.Load() == 400-14-6*50 }, apitest.Timeout, time.Millisecond)
	assert.Equal(t, 200, a.Do("GET", "/livez", nil, "X-User", "anybody").Code)
	assert.Equal(t, 200, a.Do("GET", apitest.ConfigMapsPath, nil, "X-User", "root", "X-Group", auth.Masters).Code)
	assert.Equal(t, 200, a.Do("GET", apitest.ConfigMapsPath, nil, "X-User", "node", "X-Group", "system:nodes").Code)
	assert.Equal(t, 200, a.Do("GET", apitest.ConfigMapsPath, nil, "X-User", names.Kubernetes.Wire(wellknown.UserControllerManager)).Code)
	const labels = `{flow_schema="global-default",priority_level="global-default"`
	for _, line := range []string{
		"current_executing_requests" + labels + "} 14", "current_executing_seats" + labels + "} 14", "current_inqueue_requests" + labels + "} 300",
		"rejected_requests_total" + labels + `,reason="queue-full"} 86`, `nominal_limit_seats{priority_level="global-default"} 2`,
	} {
		assert.Contains(t, string(a.Do("GET", "/metrics", nil, "X-User", "root", "X-Group", auth.Masters).Raw), "\napiserver_flowcontrol_"+line+"\n")
	}
	close(hold)
	all.Wait()
	assert.Len(t, a.Do("GET", apitest.ConfigMapsPath, nil, "X-User", "flood").Names(), 314)
	assert.EqualValues(t, 86, refused.Load())
}

// TestWatchesPerUserAreBounded checks that a user cannot open more watches than its share.
func TestWatchesPerUserAreBounded(t *testing.T) {
	t.Parallel()
	s := servertest.New(t, apitest.AuthenticateByHeader, func(b *server.Builder) { b.Limits.Watches = 10 })
	a := apitest.InProcess(t, s)
	open := func(user, group string) int {
		res := a.Open(t.Context(), "GET", apitest.ConfigMapsPath+"?watch=1", nil, "X-User", user, "X-Group", group)
		t.Cleanup(func() { _ = res.Body.Close() })
		if res.StatusCode == 429 {
			assert.NotEmpty(t, res.Header.Get("Retry-After"))
		}
		return res.StatusCode
	}
	fill := func(user string) (n int) {
		for open(user, "") == 200 {
			n++
		}
		return n
	}
	assert.Equal(t, 3, fill("greedy"), "half of the level's room, without the quarter for first parts")
	assert.Equal(t, 2, fill("second"))
	assert.Equal(t, 1, fill("third"))
	for range 20 {
		assert.Equal(t, 200, open("root", auth.Masters))
	}
}

// TestWaitingRequestsHoldNoSeat checks that a request which waits for its body or its reader holds
// no seat, and that a user cannot hold all slots with such requests.
func TestWaitingRequestsHoldNoSeat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := servertest.New(t, apitest.AuthenticateByHeader, func(b *server.Builder) { b.Limits.InFlight, b.Limits.Requests = 2, 40 })
		a := apitest.InProcess(t, s)
		var all sync.WaitGroup
		var bodies []*io.PipeWriter
		post := func(user string) {
			body, w := io.Pipe()
			bodies = append(bodies, w)
			all.Go(func() {
				got := a.Do("POST", apitest.ConfigMapsPath+"?dryRun=All", body, "X-User", user)
				assert.Contains(t, []int{400, 408}, got.Code, "%s", got.Raw)
			})
			synctest.Wait()
		}
		for range 11 { // of the 28 slots that other levels do not keep
			post("slow")
		}
		get := func(user, group string) apitest.Response {
			return a.Do("GET", apitest.ConfigMapsPath, nil, "X-User", user, "X-Group", group)
		}
		assert.Equal(t, 429, get("slow", "").Code)
		assert.Equal(t, "too many requests wait, please try again later", get("slow", "").Body["message"])
		assert.Equal(t, 200, get("other", "").Code)
		assert.Equal(t, 201, a.Do("POST", apitest.ConfigMapsPath, apitest.NewConfigMap("c"), "X-User", "other").Code)
		for range 5 {
			post("second")
		}
		assert.Equal(t, 429, get("second", "").Code)
		assert.Equal(t, 200, get("other", "").Code)
		assert.Equal(t, 200, get("root", auth.Masters).Code)
		assert.Equal(t, 401, get("", "").Code)
		all.Wait() // until RequestTime is over
		assert.Equal(t, 200, get("slow", "").Code)
		for _, w := range bodies {
			_ = w.Close()
		}
	})
}

// TestUnreadResponsesAreBoundedPerUser checks that the bytes of long responses that a user does not
// read are bounded.
func TestUnreadResponsesAreBoundedPerUser(t *testing.T) {
	s := servertest.New(t, apitest.AuthenticateByHeader, apitest.Patient, func(b *server.Builder) { b.Limits.LongAnswers = 72 << 20 }) // 44 MiB for the level
	near := apitest.InProcess(t, s)
	for i := range 6 {
		require.Equal(t, 201, near.Do("POST", apitest.ConfigMapsPath, apitest.NewConfigMap(fmt.Sprint("c", i), "k", strings.Repeat("x", 1<<20)), "X-User", "u").Code)
	}
	web := httptest.NewUnstartedServer(s)
	web.EnableHTTP2 = true
	web.StartTLS()
	t.Cleanup(web.Close)
	a := apitest.NewClient(t, web.URL, web.Client())
	get := func(user, group string) *http.Response {
		res := a.Open(t.Context(), "GET", apitest.ConfigMapsPath+"?pretty=1", nil, "X-User", user, "X-Group", group)
		t.Cleanup(func() { _ = res.Body.Close() })
		return res
	}
	fill := func(user string) (open []*http.Response) {
		for {
			res := get(user, "")
			if res.StatusCode != 200 {
				assert.Equal(t, 429, res.StatusCode)
				return open
			}
			open = append(open, res)
		}
	}
	greedy := fill("greedy")
	assert.Len(t, greedy, 2, "of seven")
	assert.Equal(t, 429, get("greedy", "").StatusCode)
	assert.Equal(t, 200, get("other", "").StatusCode)
	for range 6 {
		assert.Equal(t, 200, get("root", auth.Masters).StatusCode)
	}
	assert.Equal(t, 200, a.Do("GET", apitest.ConfigMapsPath, nil, "X-User", "third").Code, "what all share is not counted")
	got := a.Do("PATCH", apitest.ConfigMapsPath+"/c1?pretty=1", `{"metadata":{"labels":{"v":"1"}}}`, "X-User", "third")
	assert.Equal(t, 200, got.Code, "%s", got.Raw)
	got = a.Do("PATCH", apitest.ConfigMapsPath+"/c1?pretty=1", `{"metadata":{"labels":{"v":"2"}}}`, "X-User", "greedy")
	assert.Equal(t, 504, got.Code, "%s", got.Raw)
	assert.Contains(t, got.Body["message"], "carried out")
	for _, res := range greedy {
		_, _ = io.Copy(io.Discard, res.Body)
	}
}

// TestUnreadListsHoldBoundedMemory checks that lists which clients do not read hold a bounded
// amount of memory beside the shared entries.
func TestUnreadListsHoldBoundedMemory(t *testing.T) {
	s := servertest.New(t, apitest.AuthenticateByHeader, apitest.Patient, func(b *server.Builder) { b.Limits.LongAnswers = 4 << 20 })
	near := apitest.InProcess(t, s)
	for i := range 200 {
		require.Equal(t, 201, near.Do("POST", apitest.ConfigMapsPath, apitest.NewConfigMap(fmt.Sprint("c", i), "k", strings.Repeat("x", 2000)), "X-User", "u").Code)
	}
	web := httptest.NewUnstartedServer(s)
	web.EnableHTTP2 = true
	web.StartTLS()
	defer web.Close()
	defer web.CloseClientConnections()
	on := apitest.Target(web.URL)
	c, err := on.DialHTTP2(0)
	require.NoError(t, err)
	defer c.Close() // the garbage collector closes a connection without a later use
	require.NoError(t, c.SetDeadline(time.Now().Add(apitest.Timeout)))
	for range 100 {
		c.Send("GET", apitest.ConfigMapsPath, 0)
	}
	a := apitest.NewClient(t, web.URL, on.HTTPClient())
	assert.Eventually(t, func() bool { return a.Do("GET", apitest.ConfigMapsPath, nil, "X-User", "intruder").Code == 429 }, apitest.Timeout, time.Millisecond)
	assert.Equal(t, 200, a.Do("GET", apitest.ConfigMapsPath, nil, "X-User", "other").Code)
	assert.Equal(t, 200, a.Do("GET", apitest.ConfigMapsPath+"?limit=1", nil, "X-User", "intruder").Code, "short ones are not counted")
}

// TestResponseLargerThanPool checks that a response larger than the pool takes the maximum of its
// level, and gives it back.
func TestResponseLargerThanPool(t *testing.T) {
	t.Parallel()
	a := apitest.InProcess(t, servertest.New(t, apitest.AuthenticateByHeader, func(b *server.Builder) { b.Limits.LongAnswers = 100_000 }))
	require.Equal(t, 201, a.Do("POST", apitest.ConfigMapsPath, apitest.NewConfigMap("c", "k", strings.Repeat("x", 300_000)), "X-User", "u").Code)
	for range 3 {
		assert.Equal(t, 200, a.Do("GET", apitest.ConfigMapsPath+"/c?pretty=1", nil, "X-User", "u").Code)
	}
}

// TestManyUsersDoNotExhaustOtherLevels checks that seats and unfinished large bodies that many
// users hold do not affect other priority levels, or users without any. The service accounts of a
// namespace share one allowance.
func TestManyUsersDoNotExhaustOtherLevels(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := apitest.InProcess(t, servertest.New(t, apitest.AuthenticateByHeader, func(b *server.Builder) {
			b.Limits.Requests = 200
			b.Limits.WatchTime = time.Minute
		}))
		var all sync.WaitGroup
		var writers []*io.PipeWriter
		var refused atomic.Int64
		hold := func(user string, n, sent int) {
			for range n {
				body, w := io.Pipe()
				writers = append(writers, w)
				all.Go(func() {
					if a.Do("POST", apitest.ConfigMapsPath+"?dryRun=All", body, "X-User", user, "X-Group", auth.ServiceAccounts).Code == 429 {
						refused.Add(1)
					}
					_ = body.Close()
				})
				all.Go(func() { _, _ = w.Write([]byte(strings.Repeat(" ", sent))) })
			}
			synctest.Wait()
		}
		pass := func() {
			t.Helper()
			large := apitest.NewConfigMap("c", "k", strings.Repeat("x", 200<<10))
			for user, group := range map[string]string{
				"system:node:a": "system:nodes", names.Kubernetes.Wire(wellknown.UserControllerManager): "", "other": "", auth.ServiceAccountUser("bystander", "a"): auth.ServiceAccounts,
			} {
				assert.Equal(t, 200, a.Do("GET", apitest.ConfigMapsPath, nil, "X-User", user, "X-Group", group).Code, user)
				assert.Equal(t, 201, a.Do("POST", apitest.ConfigMapsPath+"?dryRun=All", large, "X-User", user, "X-Group", group).Code, user)
			}
		}
		for i := range 16 {
			hold(auth.ServiceAccountUser("one", fmt.Sprint("a", i)), 8, 1000)
		}
		assert.EqualValues(t, 16*8-47, refused.Load(), "one share for the namespace")
		pass()
		for i := range 16 {
			hold(auth.ServiceAccountUser(fmt.Sprint("ns", i), "a"), 8, 20_000)
		}
		pass()
		for _, w := range writers {
			_ = w.Close()
		}
		all.Wait()
	})
}

// TestLargeBodiesShareAPool checks that large bodies share a pool: a user who gets no part of it in time gets
// a 429, small bodies do not wait, and a user who holds too much does not delay other users.
func TestLargeBodiesShareAPool(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := faultinject.Wrap(memstore.New(memstore.Options{}), nil)
		a := apitest.InProcess(t, servertest.New(t, apitest.AuthenticateByHeader, func(b *server.Builder) {
			b.Storage, b.Limits.LargeBodies = store, 1792<<10 // 1096 of them for the level
		}))
		hold := make(chan struct{})
		store.SetPlan(func(c faultinject.Call) faultinject.Fault {
			if c.Op == faultinject.OpCommit {
				return faultinject.Fault{Wait: hold}
			}
			return faultinject.Fault{}
		})
		large := strings.Repeat("x", 300<<10)
		post := func(user, name, data, query string) apitest.Response {
			return a.Do("POST", apitest.ConfigMapsPath+query, apitest.NewConfigMap(name, "k", data), "X-User", user)
		}
		var all sync.WaitGroup
		for i := range 2 {
			all.Go(func() { assert.Equal(t, 201, post(fmt.Sprint("u", i), fmt.Sprint("held", i), large, "").Code) })
		}
		synctest.Wait()
		assert.Equal(t, 429, post("u0", "more", large, "").Code, "he would have more than is left")
		all.Go(func() { assert.Equal(t, 201, post("u2", "held2", large, "").Code) })
		synctest.Wait()

		begun := time.Now()
		for _, verb := range []string{"POST", "PUT", "PATCH", "DELETE"} {
			path, headers := apitest.ConfigMapsPath, []string{"X-User", "u3"}
			if verb != "POST" {
				path += "/x"
			}
			if verb == "PATCH" {
				headers = append(headers, "Content-Type", "application/merge-patch+json")
			}
			got := a.Do(verb, path, apitest.NewConfigMap("x", "k", large), headers...)
			assert.Equal(t, 429, got.Code, verb)
			assert.Equal(t, "1", got.Header.Get("Retry-After"), verb)
			assert.Equal(t, "TooManyRequests", got.Body["reason"], verb)
		}
		assert.Equal(t, 40*time.Second, time.Since(begun))
		begun = time.Now()
		assert.Equal(t, 201, post("u3", "small", large[:15<<10], "?dryRun=All").Code)
		assert.Equal(t, 201, a.Do("POST", apitest.ConfigMapsPath+"?dryRun=All", apitest.NewConfigMap("x", "k", large), "X-User", "root", "X-Group", auth.Masters).Code)
		assert.Zero(t, time.Since(begun))

		// The largest body waits first; small bodies behind it do not starve it.
		var late atomic.Int64
		for i, size := range []int{900 << 10, 200 << 10, 200 << 10} {
			all.Go(func() {
				assert.Equal(t, 201, post(fmt.Sprint("late", i), fmt.Sprint("late", i), strings.Repeat("x", size), "?dryRun=All").Code)
				late.Add(1)
			})
			synctest.Wait()
		}
		assert.Zero(t, late.Load())
		close(hold)
		all.Wait()
		assert.EqualValues(t, 3, late.Load())

		// A body larger than the pool takes all of it.
		b := apitest.InProcess(t, servertest.New(t, func(b *server.Builder) { b.Limits.LargeBodies = 1 }))
		assert.Equal(t, 201, b.Do("POST", apitest.ConfigMapsPath, apitest.NewConfigMap("a", "k", large)).Code)
		assert.Equal(t, 201, b.Do("POST", apitest.ConfigMapsPath, apitest.NewConfigMap("b", "k", large)).Code)
	})
}

// TestUnfinishedBodies checks that an announced body holds only the bytes that have arrived, and
// that of bodies that wait for each other some complete.
func TestUnfinishedBodies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := apitest.InProcess(t, servertest.New(t, apitest.AuthenticateByHeader, func(b *server.Builder) {
			b.Limits.LargeBodies = 1792 << 10 // 1096 of them for the level
		}))
		whole := fmt.Sprintf(`{"metadata":{"name":"c"},"data":{"k":%q}}`, strings.Repeat("x", 300<<10))
		var all sync.WaitGroup
		var mu sync.Mutex
		codes := map[int]int{}
		var bodies []*io.PipeWriter
		for i := range 12 {
			body, w := io.Pipe()
			bodies = append(bodies, w)
			all.Go(func() {
				r, err := http.NewRequestWithContext(t.Context(), "POST", a.Base+apitest.ConfigMapsPath+"?dryRun=All", body)
				assert.NoError(t, err)
				r.ContentLength = int64(len(whole))
				r.Header.Set("X-User", fmt.Sprint("u", i))
				res, err := a.HTTP.Do(r)
				assert.NoError(t, err)
				assert.NoError(t, res.Body.Close())
				_ = body.Close()
				mu.Lock()
				defer mu.Unlock()
				codes[res.StatusCode]++
			})
		}
		send := func(from, to int) {
			for _, w := range bodies {
				go func() { _, _ = io.WriteString(w, whole[from:to]) }()
			}
			synctest.Wait()
		}
		send(0, 20_000)
		begun := time.Now()
		assert.Equal(t, 201, a.Do("POST", apitest.ConfigMapsPath+"?dryRun=All", whole, "X-User", "other").Code)
		assert.Zero(t, time.Since(begun), "an unfinished body holds only the bytes that have arrived")
		send(20_000, 100_000)       // more than there is room for
		time.Sleep(5 * time.Second) // bodies wait no longer for each other
		send(100_000, len(whole))
		all.Wait()
		assert.Equal(t, map[int]int{201: 4, 429: 8}, codes)
	})
}

// TestBodyLengths sends bodies of many lengths, with and without Content-Length, in pieces.
func TestBodyLengths(t *testing.T) {
	t.Parallel()
	s := servertest.New(t, func(b *server.Builder) { b.Limits.Body = 100_000 })
	a := apitest.InProcess(t, s)
	for _, size := range []int{0, 1, 4<<10 - 80, 4 << 10, 16<<10 - 80, 16 << 10, 64 << 10, 99_000} {
		for _, known := range []bool{true, false} {
			data := strings.Repeat("x", size)
			var body io.Reader = strings.NewReader(fmt.Sprintf(`{"metadata":{"name":"c"},"data":{"k":%q}}`, data))
			if !known {
				body = struct{ io.Reader }{body}
			}
			got := a.Do("POST", apitest.ConfigMapsPath+"?dryRun=All", body)
			require.Equal(t, 201, got.Code, "%d %v %.300s", size, known, got.Raw)
			assert.Equal(t, data, apitest.NestedString(got.Body, "data", "k"))
		}
	}
	tooLong := apitest.NewConfigMap("c", "k", strings.Repeat("x", 100_000))
	assert.Equal(t, 413, a.Do("POST", apitest.ConfigMapsPath, tooLong).Code)
	assert.Equal(t, 413, a.Do("POST", apitest.ConfigMapsPath, struct{ io.Reader }{apitest.Reader(t, tooLong)}).Code)
}

// TestServingFlowControl checks that Serving.FlowControl configures seats and that an invalid
// configuration is an error.
func TestServingFlowControl(t *testing.T) {
	t.Parallel()
	config := flowcontrol.Default(names.Kubernetes)
	config.Schemas = append(config.Schemas, flowcontrol.FlowSchema{Name: "closed", Level: "closed", Rules: []flowcontrol.Rule{{
		Subjects: []flowcontrol.Subject{{User: "closed"}}, Resources: config.Schemas[0].Rules[0].Resources,
	}}})
	none := 0
	config.Levels = append(config.Levels, flowcontrol.PriorityLevel{Name: "closed", Borrowing: &none})
	a := apitest.InProcess(t, servertest.New(t, apitest.AuthenticateByHeader, func(b *server.Builder) { b.Serving.FlowControl = &config }))
	assert.Equal(t, 429, a.Do("GET", apitest.ConfigMapsPath, nil, "X-User", "closed").Code)
	assert.Equal(t, 200, a.Do("GET", apitest.ConfigMapsPath, nil, "X-User", "open").Code)

	_, err := (&server.Builder{Authorizer: auth.AllowAll, Serving: server.Serving{FlowControl: &flowcontrol.Config{}}}).Build(t.Context())
	assert.ErrorContains(t, err, "flow control has no schemas")
}

// TestSetFlowControl checks that a new configuration applies to all shared limits while the server
// runs, and that requests keep what they hold.
func TestSetFlowControl(t *testing.T) {
	t.Parallel()
	config := flowcontrol.Default(names.Kubernetes)
	s := servertest.New(t, apitest.AuthenticateByHeader, func(b *server.Builder) { b.Limits.Watches, b.Serving.FlowControl = 20, &config })
	a := apitest.InProcess(t, s)
	open := func(user string) int {
		res := a.Open(t.Context(), "GET", apitest.ConfigMapsPath+"?watch=1", nil, "X-User", user, "X-Group", "vip")
		t.Cleanup(func() { _ = res.Body.Close() })
		return res.StatusCode
	}
	for i := 0; open(fmt.Sprint("greedy", i)) == 200; i++ {
	}
	assert.Equal(t, 429, open("vip"))

	later := flowcontrol.Default(names.Kubernetes)
	later.Levels = append(later.Levels, flowcontrol.PriorityLevel{Name: "vip", Shares: 100, Queuing: &flowcontrol.Queuing{Queues: 1, HandSize: 1, QueueLength: 1}})
	later.Schemas = append(later.Schemas, flowcontrol.FlowSchema{Name: "vip", Precedence: 10, Level: "vip", Rules: []flowcontrol.Rule{{
		Subjects: []flowcontrol.Subject{{Group: "vip"}}, Resources: later.Schemas[0].Rules[0].Resources,
	}}})
	require.NoError(t, s.SetFlowControl(later))
	assert.Equal(t, 200, open("vip"), "its level keeps some now")
	assert.ErrorContains(t, s.SetFlowControl(flowcontrol.Config{Levels: later.Levels[:1], Schemas: later.Schemas}), "unknown level")
	assert.Equal(t, 200, open("other"), "a fault changes nothing")
	require.NoError(t, s.SetFlowControl(config))
	assert.Equal(t, 429, open("vip"), "as before")
}

// TestUnauthorizedRequestIsRefusedBeforeItsBody checks that an unauthenticated or unauthorized
// client gets the response while its body is still arriving.
func TestUnauthorizedRequestIsRefusedBeforeItsBody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := apitest.InProcess(t, servertest.New(t, apitest.AuthenticateByHeader, func(b *server.Builder) {
			b.Limits.InFlight, b.Limits.Requests, b.Authorizer = 1, 10, auth.AuthorizerFunc(func(_ context.Context, a auth.Attributes) (auth.Decision, string, error) {
				if a.User.Name == "intruder" {
					return auth.Deny, "", nil
				}
				return auth.Allow, "", nil
			})
		}))
		begun := time.Now()
		for range 100 {
			for user, code := range map[string]int{"": 401, "intruder": 403} {
				body, w := io.Pipe()
				assert.Equal(t, code, a.Do("POST", apitest.ConfigMapsPath, body, "X-User", user).Code)
				_ = w.Close()
			}
		}
		assert.Zero(t, time.Since(begun), "nobody waited")
		assert.Equal(t, 200, a.Do("GET", apitest.ConfigMapsPath, nil, "X-User", "other").Code)
	})
}

// TestUnreadErrorsAreBounded checks that a client which does not read short HTTP/2 responses, such
// as errors, is disconnected, and that few of them wait, so that others get a slot.
func TestUnreadErrorsAreBounded(t *testing.T) {
	for _, path := range []string{apitest.ConfigMapsPath + "/none", "/version", "/healthz", "/nothing", "/api/v9/things"} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			s := servertest.New(t, apitest.AuthenticateByHeader, func(b *server.Builder) { b.Limits.RequestTime, b.Limits.Requests = time.Second, 100 })
			web := httptest.NewUnstartedServer(s)
			web.EnableHTTP2 = true
			web.StartTLS()
			defer web.Close()
			defer web.CloseClientConnections()
			on := apitest.Target(web.URL)
			c, err := on.DialHTTP2(0)
			require.NoError(t, err)
			defer c.Close()
			require.NoError(t, c.SetDeadline(time.Now().Add(apitest.Timeout)))
			for range 200 {
				c.Send("GET", path, 0)
			}
			far := apitest.NewClient(t, web.URL, on.HTTPClient())
			defer far.HTTP.CloseIdleConnections()
			other := far.Do("GET", apitest.ConfigMapsPath, nil, "X-User", "other")
			for other.Code == http.StatusGatewayTimeout { // a second was too short
				other = far.Do("GET", apitest.ConfigMapsPath, nil, "X-User", "other")
			}
			assert.Equal(t, 200, other.Code)
			for range 200 {
				require.NoError(t, c.Await(), "the server ends the stream")
			}
		})
	}
}
