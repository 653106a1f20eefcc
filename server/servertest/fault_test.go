package servertest_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
)

// outcome returns the status code of a request, or how it failed.
func outcome(t testing.TB, c *http.Client, method, url, body string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	res, err := c.Do(r)
	if err != nil {
		return "no answer"
	}
	defer res.Body.Close()
	if _, err := io.ReadAll(res.Body); err != nil {
		return fmt.Sprint(res.StatusCode, " cut off")
	}
	return fmt.Sprint(res.StatusCode)
}

func TestRulesMatch(t *testing.T) {
	t.Parallel()
	s := servertest.New(t, servertest.RBAC)
	admin := s.As("admin", "system:masters").Client()
	const status = "/apis/apps/v1/namespaces/default/deployments/d/status"
	type request struct {
		client       *http.Client
		method, path string
		body         string
	}
	get := request{admin, "GET", maps + "/a", ""}
	post := request{admin, "POST", maps + "?dryRun=All", `{"data":{},"metadata":{"name":"a"}}`}
	for name, c := range map[string]struct {
		rule servertest.Rule
		of   request
		want bool
	}{
		"any":                   {servertest.On("*", "*"), get, true},
		"verb":                  {servertest.On("get", "configmaps"), get, true},
		"other verb":            {servertest.On("list", "configmaps"), get, false},
		"reads":                 {servertest.On("read", "configmaps"), get, true},
		"writes":                {servertest.On("write", "configmaps"), get, false},
		"write":                 {servertest.On("write", "configmaps"), post, true},
		"no resource":           {servertest.On("*", "*", "*"), request{admin, "GET", "/version", ""}, false},
		"subresource":           {servertest.On("get", "deployments", "status"), request{admin, "GET", status, ""}, true},
		"group":                 {servertest.On("get", "deployments.apps", "status"), request{admin, "GET", status, ""}, true},
		"other group":           {servertest.On("get", "deployments.example.com", "status"), request{admin, "GET", status, ""}, false},
		"not the subresource":   {servertest.On("get", "deployments"), request{admin, "GET", status, ""}, false},
		"whole":                 {servertest.On("get", "deployments", "*"), request{admin, "GET", status, ""}, true},
		"name":                  {servertest.On("get", "configmaps").Named("a"), get, true},
		"other name":            {servertest.On("get", "configmaps").Named("b"), get, false},
		"name of a creation":    {servertest.On("create", "configmaps").Named("a"), post, true},
		"other creation":        {servertest.On("create", "configmaps").Named("b"), post, false},
		"selected name":         {servertest.On("list", "configmaps").Named("a"), request{admin, "GET", maps + "?fieldSelector=metadata.name%3Da", ""}, true},
		"namespace":             {servertest.On("get", "configmaps").In("default"), get, true},
		"other namespace":       {servertest.On("get", "configmaps").In("kube-system"), get, false},
		"user":                  {servertest.On("get", "configmaps").By("admin"), get, true},
		"other user":            {servertest.On("get", "configmaps").By("jane"), get, false},
		"nobody":                {servertest.On("get", "configmaps").By("system:anonymous"), request{s.Client(), "GET", maps + "/a", ""}, true},
		"agent":                 {servertest.On("get", "configmaps").Agent("Go-http"), request{s.Client(), "GET", maps + "/a", ""}, false},
		"watch":                 {servertest.On("watch", "configmaps"), request{admin, "GET", maps + "?watch=1&timeoutSeconds=1", ""}, true},
		"the namespace itself":  {servertest.On("get", "namespaces").Named("default"), request{admin, "GET", "/api/v1/namespaces/default", ""}, true},
		"collection":            {servertest.On("deletecollection", "configmaps"), request{admin, "DELETE", maps, ""}, true},
		"cluster-wide":          {servertest.On("list", "configmaps").In("default"), request{admin, "GET", "/api/v1/configmaps", ""}, false},
		"impersonated, not him": {servertest.On("get", "configmaps").By("bob"), get, false},
	} {
		f := s.Fail(c.rule.AtMost(2).With(servertest.Unavailable))
		got := outcome(t, c.of.client, c.of.method, s.Host()+c.of.path, c.of.body)
		assert.Equal(t, c.want, got == "503", "%s: %s", name, got)
		assert.Equal(t, map[bool]int{true: 1}[c.want], f.Hits(), name)
		f.Stop()
	}
}

// TestEffectsChangeResponses checks the result of each effect, in process and on a socket.
func TestEffectsChangeResponses(t *testing.T) {
	t.Parallel()
	s := servertest.New(t)
	create(t, s, "a", "v")
	socket := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // net/http retries on reused connections
	for name, c := range map[string]struct {
		effect func(http.Handler) http.Handler
		want   string
	}{
		"Conflict":        {servertest.Conflict, "409"},
		"Expired":         {servertest.Expired, "410"},
		"Timeout":         {servertest.Timeout, "504"},
		"Lost":            {servertest.LoseResponse, "no answer"},
		"TooManyRequests": {servertest.TooManyRequests(time.Second), "429"},
		"InternalError":   {servertest.InternalError, "500"},
		"Answer":          {servertest.Respond(meta.NotFound(configMaps, "a")), "404"},
		"Slow":            {servertest.Slow(time.Millisecond), "200"},
		"Truncate":        {servertest.Truncate(20), "200 cut off"},
		"Truncate, later": {servertest.Truncate(1 << 20), "200"},
	} {
		for _, way := range []struct {
			client *http.Client
			host   string
		}{{s.Client(), s.Host()}, {socket, s.URL()}} {
			f := s.Fail(servertest.On("get", "configmaps").Times(1).With(c.effect))
			assert.Equal(t, c.want, outcome(t, way.client, "GET", way.host+maps+"/a", ""), name)
			assert.Equal(t, "200", outcome(t, way.client, "GET", way.host+maps+"/a", ""), name)
			f.Stop()
		}
	}
}

// TestWritesWithLostAnswersAreExecuted checks that Timeout and LoseResponse execute the write.
func TestWritesWithLostAnswersAreExecuted(t *testing.T) {
	t.Parallel()
	s := servertest.New(t)
	for name, effect := range map[string]func(http.Handler) http.Handler{"timeout": servertest.Timeout, "lost": servertest.LoseResponse} {
		s.Fail(servertest.On("create", "configmaps").Named(name).Times(1).With(effect))
		body := fmt.Sprintf(`{"metadata":{"name":%q}}`, name)
		assert.NotEqual(t, "201", outcome(t, s.Client(), "POST", s.Host()+maps, body))
		assert.Equal(t, "200", outcome(t, s.Client(), "GET", s.Host()+maps+"/"+name, ""))
		assert.Equal(t, "409", outcome(t, s.Client(), "POST", s.Host()+maps, body))
	}
}

// TestFaultsInABubble checks exact times of Slow, Hang and DropConnection in a synctest bubble.
func TestFaultsInABubble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		seeded := servertest.New(t)
		create(t, seeded, "a", "v")
		s := seeded.Fork(t)
		s.Fail(servertest.On("get", "configmaps").Times(2).With(servertest.Slow(time.Hour)))
		s.Fail(servertest.On("get", "configmaps").Times(1).With(servertest.Conflict))
		begun := time.Now()
		assert.Equal(t, "409", outcome(t, s.Client(), "GET", s.Host()+maps+"/a", ""), "both effects apply in order")
		assert.Equal(t, "200", outcome(t, s.Client(), "GET", s.Host()+maps+"/a", ""))
		assert.Equal(t, 2*time.Hour, time.Since(begun))
		assert.Equal(t, "200", outcome(t, seeded.Client(), "GET", seeded.Host()+maps+"/a", ""))
		assert.Equal(t, 2*time.Hour, time.Since(begun), "a fork's faults are its own")

		hangs := s.Fail(servertest.On("get", "configmaps").With(servertest.Hang))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, "GET", s.Host()+maps+"/a", nil)
		require.NoError(t, err)
		_, err = s.Client().Do(r)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		released := make(chan string)
		go func() { released <- outcome(t, s.Client(), "GET", s.Host()+maps+"/a", "") }()
		synctest.Wait()
		hangs.Stop()
		assert.Equal(t, "no answer", <-released)
		assert.Equal(t, 2, hangs.Hits())

		s.Fail(servertest.On("watch", "configmaps").With(servertest.DropConnection(10 * time.Second)))
		begun = time.Now()
		assert.Equal(t, "200 cut off", outcome(t, s.Client(), "GET", s.Host()+maps+"?watch=1", ""))
		assert.Equal(t, 10*time.Second, time.Since(begun))
	})
}

func TestWatchesAreCut(t *testing.T) {
	t.Parallel()
	s := servertest.New(t)
	socket := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(socket.CloseIdleConnections)
	for _, way := range []struct {
		client *http.Client
		host   string
	}{{s.Client(), s.Host()}, {socket, s.URL()}} {
		watch := send(t, t.Context(), way.client, "GET", way.host+maps+"?watch=1", "")
		assert.Zero(t, s.Cut(servertest.On("watch", "secrets")))
		assert.Equal(t, 1, s.Cut(servertest.On("watch", "configmaps")))
		_, err := io.ReadAll(watch.Body)
		assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
		require.NoError(t, watch.Body.Close())
	}

	s.Fail(servertest.On("watch", "configmaps").Times(1).With(servertest.Expired))
	res := send(t, t.Context(), s.Client(), "GET", s.Host()+maps+"?watch=1&resourceVersion=1", "")
	defer res.Body.Close()
	event, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	assert.Equal(t, 200, res.StatusCode)
	assert.Contains(t, string(event), `"type":"ERROR"`)
	assert.Contains(t, string(event), `"code":410`)
}

// TestStaleReads checks that StaleReads serves old gets, lists and watches while writes succeed.
func TestStaleReads(t *testing.T) {
	t.Parallel()
	s := servertest.New(t, servertest.RBAC)
	admin := s.As("admin", "system:masters").Client()
	write := func(name string) {
		require.Equal(t, "201", outcome(t, admin, "POST", s.Host()+maps, fmt.Sprintf(`{"metadata":{"name":%q}}`, name)))
	}
	write("old")
	f := s.Fail(servertest.On("*", "configmaps").With(s.StaleReads()))
	watch := send(t, t.Context(), admin, "GET", s.Host()+maps+"?watch=1", "")
	defer watch.Body.Close()
	lines := bufio.NewScanner(watch.Body)
	require.True(t, lines.Scan())
	assert.Contains(t, lines.Text(), `"name":"old"`)
	write("new")
	assert.Equal(t, "404", outcome(t, admin, "GET", s.Host()+maps+"/new", ""))
	assert.Equal(t, "200", outcome(t, admin, "GET", s.Host()+maps+"/old", ""))
	assert.Equal(t, "403", outcome(t, s.As("jane").Client(), "GET", s.Host()+maps+"/old", ""), "the replica authenticates and authorizes the caller")
	assert.Equal(t, "200", outcome(t, admin, "DELETE", s.Host()+maps+"/old", ""))
	assert.Equal(t, "200", outcome(t, admin, "GET", s.Host()+maps+"/old", ""))
	f.Stop()
	assert.False(t, lines.Scan(), "the watch ended without later events")
	assert.ErrorIs(t, lines.Err(), io.ErrUnexpectedEOF)
	assert.Equal(t, "200", outcome(t, admin, "GET", s.Host()+maps+"/new", ""))
	assert.Equal(t, "404", outcome(t, admin, "GET", s.Host()+maps+"/old", ""))
}

// watched is a testing.TB whose failure does not fail the test that uses it.
type watched struct {
	testing.TB
	failed   bool
	output   strings.Builder
	cleanups []func()
}

func (w *watched) Cleanup(f func()) { w.cleanups = append(w.cleanups, f) }
func (w *watched) Failed() bool     { return w.failed }
func (w *watched) Logf(format string, args ...any) {
	fmt.Fprintf(&w.output, format+"\n", args...)
}
func (w *watched) Errorf(format string, args ...any) {
	w.failed = true
	w.Logf(format, args...)
}

func (w *watched) end() string {
	for i := len(w.cleanups) - 1; i >= 0; i-- {
		w.cleanups[i]()
	}
	return w.output.String()
}

// TestUnmetFaults checks that a fault that was not applied often enough fails the test.
func TestUnmetFaults(t *testing.T) {
	t.Parallel()
	w := &watched{TB: t}
	s := servertest.New(w)
	s.Fail(servertest.On("update", "configmaps", "status").Named("x").Times(2).With(servertest.Conflict))
	s.Fail(servertest.On("update", "configmaps").AtMost(2).With(servertest.Conflict))
	s.Fail(servertest.On("update", "secrets").With(servertest.Conflict)).Stop()
	s.Fail(servertest.On("get", "configmaps").With(servertest.Unavailable))
	assert.Equal(t, "503", outcome(t, s.Client(), "GET", s.Host()+maps+"/x", ""))
	assert.Equal(t, "the fault on update configmaps/status named x was applied 0 of 2 times\n"+
		"the fault on update secrets was never applied: no request matched; use Rule.AtMost if that is allowed\n", w.end())
	assert.True(t, w.failed)
}

// TestFailedTestsLogRequests checks that the log of a failed test ends with the last requests.
func TestFailedTestsLogRequests(t *testing.T) {
	t.Parallel()
	w := &watched{TB: t}
	s := servertest.New(w, func(b *server.Builder) { b.Serving.Version = "v1.2.3" })
	jane := s.As("jane").Client()
	for range 3 {
		outcome(t, jane, "GET", s.Host()+maps+"/missing", "")
	}
	outcome(t, jane, "POST", s.Host()+maps, `{"metadata":{"name":"x"}}`)
	watch := send(t, t.Context(), jane, "GET", s.Host()+maps+"?watch=1", "")
	defer watch.Body.Close()
	assert.NotContains(t, s.Requests(), "\n\n")
	w.failed = true
	output := w.end()
	assert.Regexp(t, `s jane get configmaps default/missing → 404: configmaps "missing" not found \(3 times\)\n`, output)
	assert.Regexp(t, `s jane create configmaps default/x → 201\n`, output)
	assert.Regexp(t, `s jane watch configmaps default/ → 200, not ended\n`, output)
}

// TestHangEndsWithTheClient checks it on a socket, too, with an unread request body.
func TestHangEndsWithTheClient(t *testing.T) {
	t.Parallel()
	s := servertest.New(t)
	s.Fail(servertest.On("create", "configmaps").With(servertest.Hang))
	ctx, cancel := context.WithCancel(t.Context())
	socket := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(socket.CloseIdleConnections)
	ended := make(chan error)
	go func() {
		r, err := http.NewRequestWithContext(ctx, "POST", s.URL()+maps, strings.NewReader(`{"metadata":{"name":"a"}}`))
		if err == nil {
			_, err = socket.Do(r) //nolint:bodyclose // there is no response
		}
		ended <- err
	}()
	for s.Requests() == "" {
		time.Sleep(time.Millisecond)
	}
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	require.Eventually(t, func() bool { return !strings.Contains(s.Requests(), "not ended") }, time.Minute, time.Millisecond)
}

// TestInvalidRules checks that a rule that can match no request ends the test.
func TestInvalidRules(t *testing.T) {
	t.Parallel()
	w := &watched{TB: t}
	s := servertest.New(w)
	for _, c := range []struct {
		rule servertest.Rule
		want string
	}{
		{servertest.On("updat", "configmaps"), `unknown verb "updat"; did you mean "update"?`},
		{servertest.On("put", "configmaps"), `unknown verb "put"`},
		{servertest.On("update", "pods/status"), `On("update", "pods", "status")`},
		{servertest.On("get", "ConfigMap"), `invalid resource "ConfigMap"`},
		{servertest.On("get", ""), `invalid resource ""`},
		{servertest.On("get", "pods", "status", "scale"), `single subresource`},
		{servertest.On("get", "pods").Times(0), `must be positive, not 0`},
		{servertest.On("get", "pods").AtMost(-1), `must be positive, not -1`},
	} {
		for name, use := range map[string]func(servertest.Rule){
			"Fail":   func(r servertest.Rule) { s.Fail(r.With(servertest.Conflict)) },
			"Cut":    func(r servertest.Rule) { s.Cut(r) },
			"Record": func(r servertest.Rule) { s.Record(servertest.On("*", "*"), r) },
		} {
			func() {
				defer func() { assert.Equal(t, "fatal", recover(), "%s %s", name, c.rule) }()
				use(c.rule)
			}()
		}
		assert.Contains(t, w.output.String(), c.want)
	}
	w.end()
}
