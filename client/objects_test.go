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

func TestObjectsComeAndGo(t *testing.T) {
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

func TestListsAndCollections(t *testing.T) {
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

// TestProgramsAreCallersToo: who may is asked, admission sees the user, and the audit
// has the program's own writes.
func TestProgramsAreCallersToo(t *testing.T) {
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

// TestModifyLosesNoChange of many writers of one object.
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

// TestModifyGivesUp when its change brings the conflict about itself.
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

// TestModifyKeepsWhatItDoesNotKnow: a struct with fewer fields than the kind has.
func TestModifyKeepsWhatItDoesNotKnow(t *testing.T) {
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

// TestSubresourcesAreOfSingleObjects: what is not theirs is refused, not done to the objects.
func TestSubresourcesAreOfSingleObjects(t *testing.T) {
	ctx := t.Context()
	lamps := asJane(newServer(t)).In("default")
	status := lamps.Subresource("status")
	_, err := status.Create(ctx, newLamp("desk", 1))
	assert.ErrorContains(t, err, `the sub-resource "status"`)
	_, err = status.List(ctx, client.ListOptions{})
	assert.Error(t, err)
	assert.Error(t, status.DeleteAll(ctx, registry.DeleteOptions{}))
	assert.Error(t, <-follow(ctx, status, "").err)
	page, err := lamps.List(ctx, client.ListOptions{})
	require.NoError(t, err)
	assert.Empty(t, page.Items)
}

// TestDryRun: answers as if, and nothing is written.
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

// TestNamesThatLeadElsewhere are refused before anything is sent.
func TestNamesThatLeadElsewhere(t *testing.T) {
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
	assert.ErrorContains(t, err, "lamps.example.com are in namespaces: none is named")
	_, err = lamps.Create(ctx, &Lamp{})
	assert.ErrorContains(t, err, "none is named")
	assert.ErrorContains(t, lamps.DeleteAll(ctx, registry.DeleteOptions{}), "none is named")
	_, err = lamps.In("other").Create(ctx, newLamp("desk", 1))
	assert.ErrorContains(t, err, `is in the namespace "default", not in "other"`)
	_, err = lamps.In("default").Create(ctx, nil)
	assert.ErrorContains(t, err, "a nil Lamp")
	_, err = lamps.In("default").Get(ctx, "desk")
	assert.NoError(t, err)
}

func TestKindsThatDoNotFit(t *testing.T) {
	type Other struct {
		meta.TypeMeta   `json:",inline"`
		meta.ObjectMeta `json:"metadata"`
	}
	ctx := t.Context()
	for want, err := range map[string]error{
		"without URL":         second(client.Of[Lamp](client.Conn{Token: "secret"}, registry.Of(lamp)).In("a").Get(ctx, "b")),
		"without a kind":      second(client.Of[Lamp](client.Conn{}, nil).In("a").Get(ctx, "b")),
		"has no version":      second(client.Of[Other](client.Conn{}, registry.Of(lamp)).In("a").Get(ctx, "b")),
		"found a number":      second(client.Of[Other](client.Conn{}, registry.FromCRD([]byte("1"))).List(ctx, client.ListOptions{})),
		"are in no namespace": second(client.Of[Other](client.Conn{}, registry.Of(registry.Definition[Other]{Version: "v1", Scope: registry.Cluster})).In("a").Get(ctx, "b")),
	} {
		assert.ErrorContains(t, err, want)
	}
}

func second[T any](_ T, err error) error { return err }

// TestUnknownFieldsAreRefused: a struct that has more than the server's kind loses nothing
// silently.
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

// TestBuiltinKindsHaveTheServersNames: a field that is called otherwise on the wire is that
// of the struct.
func TestBuiltinKindsHaveTheServersNames(t *testing.T) {
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

// TestStrangeAnswers: what a server says that is none is an error of a bounded size.
func TestStrangeAnswers(t *testing.T) {
	var answer http.HandlerFunc
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answer(w, r) }))
	defer web.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	var warned []string
	lamps := client.Of[Lamp](client.Conn{URL: web.URL + "/", Transport: transport, Warn: func(text string) { warned = append(warned, text) }}, registry.Of(lamp)).In("default")
	say := func(code int, text string, header ...string) http.HandlerFunc {
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
		"a page of a proxy": {say(502, "<html>"+strings.Repeat("x", 5000)), meta.ReasonInternalError, "502 Bad Gateway"},
		"a redirect":        {say(302, "", "Location", "https://elsewhere.example"), meta.ReasonInternalError, "302 Found"},
		"no text":           {say(404, ""), meta.ReasonNotFound, "404"},
		"a status":          {say(409, `{"kind":"Status","status":"Failure","reason":"Conflict","message":"no","details":{"causes":[{"field":"a"}]}}`), meta.ReasonConflict, "no"},
		"no reason":         {say(404, `{"kind":"Status","message":"away"}`), meta.ReasonNotFound, "away"},
		"no word for it":    {say(400, ""), meta.ReasonBadRequest, "400"},
		"half a refusal":    {say(503, "{", "Content-Length", "100"), meta.ReasonServiceUnavailable, "503"},
		"a long refusal":    {say(404, strings.Repeat("x", 5<<20)), meta.ReasonNotFound, "404"},
		"no object":         {say(200, `[]`), "", "lamps.example.com"},
		"half an object":    {say(200, `{"spec":`, "Content-Length", "100"), "", "breaks off"},
		"another type":      {say(200, `{"spec":{"watts":"many"}}`), "", "watts"},
		"deep":              {say(200, strings.Repeat(`{"a":`, 100_000)), "", "lamps.example.com"},
		"warnings":          {say(404, "", "Warning", `299 - "be \"careful\""`, "Warning", "299", "Warning", `299 - "`), meta.ReasonNotFound, ""},
		"busy": {func(w http.ResponseWriter, r *http.Request) {
			if tries++; tries < 3 {
				say(429, "", "Retry-After", "0")(w, r)
				return
			}
			say(403, "")(w, r)
		}, meta.ReasonForbidden, "403"},
		"busy for ever": {say(429, "", "Retry-After", "0"), meta.ReasonTooManyRequests, "429"},
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
