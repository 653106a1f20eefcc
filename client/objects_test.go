package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/client"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/core"
	"orch.io/controlplane/server"
)

func TestObjectLifecycle(t *testing.T) {
	ctx := t.Context()
	lamps := asJane(newServer(t)).In("default")
	desk, err := lamps.Create(ctx, newLamp("desk", 40))
	require.NoError(t, err)
	assert.Equal(t, "white", desk.Spec.Color, "the server's default")
	assert.Equal(t, "Lamp", desk.Kind)
	assert.NotEmpty(t, desk.UID)
	assert.Equal(t, "jane", desk.ManagedFields[0].Manager)

	desk.Spec.Watts = 60
	changed, err := lamps.Update(ctx, desk)
	require.NoError(t, err)
	assert.EqualValues(t, 2, changed.Generation)
	_, err = lamps.Update(ctx, desk)
	assert.True(t, meta.IsConflict(err), "%v", err)

	changed.Status.Burnt, changed.Spec.Watts = true, 1
	burnt, err := lamps.UpdateStatus(ctx, changed)
	require.NoError(t, err)
	assert.True(t, burnt.Status.Burnt)
	assert.Equal(t, 60, burnt.Spec.Watts)

	for _, p := range []client.Patch{
		client.MergePatch(map[string]any{"spec": map[string]any{"color": "red"}}),
		client.StrategicPatch(json.RawMessage(`{"spec":{"color":"red","watts":50}}`)),
		client.JSONPatch([]any{map[string]any{"op": "replace", "path": "/spec/color", "value": "green"}}),
	} {
		_, err = lamps.Patch(ctx, "desk", p)
		assert.NoError(t, err)
	}
	_, err = lamps.Patch(ctx, "desk", client.MergePatch(map[string]any{"spec": map[string]any{"colour": "red"}}))
	assert.ErrorContains(t, err, `unknown field "spec.colour"`)
	_, err = lamps.Patch(ctx, "desk", client.Patch{})
	assert.Error(t, err)
	desk, err = lamps.Get(ctx, "desk")
	require.NoError(t, err)
	assert.Equal(t, "green", desk.Spec.Color)

	assert.True(t, meta.IsConflict(lamps.Delete(ctx, "desk", registry.DeleteOptions{Version: "1"})))
	assert.NoError(t, lamps.Delete(ctx, "desk", registry.DeleteOptions{UID: desk.UID, Propagation: "Background"}))
	_, err = lamps.Get(ctx, "desk")
	assert.True(t, meta.IsNotFound(err), "%v", err)
}

func TestListAndDeleteAll(t *testing.T) {
	ctx := t.Context()
	all := asJane(newServer(t))
	for i := range 7 {
		l := newLamp(fmt.Sprint("l", i), i+1)
		l.Labels = map[string]string{"parity": fmt.Sprint(i % 2)}
		if i == 3 {
			l.Spec.Color = "red"
		}
		_, err := all.Create(ctx, l)
		require.NoError(t, err)
	}
	page, err := all.List(ctx, client.ListOptions{Limit: 5})
	require.NoError(t, err)
	assert.Len(t, page.Items, 5)
	assert.EqualValues(t, 2, *page.Remaining)
	assert.NotEmpty(t, page.Version)
	rest, err := all.List(ctx, client.ListOptions{Limit: 5, Continue: page.Continue})
	require.NoError(t, err)
	assert.Len(t, rest.Items, 2)
	assert.Empty(t, rest.Continue)
	assert.Equal(t, "Lamp", rest.Items[0].Kind)

	names := func(o *client.Objects[Lamp]) (names []string) {
		for l, err := range o.All(ctx) {
			require.NoError(t, err)
			names = append(names, l.Name)
		}
		return names
	}
	assert.Equal(t, []string{"l1", "l3", "l5"}, names(all.WithLabels("parity=1")))
	assert.Equal(t, []string{"l3"}, names(all.In("default").WithLabels("parity=1").WithFields("spec.color=red")))
	assert.NoError(t, all.In("default").WithLabels("parity=1").DeleteAll(ctx, registry.DeleteOptions{}))
	assert.Equal(t, []string{"l0", "l2", "l4", "l6"}, names(all))
	for l, err := range all.WithLabels("=").All(ctx) {
		assert.Nil(t, l)
		assert.Equal(t, meta.ReasonBadRequest, meta.ReasonOf(err))
	}
}

// TestConnIsSubjectToAccessControl checks that requests over Server.Conn are authorized, admitted
// and audited as those of the user, including writes of the program itself.
func TestConnIsSubjectToAccessControl(t *testing.T) {
	ctx := t.Context()
	var mu sync.Mutex
	var seen []string
	gate := admission.Plugin{
		Name:  "Gate",
		Rules: []admission.Rule{{Operations: []admission.Operation{admission.Create}, Groups: []string{"example.com"}, Resources: []string{"lamps"}}},
		Validate: func(_ context.Context, r *admission.Request) error {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, r.User.Name+" "+strings.Join(r.User.Groups, ","))
			return nil
		},
	}
	s := newServer(t, func(b *server.Builder) {
		b.Admission = append(b.Admission, gate)
		b.Authorizer = auth.AuthorizerFunc(func(_ context.Context, a auth.Attributes) (auth.Decision, string, error) {
			if a.User.Name == "jane" || a.User.InGroup(auth.Masters) {
				return auth.Allow, "", nil
			}
			return auth.NoOpinion, "", nil
		})
	})
	_, err := asJane(s).Create(ctx, newLamp("desk", 1))
	require.NoError(t, err)
	assert.Equal(t, []string{"jane devs,system:authenticated"}, seen)

	conn := s.Conn(auth.User{Name: "joe"})
	conn.Token = "whatever"
	_, err = client.Of[Lamp](conn, registry.Of(lamp)).In("default").Get(ctx, "desk")
	assert.Equal(t, meta.ReasonForbidden, meta.ReasonOf(err))
	assert.ErrorContains(t, err, `User "joe" cannot get resource "lamps"`)
	_, err = client.Of[Lamp](s.Conn(auth.User{}), registry.Of(lamp)).In("default").Get(ctx, "desk")
	assert.Equal(t, meta.ReasonUnauthorized, meta.ReasonOf(err))
}

func TestApplyOwnsFields(t *testing.T) {
	ctx := t.Context()
	s := newServer(t)
	jane := asJane(s).In("default")
	_, err := jane.Apply(ctx, newLamp("desk", 40), client.ApplyOptions{})
	require.NoError(t, err)
	conn := s.Conn(auth.User{Name: "joe"})
	conn.Manager = "joe"
	joe := client.Of[Lamp](conn, registry.Of(lamp)).In("default")
	watts := map[string]any{"metadata": map[string]any{"name": "desk"}, "spec": map[string]any{"watts": 60}}
	_, err = joe.Apply(ctx, watts, client.ApplyOptions{})
	assert.True(t, meta.IsConflict(err), "%v", err)
	got, err := joe.Apply(ctx, watts, client.ApplyOptions{Force: true})
	require.NoError(t, err)
	assert.Equal(t, 60, got.Spec.Watts)
	conn.Manager = ""
	_, err = client.Of[Lamp](conn, registry.Of(lamp)).In("default").Apply(ctx, watts, client.ApplyOptions{})
	assert.Equal(t, meta.ReasonInvalid, meta.ReasonOf(err), "%v", err)
	burnt := map[string]any{"metadata": map[string]any{"name": "desk"}, "status": map[string]any{"burnt": true}}
	got, err = joe.Subresource("status").Apply(ctx, burnt, client.ApplyOptions{})
	require.NoError(t, err)
	assert.True(t, got.Status.Burnt)
	got.ManagedFields[0].Manager = "nobody"
	_, err = joe.Apply(ctx, got, client.ApplyOptions{Force: true})
	assert.NoError(t, err, "one that was read can be applied")
}

// TestModifyLosesNoChange modifies one object concurrently.
func TestModifyLosesNoChange(t *testing.T) {
	ctx := t.Context()
	lamps := asJane(newServer(t)).In("default")
	_, err := lamps.Create(ctx, newLamp("desk", 1))
	require.NoError(t, err)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 5 {
				_, err := lamps.Modify(ctx, "desk", func(l *Lamp) error {
					l.Spec.Watts++
					return nil
				})
				assert.NoError(t, err)
			}
		})
	}
	all.Wait()
	before, err := lamps.Get(ctx, "desk")
	require.NoError(t, err)
	assert.Equal(t, 41, before.Spec.Watts)
	same, err := lamps.Modify(ctx, "desk", func(*Lamp) error { return nil })
	require.NoError(t, err)
	assert.Equal(t, before.ResourceVersion, same.ResourceVersion)
	own := errors.New("own")
	_, err = lamps.Modify(ctx, "desk", func(*Lamp) error { return own })
	assert.ErrorIs(t, err, own)
	_, err = lamps.Subresource("status").Modify(ctx, "desk", func(l *Lamp) error {
		l.Status.Burnt = true
		return nil
	})
	assert.NoError(t, err)
}

// TestModifyGivesUp calls Modify with a change that causes the conflict itself.
func TestModifyGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		lamps := asJane(newServer(t)).In("default")
		stale, err := lamps.Create(ctx, newLamp("desk", 1))
		require.NoError(t, err)
		_, err = lamps.Patch(ctx, "desk", client.MergePatch(map[string]any{"spec": map[string]any{"watts": 2}}))
		require.NoError(t, err)
		begun := time.Now()
		_, err = lamps.Modify(ctx, "desk", func(l *Lamp) error {
			*l = *stale
			l.Spec.Watts = 3
			return nil
		})
		assert.True(t, meta.IsConflict(err), "%v", err)
		assert.LessOrEqual(t, time.Since(begun), time.Minute)
	})
}

// TestModifyKeepsUnknownFields modifies an object with a struct that has fewer fields than the
// kind.
func TestModifyKeepsUnknownFields(t *testing.T) {
	type Lamp struct {
		meta.TypeMeta   `json:",inline"`
		meta.ObjectMeta `json:"metadata"`
		Spec            struct {
			Watts int `json:"watts,omitempty"`
		} `json:"spec"`
	}
	ctx := t.Context()
	s := newServer(t)
	whole := asJane(s).In("default")
	l := newLamp("desk", 1)
	l.Spec.Lit, l.Spec.Color, l.Labels = true, "red", map[string]string{"a": "b", "c": "d"}
	_, err := whole.Create(ctx, l)
	require.NoError(t, err)
	part := client.Of[Lamp](s.Conn(auth.User{Name: "jane"}), registry.Of(registry.Definition[Lamp]{Group: "example.com", Version: "v1"})).In("default")
	for _, watts := range []int{9, 0} {
		_, err = part.Modify(ctx, "desk", func(l *Lamp) error {
			l.Spec.Watts = watts
			delete(l.Labels, "a")
			l.Annotations = map[string]string{"watts": "changed"}
			return nil
		})
		require.NoError(t, err)
		got, err := whole.Get(ctx, "desk")
		require.NoError(t, err)
		assert.Equal(t, LampSpec{"red", watts, true}, got.Spec)
		assert.Equal(t, map[string]string{"c": "d"}, got.Labels)
		assert.Equal(t, map[string]string{"watts": "changed"}, got.Annotations)
	}
}

// TestSubresourceRejectsCollectionCalls checks that calls on collections fail for a subresource
// instead of applying to the objects.
func TestSubresourceRejectsCollectionCalls(t *testing.T) {
	ctx := t.Context()
	lamps := asJane(newServer(t)).In("default")
	status := lamps.Subresource("status")
	_, err := status.Create(ctx, newLamp("desk", 1))
	assert.ErrorContains(t, err, `subresource "status"`)
	_, err = status.List(ctx, client.ListOptions{})
	assert.Error(t, err)
	assert.Error(t, status.DeleteAll(ctx, registry.DeleteOptions{}))
	assert.Error(t, <-follow(ctx, status, "").err)
	page, err := lamps.List(ctx, client.ListOptions{})
	require.NoError(t, err)
	assert.Empty(t, page.Items)
}

// TestDryRun checks that writes with DryRun return objects and store nothing.
func TestDryRun(t *testing.T) {
	ctx := t.Context()
	s := newServer(t)
	real := asJane(s).In("default")
	conn := s.Conn(auth.User{Name: "jane"})
	conn.DryRun = true
	dry := client.Of[Lamp](conn, registry.Of(lamp)).In("default")
	got, err := dry.Create(ctx, newLamp("desk", 1))
	require.NoError(t, err)
	assert.NotEmpty(t, got.UID)
	_, err = real.Get(ctx, "desk")
	assert.True(t, meta.IsNotFound(err))
	_, err = real.Create(ctx, newLamp("desk", 1))
	require.NoError(t, err)
	assert.NoError(t, dry.Delete(ctx, "desk", registry.DeleteOptions{}))
	assert.NoError(t, dry.DeleteAll(ctx, registry.DeleteOptions{}))
	_, err = real.Get(ctx, "desk")
	assert.NoError(t, err)
}

// TestInvalidNamesAreRefused checks that names which would change the path are refused before a
// request is sent.
func TestInvalidNamesAreRefused(t *testing.T) {
	ctx := t.Context()
	lamps := asJane(newServer(t))
	_, err := lamps.Create(ctx, newLamp("desk", 1))
	require.NoError(t, err)
	for _, name := range []string{"", ".", "..", "a/b", "%2e%2e", "desk/status"} {
		assert.Equal(t, meta.ReasonBadRequest, meta.ReasonOf(lamps.In("default").Delete(ctx, name, registry.DeleteOptions{})), name)
		_, err := lamps.In(name+"..").Get(ctx, name)
		assert.Error(t, err, name)
	}
	_, err = lamps.Get(ctx, "desk")
	assert.ErrorContains(t, err, "lamps.example.com are namespaced: set a namespace")
	_, err = lamps.Create(ctx, &Lamp{})
	assert.ErrorContains(t, err, "set a namespace")
	assert.ErrorContains(t, lamps.DeleteAll(ctx, registry.DeleteOptions{}), "set a namespace")
	_, err = lamps.In("other").Create(ctx, newLamp("desk", 1))
	assert.ErrorContains(t, err, `is in the namespace "default", not in "other"`)
	_, err = lamps.In("default").Create(ctx, nil)
	assert.ErrorContains(t, err, "a nil Lamp")
	_, err = lamps.In("default").Get(ctx, "desk")
	assert.NoError(t, err)
}

func TestInvalidKindFailsEveryCall(t *testing.T) {
	type Other struct {
		meta.TypeMeta   `json:",inline"`
		meta.ObjectMeta `json:"metadata"`
	}
	ctx := t.Context()
	for want, err := range map[string]error{
		"neither URL":        second(client.Of[Lamp](client.Conn{Token: "secret"}, registry.Of(lamp)).In("a").Get(ctx, "b")),
		"kind is nil":        second(client.Of[Lamp](client.Conn{}, nil).In("a").Get(ctx, "b")),
		"has no version":     second(client.Of[Other](client.Conn{}, registry.Of(lamp)).In("a").Get(ctx, "b")),
		"found a number":     second(client.Of[Other](client.Conn{}, registry.FromCRD([]byte("1"))).List(ctx, client.ListOptions{})),
		"are not namespaced": second(client.Of[Other](client.Conn{}, registry.Of(registry.Definition[Other]{Version: "v1", Scope: registry.Cluster})).In("a").Get(ctx, "b")),
	} {
		assert.ErrorContains(t, err, want)
	}
}

func second[T any](_ T, err error) error { return err }

// TestUnknownFieldsAreRefused writes a struct with fields that the server's kind lacks: they are
// not silently lost.
func TestUnknownFieldsAreRefused(t *testing.T) {
	type Lamp struct {
		meta.TypeMeta   `json:",inline"`
		meta.ObjectMeta `json:"metadata"`
		Spec            struct {
			Colour string `json:"colour"`
		} `json:"spec"`
	}
	s := newServer(t)
	lamps := client.Of[Lamp](s.Conn(auth.User{Name: "jane"}), registry.Of(registry.Definition[Lamp]{Group: "example.com", Version: "v1"})).In("default")
	_, err := lamps.Create(t.Context(), &Lamp{ObjectMeta: meta.ObjectMeta{Name: "desk"}})
	assert.ErrorContains(t, err, `unknown field "spec.colour"`)
}

// TestBuiltinKindsUseNamesProfile checks that a field whose name depends on the names profile is
// read and written by its Go field.
func TestBuiltinKindsUseNamesProfile(t *testing.T) {
	ctx := t.Context()
	for _, profile := range []names.Profile{names.Orch, names.Kubernetes} {
		s := newServer(t, func(b *server.Builder) { b.Names = profile })
		conn := s.Conn(auth.User{Name: "jane"})
		for _, k := range core.Kinds() {
			if k.Kind != "ConfigMap" {
				continue
			}
			maps := client.Of[core.ConfigMap](conn, k).In("default")
			_, err := maps.Create(ctx, &core.ConfigMap{ObjectMeta: meta.ObjectMeta{Name: "a"}, Data: map[string]string{"k": "v"}})
			require.NoError(t, err)
			got, err := maps.Get(ctx, "a")
			require.NoError(t, err)
			assert.Equal(t, "v", got.Data["k"])
			_, err = maps.Patch(ctx, "a", client.StrategicPatch(map[string]any{"data": map[string]any{"k": "w"}}))
			assert.NoError(t, err)
		}
	}
}

// TestInvalidResponses checks that an unexpected response is an error of bounded size.
func TestInvalidResponses(t *testing.T) {
	var answer http.HandlerFunc
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answer(w, r) }))
	defer web.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	var warned []string
	lamps := client.Of[Lamp](client.Conn{URL: web.URL + "/", Transport: transport, Warn: func(text string) { warned = append(warned, text) }}, registry.Of(lamp)).In("default")
	respond := func(code int, text string, header ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			for i := 0; i < len(header); i += 2 {
				w.Header().Add(header[i], header[i+1])
			}
			w.WriteHeader(code)
			_, _ = w.Write([]byte(text))
		}
	}
	tries := 0
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		reason meta.Reason
		says   string
	}{
		"a page of a proxy": {respond(502, "<html>"+strings.Repeat("x", 5000)), meta.ReasonInternalError, "502 Bad Gateway"},
		"a redirect":        {respond(302, "", "Location", "https://elsewhere.example"), meta.ReasonInternalError, "302 Found"},
		"no text":           {respond(404, ""), meta.ReasonNotFound, "404"},
		"a status":          {respond(409, `{"kind":"Status","status":"Failure","reason":"Conflict","message":"no","details":{"causes":[{"field":"a"}]}}`), meta.ReasonConflict, "no"},
		"no reason":         {respond(404, `{"kind":"Status","message":"away"}`), meta.ReasonNotFound, "away"},
		"no word for it":    {respond(400, ""), meta.ReasonBadRequest, "400"},
		"half a refusal":    {respond(503, "{", "Content-Length", "100"), meta.ReasonServiceUnavailable, "503"},
		"a long refusal":    {respond(404, strings.Repeat("x", 5<<20)), meta.ReasonNotFound, "404"},
		"no object":         {respond(200, `[]`), "", "lamps.example.com"},
		"half an object":    {respond(200, `{"spec":`, "Content-Length", "100"), "", "reading the response"},
		"another type":      {respond(200, `{"spec":{"watts":"many"}}`), "", "watts"},
		"deep":              {respond(200, strings.Repeat(`{"a":`, 100_000)), "", "lamps.example.com"},
		"warnings":          {respond(404, "", "Warning", `299 - "be \"careful\""`, "Warning", "299", "Warning", `299 - "`), meta.ReasonNotFound, ""},
		"busy": {func(w http.ResponseWriter, r *http.Request) {
			if tries++; tries < 3 {
				respond(429, "", "Retry-After", "0")(w, r)
				return
			}
			respond(403, "")(w, r)
		}, meta.ReasonForbidden, "403"},
		"busy for ever": {respond(429, "", "Retry-After", "0"), meta.ReasonTooManyRequests, "429"},
	} {
		answer = c.answer
		_, err := lamps.Get(t.Context(), "desk")
		require.Error(t, err, name)
		assert.Equal(t, c.reason, meta.ReasonOf(err), "%s: %v", name, err)
		assert.ErrorContains(t, err, c.says, name)
		assert.Less(t, len(err.Error()), 2000, name)
	}
	assert.Equal(t, []string{`be "careful"`}, warned)
	assert.Equal(t, 3, tries)
}
