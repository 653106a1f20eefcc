package server_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
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
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

// attack is what a user does to a server behind a socket, until the context
// ends. It calls begun when it is in full swing.
type attack struct {
	name string
	run  func(ctx context.Context, t target, begun func())
}

// target is the address of a server that takes TLS with HTTP/2.
type target string

// accounts are 16 service accounts, half of them of one namespace.
func accounts() (users []string) {
	for i := range 8 {
		users = append(users, auth.ServiceAccountUser("one", fmt.Sprint("a", i)), auth.ServiceAccountUser(fmt.Sprint("ns", i), "a"))
	}
	return users
}

var attacks = []attack{
	{"peace", func(ctx context.Context, _ target, begun func()) { begun(); <-ctx.Done() }},
	{"unfinished bodies", func(ctx context.Context, t target, begun func()) {
		t.raw(ctx, 4, 250, 65535, "POST", configMaps+"?dryRun=All", 1000, begun)
	}},
	{"unfinished large bodies", func(ctx context.Context, t target, begun func()) {
		t.raw(ctx, 4, 50, 65535, "POST", configMaps+"?dryRun=All", 20_000, begun)
	}},
	{"unfinished bodies of many", func(ctx context.Context, t target, begun func()) {
		t.raw(ctx, 16, 100, 65535, "POST", configMaps+"?dryRun=All", 1000, begun, accounts()...)
	}},
	{"unfinished large bodies of many", func(ctx context.Context, t target, begun func()) {
		t.raw(ctx, 16, 8, 65535, "POST", configMaps+"?dryRun=All", 20_000, begun, accounts()...)
	}},
	{"unread lists", func(ctx context.Context, t target, begun func()) {
		t.raw(ctx, 4, 250, 0, "GET", configMaps, 0, begun)
	}},
	{"unread indented lists", func(ctx context.Context, t target, begun func()) {
		t.raw(ctx, 4, 250, 0, "GET", configMaps+"?pretty=1", 0, begun)
	}},
	{"unread watches", func(ctx context.Context, t target, begun func()) {
		t.raw(ctx, 8, 250, 0, "GET", configMaps+"?watch=1", 0, begun)
	}},
	{"lists", func(ctx context.Context, t target, begun func()) { t.flood(ctx, 64, "GET", configMaps, nil, begun) }},
	{"tables", func(ctx context.Context, t target, begun func()) {
		t.flood(ctx, 64, "GET", configMaps, nil, begun, "Accept", "application/json;as=Table;g=meta.k8s.io;v=v1")
	}},
	{"watches", func(ctx context.Context, t target, begun func()) {
		t.flood(ctx, 256, "GET", configMaps+"?watch=1&timeoutSeconds=1", nil, begun)
	}},
	{"creates", func(ctx context.Context, t target, begun func()) {
		t.flood(ctx, 64, "POST", configMaps+"?dryRun=All", func() string { return `{"metadata":{"generateName":"x"},"data":{"a":"b"}}` }, begun)
	}},
	{"large bodies", func(ctx context.Context, t target, begun func()) {
		large := `{"metadata":{"generateName":"x"},"data":{"a":"` + strings.Repeat("x", 900_000) + `"}}`
		t.flood(ctx, 16, "POST", configMaps+"?dryRun=All", func() string { return large }, begun)
	}},
	{"anonymous", func(ctx context.Context, t target, begun func()) {
		t.flood(ctx, 128, "GET", configMaps, nil, begun, "X-User", "")
	}},
}

// TestAttacks: while one user does his worst over real connections, requests of
// the administrator, the system and other users all succeed. The log tells how
// long they took.
func TestAttacks(t *testing.T) {
	store := memstore.New(memstore.Options{})
	near := inProcess(t, servertest.New(t, func(b *server.Builder) { b.Storage = store }))
	for i := range 500 {
		near.must(201, "POST", configMaps, newConfigMap(fmt.Sprint("c", i), "k", strings.Repeat("x", 500)))
	}
	for _, a := range attacks {
		t.Run(a.name, func(t *testing.T) { withstand(t, store.Fork(), a) })
	}
}

func withstand(t *testing.T, store storage.Backend, a attack) {
	s := servertest.New(t, byHeader, func(b *server.Builder) { b.Storage = store })
	web := httptest.NewUnstartedServer(s)
	web.EnableHTTP2 = true
	web.StartTLS()
	defer web.Close()
	end := launch(t, a, target(web.URL))
	for _, c := range []struct{ user, group string }{
		{"root", auth.Masters}, {names.Kubernetes.Wire(names.UserControllerManager), ""}, {"node", "system:nodes"}, {"bystander", ""},
	} {
		p50, longest, refused := measure(t, target(web.URL), c.user, c.group)
		assert.Zero(t, refused, "%s was turned away", c.user)
		t.Logf("%-24s %-32s p50 %8s  longest %8s", a.name, c.user, p50.Round(10*time.Microsecond), longest.Round(10*time.Microsecond))
	}
	far := &api{t, web.URL, target(web.URL).client()}
	unhindered(t, string(far.must(200, "GET", "/metrics", nil, "X-User", "root", "X-Group", auth.Masters).raw))
	far.client.CloseIdleConnections()
	end()
}

// attackVariable holds the name of an attack and its target, in the process that
// is the attacker.
const attackVariable = "TEST_ATTACK"

// launch begins an attack in a process of its own, as attackers are elsewhere,
// and returns once it is in full swing.
func launch(t *testing.T, a attack, on target) (end func()) {
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), attackVariable+"="+a.name+"@"+string(on))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	hangs := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	_, err = stdout.Read(make([]byte, 1))
	require.NoError(t, err, "the attack did not begin")
	hangs.Stop()
	return func() {
		_ = stdin.Close()
		assert.NoError(t, cmd.Wait())
	}
}

// attackAsTold is the attacker's process: it says when it is in full swing, and
// ends with its standard input.
func attackAsTold(told string) {
	name, on, _ := strings.Cut(told, "@")
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	a := attacks[slices.IndexFunc(attacks, func(a attack) bool { return a.name == name })]
	a.run(ctx, target(on), sync.OnceFunc(func() { fmt.Println("begun") }))
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
	for schema, level := range map[string]string{"exempt": "exempt", "system-nodes": "system", names.Kubernetes.Wire(names.FlowControllers): "workload-high"} {
		labels := fmt.Sprintf(`flow_schema=%q,priority_level=%q`, schema, level)
		asked := value(`dispatched_requests_total{` + labels + `}`)
		assert.NotContains(t, []string{"", "0"}, asked, schema)
		assert.Equal(t, asked, value(`request_wait_duration_seconds_bucket{execute="true",`+labels+`,le="0"}`), "%s: all began at once", schema)
		assert.Contains(t, []string{"", "0"}, value(`request_wait_duration_seconds_count{execute="false",`+labels+`}`), "%s: none was refused", schema)
	}
}

// measure sends requests one after the other: reads, short lists and writes.
func measure(t *testing.T, on target, user, group string) (p50, longest time.Duration, refused int) {
	client := on.client()
	defer client.CloseIdleConnections()
	far := &api{t, string(on), client}
	var took []time.Duration
	large := newConfigMap("", "k", strings.Repeat("x", 100_000))
	requests := 40
	if testing.Short() {
		requests = 12
	}
	for i := range requests {
		want := 200
		var got answer
		begun := time.Now()
		switch i % 4 {
		case 0:
			got = far.do("GET", configMaps+"/c1", nil, "X-User", user, "X-Group", group)
		case 1:
			got = far.do("GET", configMaps+"?limit=10", nil, "X-User", user, "X-Group", group)
		case 2:
			got = far.do("PATCH", configMaps+"/c"+fmt.Sprint(i), fmt.Sprintf(`{"data":{"k":"%d"}}`, i), "X-User", user, "X-Group", group)
		case 3:
			want, large["metadata"] = 201, map[string]any{"generateName": "x"}
			got = far.do("POST", configMaps+"?dryRun=All", large, "X-User", user, "X-Group", group)
		}
		took = append(took, time.Since(begun))
		if got.code != want {
			refused++
			t.Logf("%s: %d %.200s", user, got.code, got.raw)
		}
	}
	slices.Sort(took)
	return took[len(took)/2], took[len(took)-1], refused
}

// client is one with connections of its own.
func (t target) client() *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}}
}

// flood sends requests from n clients at a time, as fast as they are answered.
func (t target) flood(ctx context.Context, n int, method, path string, body func() string, begun func(), headers ...string) {
	c := t.client()
	defer c.CloseIdleConnections()
	var sent atomic.Int64
	var all sync.WaitGroup
	for range n {
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
func (t target) raw(ctx context.Context, connections, streams, window int, method, path string, body int, begun func(), users ...string) {
	var all sync.WaitGroup
	var open atomic.Int64
	for i := range connections {
		all.Go(func() {
			for ctx.Err() == nil {
				c, err := t.dialRaw(window)
				if err != nil {
					continue
				}
				if len(users) > 0 {
					c.user, c.group = users[i%len(users)], auth.ServiceAccounts
				}
				stop := context.AfterFunc(ctx, func() { _ = c.Close() })
				for range streams {
					c.send(method, path, body)
					if open.Add(1) == int64(connections*streams) {
						begun()
					}
				}
				for c.await() == nil {
					c.send(method, path, body)
				}
				stop()
				_ = c.Close()
			}
		})
	}
	all.Wait()
}

// rawConn speaks as much of HTTP/2 as it takes to hold a server up.
type rawConn struct {
	*tls.Conn
	in          *bufio.Reader
	next        uint32
	user, group string
}

func (t target) dialRaw(window int) (*rawConn, error) {
	conn, err := tls.Dial("tcp", strings.TrimPrefix(string(t), "https://"), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err != nil {
		return nil, err
	}
	c := &rawConn{conn, bufio.NewReader(conn), 1, "intruder", ""}
	_, _ = io.WriteString(c, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	c.frame(4, 0, 0, binary.BigEndian.AppendUint32([]byte{0, 4}, uint32(window))) // SETTINGS_INITIAL_WINDOW_SIZE
	return c, nil
}

func (c *rawConn) frame(kind, flags byte, stream uint32, payload []byte) {
	f := append([]byte{byte(len(payload) >> 16), byte(len(payload) >> 8), byte(len(payload)), kind, flags}, binary.BigEndian.AppendUint32(nil, stream)...)
	_, _ = c.Write(append(f, payload...))
}

// send opens a stream. With a body it is left open after some bytes.
func (c *rawConn) send(method, path string, body int) {
	var h []byte
	for _, f := range [][2]string{
		{":method", method}, {":scheme", "https"}, {":authority", "example.com"}, {":path", path}, {"x-user", c.user}, {"x-group", c.group},
		{"content-type", "application/json"},
	} {
		h = append(append(append(append(h, 0, byte(len(f[0]))), f[0]...), byte(len(f[1]))), f[1]...) // literal, not indexed
	}
	const endStream, endHeaders = 1, 4
	if body == 0 {
		c.frame(1, endHeaders|endStream, c.next, h)
	} else {
		c.frame(1, endHeaders, c.next, h)
		for sent := 0; sent < body; sent += 1000 {
			c.frame(0, 0, c.next, []byte(strings.Repeat(" ", min(1000, body-sent))))
		}
	}
	c.next += 2
}

// await reads until a stream ends.
func (c *rawConn) await() error {
	for {
		var head [9]byte
		if _, err := io.ReadFull(c.in, head[:]); err != nil {
			return err
		}
		if _, err := c.in.Discard(int(head[0])<<16 | int(head[1])<<8 | int(head[2])); err != nil {
			return err
		}
		switch kind, flags := head[3], head[4]; {
		case kind == 3, kind <= 1 && flags&1 != 0: // RST_STREAM, END_STREAM
			return nil
		case kind == 4 && flags == 0:
			c.frame(4, 1, 0, nil)
		}
	}
}
