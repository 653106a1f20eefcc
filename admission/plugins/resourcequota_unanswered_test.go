package plugins_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

// unanswered is a store that returns no result for the first commit to a key, and commits it when it is
// resumed.
type unanswered struct {
	storage.Backend
	key    string
	once   sync.Once
	goesOn chan struct{}
	made   chan error
}

func (u *unanswered) Commit(ctx context.Context, ws ...storage.Write) (storage.Revision, error) {
	answered := true
	if slices.ContainsFunc(ws, func(w storage.Write) bool { return w.Key == u.key }) {
		u.once.Do(func() { answered = false })
	}
	if answered {
		return u.Backend.Commit(ctx, ws...)
	}
	go func() {
		<-u.goesOn
		_, err := u.Backend.Commit(context.WithoutCancel(ctx), ws...)
		u.made <- err
	}()
	return 0, errors.New("the commit may or may not have happened")
}

// unansweredWrite is a write to an object named late, and the writes of others meanwhile.
type unansweredWrite struct {
	bounds   string // spec.hard of the quota
	first    string // exists before
	do, body string
	then     string // by others, %s is the name
}

// TestResourceQuotaOfUnansweredCommit checks that the charge of a write with unknown outcome is kept until it
// is certain that the write will not be committed, and released then.
func TestResourceQuotaOfUnansweredCommit(t *testing.T) {
	const nodePort = `{"metadata":{"name":"%s"},"spec":{"type":"NodePort","ports":[{"port":80}]}}`
	for name, w := range map[string]unansweredWrite{
		"create": {bounds: "configmaps", do: "POST configmaps", body: `{"metadata":{"name":"late"}}`, then: `{"metadata":{"name":"%s"}}`},
		"patch": {
			bounds: "services.nodeports", first: `{"metadata":{"name":"late"},"spec":{"type":"ClusterIP","ports":[{"port":80}]}}`,
			do: "PATCH services/late", body: `{"spec":{"type":"NodePort"}}`, then: nodePort,
		},
	} {
		for _, same := range []bool{true, false} {
			for _, pause := range []time.Duration{0, time.Minute} {
				t.Run(fmt.Sprintf("%s, others at the same server %v, after %v", name, same, pause), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { quotaOfAnUnansweredCommit(t, w, same, pause) })
				})
			}
		}
	}
}

func quotaOfAnUnansweredCommit(t *testing.T, w unansweredWrite, same bool, pause time.Duration) {
	store := memstore.New(memstore.Options{})
	t.Cleanup(func() { assert.NoError(t, store.Close()) })
	collection, _, _ := strings.Cut(strings.Fields(w.do)[1], "/")
	late := &unanswered{Backend: shared{store}, key: collection + "/default/late", goesOn: make(chan struct{}), made: make(chan error, 1)}
	one := servertest.New(t, func(b *server.Builder) { b.Storage = shared{store} })
	if w.first != "" {
		code, answer := ask(t, one, "POST "+collection, w.first)
		require.Equal(t, 201, code, answer)
	}
	two := servertest.New(t, func(b *server.Builder) { b.Storage = late })
	code, answer := ask(t, two, "POST resourcequotas", fmt.Sprintf(`{"metadata":{"name":"q"},"spec":{"hard":{"%s":"4"}}}`, w.bounds))
	require.Equal(t, 201, code, answer)
	one.Settle()
	two.Settle()
	time.Sleep(time.Minute)
	code, answer = ask(t, two, "POST "+collection, fmt.Sprintf(w.then, "before")) // meets the fence that the other server raised
	require.Equal(t, 201, code, answer)

	code, answer = ask(t, two, w.do, w.body)
	require.Equal(t, 500, code, answer)
	time.Sleep(pause)
	others, made := one, 0
	if same {
		others = two
	}
	for i := range 12 {
		code, answer = ask(t, others, "POST "+collection, fmt.Sprintf(w.then, fmt.Sprint("other-", i)))
		if code == 201 {
			made++
		} else {
			require.Equal(t, 403, code, answer)
		}
		time.Sleep(time.Second)
	}
	assert.Equal(t, 3, made, "usage of objects that are not created is released")
	close(late.goesOn)
	require.Error(t, <-late.made, "the object exceeds the quota")
	one.Settle()
	two.Settle()
	time.Sleep(time.Minute)
	q, err := one.Objects().Get(t.Context(), resourceQuotas, meta.Key{Namespace: "default", Name: "q"})
	require.NoError(t, err)
	assert.Equal(t, "4", q.String("status", "used", w.bounds))
}
