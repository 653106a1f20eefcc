package door_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/auth"
	"orch.io/controlplane/internal/faultinject"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage/memstore"
)

// TestOnlyAllowLetsARequestIn checks each decision of the authorizer, with and without an error.
func TestOnlyAllowLetsARequestIn(t *testing.T) {
	t.Parallel()
	type answer struct {
		decision auth.Decision
		err      error
	}
	var now atomic.Pointer[answer]
	s := servertest.New(t, func(b *server.Builder) {
		b.Authorizer = auth.AuthorizerFunc(func(context.Context, auth.Attributes) (auth.Decision, string, error) {
			a := now.Load()
			return a.decision, "", a.err
		})
	})
	c := apitest.NewClient(t, s.Host(), s.Client())
	for _, decision := range []auth.Decision{auth.NoOpinion, auth.Allow, auth.Deny} {
		for _, err := range []error{nil, errors.New("boom")} {
			now.Store(&answer{decision, err})
			for _, path := range []string{"/version", "/api/v1/namespaces/default/configmaps"} {
				assert.Equal(t, decision == auth.Allow, c.Do("GET", path, nil).Code == 200, "%v %v %s", decision, err, path)
				assert.Equal(t, decision != auth.Allow, c.Do("GET", path, nil).Code == 403, "%v %v %s", decision, err, path)
			}
		}
	}
}

// TestRequestsWithoutAUserAreUnauthorized checks authenticators that do not recognize the caller and that refuse it.
func TestRequestsWithoutAUserAreUnauthorized(t *testing.T) {
	t.Parallel()
	for _, err := range []error{nil, errors.New("boom")} {
		s := servertest.New(t, func(b *server.Builder) {
			b.Authorizer = auth.AllowAll
			b.Authenticators = []auth.Authenticator{auth.AuthenticatorFunc(func(*http.Request) (*auth.User, error) { return nil, err })}
		})
		c := apitest.NewClient(t, s.Host(), s.Client())
		for _, path := range []string{"/version", "/api/v1/namespaces/default/configmaps"} {
			assert.Equal(t, 401, c.Do("GET", path, nil).Code, "%v %s", err, path)
		}
	}
}

// TestTheTimeoutOfACallerIsBounded checks when the context of a request ends: after the parameter timeout, at most
// after Limits.RequestTime.
func TestTheTimeoutOfACallerIsBounded(t *testing.T) {
	t.Parallel()
	const most = time.Hour
	var ends atomic.Pointer[time.Time]
	s := servertest.New(t, func(b *server.Builder) {
		b.Limits.RequestTime = most
		b.Authorizer = auth.AuthorizerFunc(func(ctx context.Context, _ auth.Attributes) (auth.Decision, string, error) {
			at, _ := ctx.Deadline()
			ends.Store(&at)
			return auth.Allow, "", nil
		})
	})
	c := apitest.NewClient(t, s.Host(), s.Client())
	for timeout, want := range map[string]time.Duration{"": most, "0s": most, "-5h": most, "10h": most, "30m": 30 * time.Minute} {
		begun := time.Now()
		c.Must(200, "GET", "/api/v1/namespaces/default/configmaps?timeout="+timeout, nil)
		limit := ends.Load().Sub(begun)
		assert.Greater(t, limit, want-time.Minute, timeout)
		assert.Less(t, limit, want+10*time.Minute, timeout)
	}
	assert.Equal(t, 400, c.Do("GET", "/api/v1/namespaces/default/configmaps?timeout=soon", nil).Code)
}

// TestNothingIsDecidedWithoutTheStore checks that a request is not authorized by caches that may be stale because the
// store does not answer.
func TestNothingIsDecidedWithoutTheStore(t *testing.T) {
	t.Parallel()
	store := faultinject.Wrap(memstore.New(memstore.Options{}), nil)
	var calls atomic.Int32
	s := servertest.New(t, func(b *server.Builder) {
		b.Storage = store
		b.Authorizer = auth.AuthorizerFunc(func(_ context.Context, a auth.Attributes) (auth.Decision, string, error) {
			if a.User.Name == auth.Anonymous {
				calls.Add(1)
			}
			return auth.Allow, "", nil
		})
	})
	c := apitest.NewClient(t, s.Host(), s.Client())
	c.Must(200, "GET", "/api/v1/namespaces/default/configmaps", nil)
	require.EqualValues(t, 1, calls.Load())
	store.SetPlan(func(call faultinject.Call) (f faultinject.Fault) {
		if call.Op == faultinject.OpRevision {
			f.Err = errors.New("the store does not answer")
		}
		return f
	})
	assert.Equal(t, 500, c.Do("GET", "/api/v1/namespaces/default/configmaps", nil).Code)
	assert.EqualValues(t, 1, calls.Load())
}
