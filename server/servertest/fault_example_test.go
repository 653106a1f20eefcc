package servertest_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/server/servertest"
)

// The first update of a status gets a conflict.
func ExampleServer_Fail() {
	test(func(t testing.TB) {
		s := servertest.New(t)
		conflict := s.Fail(servertest.On("update", "namespaces", "status").Named("default").Times(1).With(servertest.Conflict))
		namespace := `{"metadata":{"name":"default"},"status":{"phase":"Active"}}`
		for range 2 {
			res := send(t, t.Context(), s.Client(), "PUT", s.Host()+"/api/v1/namespaces/default/status", namespace)
			res.Body.Close()
			fmt.Println(res.StatusCode)
		}
		fmt.Println("hits:", conflict.Hits())
	})
	// Output:
	// 409
	// 200
	// hits: 1
}

// The results of each effect.
func ExampleRule_With() {
	test(func(t testing.TB) {
		s := servertest.New(t)
		client := s.As("jane").Client()
		for _, effect := range []func(http.Handler) http.Handler{
			servertest.Conflict, servertest.Expired, servertest.TooManyRequests(time.Second),
			servertest.InternalError, servertest.Unavailable, servertest.Timeout,
			servertest.Respond(meta.Forbidden(meta.GroupResource{Resource: "namespaces"}, "default", "not today")),
			servertest.Slow(time.Millisecond), servertest.DropConnection(time.Hour), servertest.Truncate(1 << 20), s.StaleReads(), // no effect on this request
			servertest.LoseResponse,
		} {
			s.Fail(servertest.On("get", "namespaces").By("jane").Times(1).With(effect))
			res, err := client.Get(s.Host() + "/api/v1/namespaces/default")
			if err != nil {
				fmt.Println(err)
				continue
			}
			res.Body.Close()
			fmt.Print(res.StatusCode, " ")
		}
	})
	// Output: 409 410 429 500 503 504 403 200 200 200 200 Get "http://in-process/api/v1/namespaces/default": unexpected EOF
}

// Stopping the fault cuts a request that hangs.
func ExampleFault_Stop() {
	test(func(t testing.TB) {
		s := servertest.New(t)
		hang := s.Fail(servertest.On("list", "namespaces").With(servertest.Hang))
		answered := make(chan error)
		go func() {
			_, err := s.Client().Get(s.Host() + "/api/v1/namespaces")
			answered <- err
		}()
		for hang.Hits() == 0 {
			time.Sleep(time.Millisecond)
		}
		hang.Stop()
		fmt.Println(<-answered)
	})
	// Output: Get "http://in-process/api/v1/namespaces": unexpected EOF
}

// With RBAC, roles grant rights.
func ExampleRBAC() {
	test(func(t testing.TB) {
		s := servertest.New(t, servertest.RBAC)
		for _, user := range []*servertest.User{s.As("admin", "system:masters"), s.As("jane", "devs")} {
			res := send(t, t.Context(), user.Client(), "GET", user.Host()+"/api/v1/namespaces/default/secrets", "")
			res.Body.Close()
			fmt.Println(res.StatusCode)
		}
	})
	// Output:
	// 200
	// 403
}

// A test can compare the recorded requests as text.
func ExampleServer_Record() {
	test(func(t testing.TB) {
		s := servertest.New(t)
		var recorder *servertest.Recorder = s.Record(servertest.On("write", "*", "*"))
		jane := s.As("jane").Client()
		for _, step := range [][2]string{{"POST", ""}, {"GET", "/team"}, {"DELETE", "/team"}, {"DELETE", "/nobody"}} {
			send(t, t.Context(), jane, step[0], s.Host()+"/api/v1/namespaces"+step[1], body(step[0])).Body.Close()
		}
		fmt.Print(recorder)
	})
	// Output:
	// jane create namespaces team → 201
	// jane delete namespaces team → 200
	// jane delete namespaces nobody → 404
}

// A client continues after a crash and finds the acknowledged writes.
func ExampleServer_Crash() {
	test(func(t testing.TB) {
		s := servertest.New(t)
		client := s.Client()
		send(t, t.Context(), client, "POST", s.Host()+"/api/v1/namespaces", body("POST")).Body.Close()
		s.Crash()
		_, err := client.Get(s.Host() + "/api/v1/namespaces/team")
		fmt.Println(err)
		s.Restart()
		res := send(t, t.Context(), client, "GET", s.Host()+"/api/v1/namespaces/team", "")
		res.Body.Close()
		fmt.Println(res.StatusCode)
	})
	// Output:
	// Get "http://in-process/api/v1/namespaces/team": dial in-process: connect: connection refused
	// 200
}
