package attacks_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

// attack is what a user does to a server behind a socket, until the context
// ends. It calls begun when it is in full swing.
type attack struct {
	name string
	run  func(ctx context.Context, t apitest.Target, begun func())
}

// accounts are 16 service accounts, half of them of one namespace.
func accounts() (users []string) {
	for i := range 8 {
		users = append(users, auth.ServiceAccountUser("one", fmt.Sprint("a", i)), auth.ServiceAccountUser(fmt.Sprint("ns", i), "a"))
	}
	return users
}

var attacks = []attack{
	{"peace", func(ctx context.Context, _ apitest.Target, begun func()) { begun(); <-ctx.Done() }},
	{"unfinished bodies", func(ctx context.Context, t apitest.Target, begun func()) {
		raw(ctx, t, 4, 250, 65535, "POST", apitest.ConfigMapsPath+"?dryRun=All", 1000, begun)
	}},
	{"unfinished large bodies", func(ctx context.Context, t apitest.Target, begun func()) {
		raw(ctx, t, 4, 50, 65535, "POST", apitest.ConfigMapsPath+"?dryRun=All", 20_000, begun)
	}},
	{"unfinished bodies of many", func(ctx context.Context, t apitest.Target, begun func()) {
		raw(ctx, t, 16, 100, 65535, "POST", apitest.ConfigMapsPath+"?dryRun=All", 1000, begun, accounts()...)
	}},
	{"unfinished large bodies of many", func(ctx context.Context, t apitest.Target, begun func()) {
		raw(ctx, t, 16, 8, 65535, "POST", apitest.ConfigMapsPath+"?dryRun=All", 20_000, begun, accounts()...)
	}},
	{"unread lists", func(ctx context.Context, t apitest.Target, begun func()) {
		raw(ctx, t, 4, 250, 0, "GET", apitest.ConfigMapsPath, 0, begun)
	}},
	{"unread indented lists", func(ctx context.Context, t apitest.Target, begun func()) {
		raw(ctx, t, 4, 250, 0, "GET", apitest.ConfigMapsPath+"?pretty=1", 0, begun)
	}},
	{"unread watches", func(ctx context.Context, t apitest.Target, begun func()) {
		raw(ctx, t, 8, 250, 0, "GET", apitest.ConfigMapsPath+"?watch=1", 0, begun)
	}},
	{"lists", func(ctx context.Context, t apitest.Target, begun func()) {
		flood(ctx, t, 64, 1, "GET", apitest.ConfigMapsPath, nil, begun)
	}},
	{"tables", func(ctx context.Context, t apitest.Target, begun func()) {
		flood(ctx, t, 64, 1, "GET", apitest.ConfigMapsPath, nil, begun, "Accept", "application/json;as=Table;g=meta.k8s.io;v=v1")
	}},
	{"watches", func(ctx context.Context, t apitest.Target, begun func()) {
		flood(ctx, t, 256, 1, "GET", apitest.ConfigMapsPath+"?watch=1&timeoutSeconds=1", nil, begun)
	}},
	{"creates", func(ctx context.Context, t apitest.Target, begun func()) {
		flood(ctx, t, 64, 1, "POST", apitest.ConfigMapsPath+"?dryRun=All", func() string { return `{"metadata":{"generateName":"x"},"data":{"a":"b"}}` }, begun)
	}},
	{"large bodies", func(ctx context.Context, t apitest.Target, begun func()) {
		large := `{"metadata":{"generateName":"x"},"data":{"a":"` + strings.Repeat("x", 900_000) + `"}}`
		flood(ctx, t, 16, 16, "POST", apitest.ConfigMapsPath+"?dryRun=All", func() string { return large }, begun)
	}},
	{"anonymous", func(ctx context.Context, t apitest.Target, begun func()) {
		flood(ctx, t, 128, 1, "GET", apitest.ConfigMapsPath, nil, begun, "X-User", "")
	}},
}

// TestAttacks: while one user attacks the server over real connections, all requests of the
// administrator, the system and other users succeed. The test logs their durations.
func TestAttacks(t *testing.T) {
	store := memstore.New(memstore.Options{})
	near := apitest.InProcess(t, servertest.New(t, func(b *server.Builder) { b.Storage = store }))
	for i := range 500 {
		near.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap(fmt.Sprint("c", i), "k", strings.Repeat("x", 500)))
	}
	requests := 40 // of each user
	if testing.Short() {
		requests = 12
	}
	for _, a := range attacks {
		t.Run(a.name, func(t *testing.T) { withstand(t, store.Fork(), a, requests) })
	}
}

func withstand(t *testing.T, store storage.Backend, a attack, requests int) {
	s := servertest.New(t, apitest.AuthenticateByHeader, func(b *server.Builder) { b.Storage = store })
	web := httptest.NewUnstartedServer(s)
	web.EnableHTTP2 = true
	web.StartTLS()
	defer web.Close()
	end := launch(t, a, apitest.Target(web.URL))
	for _, c := range []struct{ user, group string }{
		{"root", auth.Masters}, {names.Kubernetes.Wire(wellknown.UserControllerManager), ""}, {"node", "system:nodes"}, {"bystander", ""},
	} {
		p50, longest, refused := measure(t, apitest.Target(web.URL), requests, c.user, c.group)
		assert.Zero(t, refused, "%s was turned away", c.user)
		t.Logf("%-24s %-32s p50 %8s  longest %8s", a.name, c.user, p50.Round(10*time.Microsecond), longest.Round(10*time.Microsecond))
	}
	far := apitest.NewClient(t, web.URL, apitest.Target(web.URL).HTTPClient())
	unhindered(t, string(far.Must(200, "GET", "/metrics", nil, "X-User", "root", "X-Group", auth.Masters).Raw))
	far.HTTP.CloseIdleConnections()
	end()
}

// attackVariable holds the name of an attack and its target, in the process that
// is the attacker.
const attackVariable = "TEST_ATTACK"

// launch begins an attack in a process of its own, as attackers are elsewhere,
// and returns once it is in full swing.
func launch(t *testing.T, a attack, on apitest.Target) (end func()) {
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), attackVariable+"="+a.name+"@"+string(on))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	hangs := time.AfterFunc(apitest.Timeout, func() { _ = cmd.Process.Kill() })
	_, err = stdout.Read(make([]byte, 1))
	require.NoError(t, err, "the attack did not begin")
	hangs.Stop()
	return func() {
		_ = stdin.Close()
		assert.NoError(t, cmd.Wait())
	}
}

// runAttack is the attacker's process: it says when it is in full swing, and
// ends with its standard input.
func runAttack(nameAndTarget string) {
	name, on, _ := strings.Cut(nameAndTarget, "@")
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	a := attacks[slices.IndexFunc(attacks, func(a attack) bool { return a.name == name })]
	a.run(ctx, apitest.Target(on), sync.OnceFunc(func() { fmt.Println("begun") }))
}

// unhindered: by the metrics, none of the administrator's and the system's
// requests waited for a seat or was refused one.
func unhindered(t *testing.T, metrics string) {
	t.Helper()
	value := func(line string) string {
		_, rest, _ := strings.Cut(metrics, "\napiserver_flowcontrol_"+line+" ")
		n, _, _ := strings.Cut(rest, "\n")
		return n
	}
	for schema, level := range map[string]string{"exempt": "exempt", "system-nodes": "system", names.Kubernetes.Wire(wellknown.FlowControllers): "workload-high"} {
		labels := fmt.Sprintf(`flow_schema=%q,priority_level=%q`, schema, level)
		asked := value(`dispatched_requests_total{` + labels + `}`)
		assert.NotContains(t, []string{"", "0"}, asked, schema)
		assert.Equal(t, asked, value(`request_wait_duration_seconds_bucket{execute="true",`+labels+`,le="0"}`), "%s: all began at once", schema)
		assert.Contains(t, []string{"", "0"}, value(`request_wait_duration_seconds_count{execute="false",`+labels+`}`), "%s: none was refused", schema)
	}
}

// measure sends requests one after the other: reads, short lists and writes.
func measure(t *testing.T, on apitest.Target, requests int, user, group string) (p50, longest time.Duration, refused int) {
	client := on.HTTPClient()
	defer client.CloseIdleConnections()
	far := apitest.NewClient(t, string(on), client)
	var took []time.Duration
	large := apitest.NewConfigMap("", "k", strings.Repeat("x", 100_000))
	for i := range requests {
		want := 200
		var got apitest.Response
		begun := time.Now()
		switch i % 4 {
		case 0:
			got = far.Do("GET", apitest.ConfigMapsPath+"/c1", nil, "X-User", user, "X-Group", group)
		case 1:
			got = far.Do("GET", apitest.ConfigMapsPath+"?limit=10", nil, "X-User", user, "X-Group", group)
		case 2:
			got = far.Do("PATCH", apitest.ConfigMapsPath+"/c"+fmt.Sprint(i), fmt.Sprintf(`{"data":{"k":"%d"}}`, i), "X-User", user, "X-Group", group)
		case 3:
			want, large["metadata"] = 201, map[string]any{"generateName": "x"}
			got = far.Do("POST", apitest.ConfigMapsPath+"?dryRun=All", large, "X-User", user, "X-Group", group)
		}
		took = append(took, time.Since(begun))
		if got.Code != want {
			refused++
			t.Logf("%s: %d %.200s", user, got.Code, got.Raw)
		}
	}
	slices.Sort(took)
	return took[len(took)/2], took[len(took)-1], refused
}

// flood sends n requests at a time over so many connections, each request as soon as the one
// before it has been answered. Large bodies take a connection each: on a shared one the bodies
// that wait to be admitted use up the window of those that have been.
func flood(ctx context.Context, t apitest.Target, n, connections int, method, path string, body func() string, begun func(), headers ...string) {
	clients := make([]*http.Client, connections)
	for i := range clients {
		clients[i] = t.HTTPClient()
		defer clients[i].CloseIdleConnections()
	}
	var sent atomic.Int64
	var all sync.WaitGroup
	for i := range n {
		c := clients[i%connections]
		all.Go(func() {
			for ctx.Err() == nil {
				var in io.Reader
				if body != nil {
					in = strings.NewReader(body())
				}
				r, _ := http.NewRequestWithContext(ctx, method, string(t)+path, in)
				r.Header.Set("X-User", "intruder")
				for i := 0; i < len(headers); i += 2 {
					r.Header.Set(headers[i], headers[i+1])
				}
				if res, err := c.Do(r); err == nil {
					_, _ = io.Copy(io.Discard, res.Body)
					_ = res.Body.Close()
				}
				if sent.Add(1) == int64(n) {
					begun()
				}
			}
		})
	}
	all.Wait()
}

// raw opens connections of HTTP/2 with so many streams each, and a new one for
// each that ends. The streams have a window of so many bytes, and send that many
// of a body that does not end. The users take turns; without any it is one.
func raw(ctx context.Context, t apitest.Target, connections, streams, window int, method, path string, body int, begun func(), users ...string) {
	var all sync.WaitGroup
	var open atomic.Int64
	for i := range connections {
		all.Go(func() {
			for ctx.Err() == nil {
				c, err := t.DialHTTP2(window)
				if err != nil {
					continue
				}
				if len(users) > 0 {
					c.User, c.Group = users[i%len(users)], auth.ServiceAccounts
				}
				stop := context.AfterFunc(ctx, func() { _ = c.Close() })
				for range streams {
					c.Send(method, path, body)
					if open.Add(1) == int64(connections*streams) {
						begun()
					}
				}
				for c.Await() == nil {
					c.Send(method, path, body)
				}
				stop()
				_ = c.Close()
			}
		})
	}
	all.Wait()
}
