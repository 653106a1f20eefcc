package objects

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/storage"
)

// TestUpdatesInheritMetadata checks the metadata that a caller cannot change.
func TestUpdatesInheritMetadata(t *testing.T) {
	const live = `{"metadata":{"name":"a","namespace":"ns","uid":"1","generation":3,"resourceVersion":"7","creationTimestamp":"2026-01-01T00:00:00Z"%s}}`
	const terminating = `,"deletionTimestamp":"2026-01-02T00:00:00Z","deletionGracePeriodSeconds":30`
	for _, c := range []struct{ live, sent, want string }{
		{"", `{"name":"a"}`, ""},
		{"", `{"name":"a","namespace":"other","uid":"2","generation":9,"resourceVersion":"8","creationTimestamp":null,"selfLink":"/x"}`, ""},
		{terminating, `{"name":"a"}`, terminating},
		{terminating, `{"name":"a","deletionTimestamp":"2027-01-01T00:00:00Z"}`, terminating},
		{terminating, `{"name":"a","deletionTimestamp":null,"deletionGracePeriodSeconds":null}`, terminating},
	} {
		obj := meta.NewObject(parseTree(t, `{"metadata":`+c.sent+`}`))
		inherit(obj, meta.NewObject(parseTree(t, fmt.Sprintf(live, c.live))))
		assert.Equal(t, parseTree(t, fmt.Sprintf(live, c.want)), obj.Tree(), c.sent)
	}
}

// TestNewObjectsHaveTheServersMetadata checks that a caller cannot create an object that is being deleted, or choose
// its uid.
func TestNewObjectsHaveTheServersMetadata(t *testing.T) {
	v := &resource.Version{Type: &resource.Type{}}
	obj := meta.NewObject(parseTree(t, `{"metadata":{"name":"a","uid":"1","generation":7,"resourceVersion":"7","selfLink":"/x",
		"creationTimestamp":"2026-01-01T00:00:00Z","deletionTimestamp":"2026-01-02T00:00:00Z","deletionGracePeriodSeconds":30}}`))
	(&Store{}).initialize(&Write{Version: v, Key: meta.Key{Namespace: "ns", Name: "a"}}, obj)
	assert.NotEqual(t, "1", obj.UID())
	assert.NotEmpty(t, obj.UID())
	assert.Equal(t, int64(1), obj.Generation())
	assert.Equal(t, "ns", obj.Namespace())
	assert.NotEqual(t, "2026-01-01T00:00:00Z", obj.String("metadata", "creationTimestamp"))
	for _, field := range []string{"resourceVersion", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"} {
		assert.NotContains(t, obj.Metadata(), field)
	}
}

func TestDeletionPreconditions(t *testing.T) {
	live := meta.NewObject(parseTree(t, `{"metadata":{"name":"a","uid":"u1","resourceVersion":"7"}}`))
	typ := &resource.Type{}
	for _, c := range []struct {
		uid, version string
		ok           bool
	}{
		{"", "", true}, {"u1", "", true}, {"", "7", true}, {"u1", "7", true},
		{"u2", "", false}, {"", "6", false}, {"", "8", false}, {"u1", "8", false}, {"u2", "7", false},
	} {
		d := &Deletion{}
		if c.uid != "" {
			d.UID = &c.uid
		}
		if c.version != "" {
			d.Version = &c.version
		}
		err := d.checkPreconditions(typ, live)
		assert.Equal(t, c.ok, err == nil, c)
		assert.Equal(t, !c.ok, meta.IsConflict(err), c)
	}
	empty := ""
	assert.True(t, meta.IsConflict((&Deletion{UID: &empty}).checkPreconditions(typ, live)), "an empty uid is a precondition")
}

// TestPropagationKeepsOtherFinalizers checks which finalizers an object has after its deletion began.
func TestPropagationKeepsOtherFinalizers(t *testing.T) {
	yes, no := true, false
	policy := func(name string) *Deletion { return &Deletion{Propagation: &name} }
	orphan, foreground := meta.FinalizerOrphan, meta.FinalizerForeground
	for name, c := range map[string]struct {
		d            *Deletion
		before, want []string
	}{
		"none":                    {&Deletion{}, []string{"a", orphan}, []string{"a", orphan}},
		"background":              {policy("Background"), []string{"a", orphan, "b"}, []string{"a", "b"}},
		"foreground":              {policy("Foreground"), []string{"a", orphan}, []string{"a", foreground}},
		"orphan":                  {policy("Orphan"), []string{foreground, "a"}, []string{"a", orphan}},
		"orphanDependents":        {&Deletion{Orphan: &yes}, []string{"a"}, []string{"a", orphan}},
		"orphanDependents, false": {&Deletion{Orphan: &no}, []string{"a", orphan}, []string{"a"}},
	} {
		obj := meta.NewObject(parseTree(t, `{"metadata":{"name":"a"}}`))
		obj.SetFinalizers(c.before)
		c.d.begin(&resource.Type{}, obj)
		assert.Equal(t, c.want, obj.Finalizers(), name)
		assert.True(t, obj.Terminating(), name)
	}
}

// TestDeletedObjectIsRemovedWhenFinished checks when the record of an object that is being deleted is removed.
func TestDeletedObjectIsRemovedWhenFinished(t *testing.T) {
	plain, held := &resource.Type{}, &resource.Type{}
	held.RetainOnDelete = func(*meta.Object) bool { return true }
	const deleted = `"deletionTimestamp":"2026-01-01T00:00:00Z"`
	for _, c := range []struct {
		typ      *resource.Type
		metadata string
		want     bool
	}{
		{plain, `{}`, false},
		{plain, `{` + deleted + `}`, true},
		{plain, `{` + deleted + `,"deletionGracePeriodSeconds":0}`, true},
		{plain, `{` + deleted + `,"deletionGracePeriodSeconds":1}`, false},
		{plain, `{` + deleted + `,"finalizers":["a"]}`, false},
		{held, `{` + deleted + `}`, false},
	} {
		assert.Equal(t, c.want, finished(c.typ, meta.NewObject(parseTree(t, `{"metadata":`+c.metadata+`}`))), c.metadata)
	}
}

// TestContinueTokens checks that only tokens that a list returned are accepted.
func TestContinueTokens(t *testing.T) {
	for _, token := range []continueToken{{7, "ns/a"}, {anyState, "a"}} {
		got, err := parseToken(token.String())
		require.NoError(t, err)
		assert.Equal(t, token, got)
	}
	for _, text := range []string{
		``, `{}`, `{"rv":7}`, `{"rv":7,"start":""}`, `{"rv":0,"start":"a"}`, `{"start":"a"}`, `{"rv":-2,"start":"a"}`,
		`{"rv":7,"start":"a"}{}`, `{"rv":7,"start":"a"}x`, `{"rv":7,"start":"a","limit":1}`, `{"rv":"7","start":"a"}`, `x`,
	} {
		_, err := parseToken(base64.RawURLEncoding.EncodeToString([]byte(text)))
		assert.Equal(t, meta.ReasonBadRequest, meta.ReasonOf(err), text)
	}
	_, err := parseToken("!")
	assert.Equal(t, meta.ReasonBadRequest, meta.ReasonOf(err))
}

// TestErrorsThatLeaveOutcomeUnknown checks which errors of a commit leave open whether it was made: admission
// keeps what it counted then.
func TestErrorsThatLeaveOutcomeUnknown(t *testing.T) {
	for _, err := range []error{
		meta.Conflict(meta.GroupResource{}, "a", "no"), &storage.ConflictError{}, errDeposed, storage.ErrFull, storage.ErrTooLarge, storage.ErrInvalidCommit,
	} {
		assert.False(t, errors.As(uncertain(fmt.Errorf("commit: %w", err)), new(*uncertainError)), err)
	}
	for _, err := range []error{context.DeadlineExceeded, context.Canceled, storage.ErrStopped, storage.ErrClosed, errors.New("lost")} {
		assert.True(t, errors.As(uncertain(err), new(*uncertainError)), err)
		assert.ErrorIs(t, uncertain(err), err)
	}
	assert.NoError(t, uncertain(nil))
}
