package conversion

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/metrics"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/internal/services"
	"orch.io/controlplane/registry"
)

const review = "apiextensions.k8s.io/v1"

func lamp(version, name string) map[string]any {
	return map[string]any{"apiVersion": "example.com/" + version, "kind": "Lamp", "metadata": map[string]any{
		"name": name, "namespace": "n", "uid": "uid-" + name, "labels": map[string]any{"a": "b"}, "generation": int64(3),
	}, "spec": map[string]any{"lit": true}}
}

func asked(n int) question {
	q := question{review: review, uid: "u", desired: "example.com/v2"}
	for i := range n {
		q.objects = append(q.objects, meta.NewObject(lamp("v1", fmt.Sprint("l", i))))
	}
	return q
}

// answerTo is a good answer, changed.
func answerTo(n int, change func(answer map[string]any, first *meta.Object)) []byte {
	var list []any
	for i := range n {
		list = append(list, lamp("v2", fmt.Sprint("l", i)))
	}
	answer := map[string]any{"kind": "ConversionReview", "apiVersion": review, "response": map[string]any{
		"uid": "u", "result": map[string]any{"status": "Success"}, "convertedObjects": list,
	}}
	if change != nil {
		change(answer, meta.NewObject(list[0].(map[string]any)))
	}
	text, _ := json.Marshal(answer)
	return text
}

// TestLies: each lie of an answer is an error.
func TestLies(t *testing.T) {
	at := func(value any, path ...string) func(map[string]any, *meta.Object) {
		return func(answer map[string]any, _ *meta.Object) { meta.NewObject(answer).Set(value, path...) }
	}
	first := func(value any, path ...string) func(map[string]any, *meta.Object) {
		return func(_ map[string]any, o *meta.Object) { o.Set(value, path...) }
	}
	for name, c := range map[string]struct {
		change func(map[string]any, *meta.Object)
		sort   string
		want   string
	}{
		"other kind":        {at("AdmissionReview", "kind"), malformedFailure, "failed: expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got apiextensions.k8s.io/v1, Kind=AdmissionReview"},
		"other version":     {at("apiextensions.k8s.io/v1beta1", "apiVersion"), malformedFailure, "failed: expected webhook response"},
		"no response":       {at(nil, "response"), malformedFailure, "failed: no response provided"},
		"other uid":         {at("v", "response", "uid"), malformedFailure, `failed: expected response.uid="u", got "v"`},
		"failure":           {at(map[string]any{"status": "Failure", "message": "why"}, "response", "result"), malformedFailure, "failed: why"},
		"silent failure":    {at(map[string]any{}, "response", "result"), malformedFailure, "failed: response.result.status was '', not 'Success'"},
		"none":              {at(nil, "response", "convertedObjects"), partialFailure, "returned 0 objects, expected 2"},
		"no list":           {at("x", "response", "convertedObjects"), malformedFailure, "failed: response.convertedObjects is no list"},
		"fewer":             {at([]any{lamp("v2", "l0")}, "response", "convertedObjects"), partialFailure, "returned 1 objects, expected 2"},
		"more":              {at([]any{1, 2, 3}, "response", "convertedObjects"), partialFailure, "returned 3 objects, expected 2"},
		"no objects":        {at([]any{1, 2}, "response", "convertedObjects"), invalidFailure, "returned invalid converted object at index 0: it is no object"},
		"another order":     {at([]any{lamp("v2", "l1"), lamp("v2", "l0")}, "response", "convertedObjects"), invalidFailure, "at index 0: must have the same name: l0 != l1"},
		"not converted":     {first("example.com/v1", "apiVersion"), invalidFailure, "at index 0: invalid groupVersion (expected example.com/v2, received example.com/v1)"},
		"another kind":      {first("Lump", "kind"), invalidFailure, "at index 0: must have the same kind: Lamp != Lump"},
		"another namespace": {first("m", "metadata", "namespace"), invalidFailure, "must have the same namespace: n != m"},
		"another object":    {first("x", "metadata", "uid"), invalidFailure, "must have the same UID: uid-l0 != x"},
		"labels of none":    {first([]any{"a"}, "metadata", "labels"), invalidFailure, "returned invalid metadata in object at index 0: metadata.labels must be a map of strings"},
		"no text":           {first(map[string]any{"a": 1}, "metadata", "annotations"), invalidFailure, "metadata.annotations must be a map of strings"},
		"bad label":         {first(map[string]any{"a b": "c"}, "metadata", "labels"), invalidFailure, "returned invalid metadata in object at index 0: metadata.labels"},
		"long annotations":  {first(map[string]any{"a": strings.Repeat("x", meta.MaxAnnotations)}, "metadata", "annotations"), invalidFailure, "metadata.annotations"},
	} {
		_, failed := read(answerTo(2, c.change), asked(2))
		require.NotNil(t, failed, name)
		assert.Equal(t, c.sort, failed.sort, name)
		assert.ErrorContains(t, failed.err, c.want, name)
	}
	for _, text := range []string{"", "null", "[]", `{"kind":`, strings.Repeat(`{"a":`, 2000)} {
		_, failed := read([]byte(text), asked(1))
		require.NotNil(t, failed, text)
		assert.Equal(t, malformedFailure, failed.sort)
	}
	_, failed := read([]byte(`{"response":{"result":{"message":"`+strings.Repeat("x", 1<<20)+`"}},"kind":"ConversionReview","apiVersion":"`+review+`"}`), question{review: review})
	assert.Less(t, len(failed.err.Error()), 2*maxWord)
}

// TestWhatAConversionMayChange: of the metadata labels and annotations alone.
func TestWhatAConversionMayChange(t *testing.T) {
	q := asked(2)
	out, failed := read(answerTo(2, func(_ map[string]any, o *meta.Object) {
		o.Set(map[string]any{"c": "d"}, "metadata", "annotations")
		o.Delete("metadata", "labels")
		o.Set(int64(99), "metadata", "generation")
		o.Set([]any{"example.com/f"}, "metadata", "finalizers")
		o.Set(int64(7), "spec", "watt")
	}), q)
	require.Nil(t, failed)
	assert.Equal(t, map[string]any{"name": "l0", "namespace": "n", "uid": "uid-l0", "generation": int64(3), "annotations": map[string]any{"c": "d"}}, out[0].Map("metadata"))
	assert.EqualValues(t, 7, out[0].Int("spec", "watt"))
	assert.Equal(t, map[string]string{"a": "b"}, out[1].Labels())
	assert.Equal(t, lamp("v1", "l0"), q.objects[0].Tree(), "what was sent stays as it is")

	q.review = "apiextensions.k8s.io/v1beta1"
	_, failed = read(answerTo(2, func(answer map[string]any, _ *meta.Object) {
		delete(answer, "kind")
		delete(answer, "apiVersion")
		meta.NewObject(answer).Delete("response", "uid")
	}), q)
	assert.Nil(t, failed, "the old version asks for less")
}

// FuzzRead: whatever a webhook answers, it is refused, or it is the objects that were sent.
func FuzzRead(f *testing.F) {
	f.Add(answerTo(1, nil), false)
	f.Add([]byte(`{"response":{"result":{"status":"Success"},"convertedObjects":[{"metadata":{"labels":{"a":null}}}]}}`), true)
	f.Add([]byte(`[]`), true)
	f.Fuzz(func(t *testing.T, body []byte, old bool) {
		q := asked(1)
		if old {
			q.review += "beta1"
		}
		out, failed := read(body, q)
		if failed != nil {
			assert.Nil(t, out)
			return
		}
		require.Len(t, out, 1)
		assert.Equal(t, q.desired, out[0].APIVersion())
		for _, field := range []string{"name", "namespace", "uid", "generation"} {
			before, _ := q.objects[0].Get("metadata", field)
			now, _ := out[0].Get("metadata", field)
			assert.Equal(t, before, now)
		}
	})
}

// lamps is a type of two versions whose webhook is the handler.
func lamps(t *testing.T, reg *prometheus.Registry, report Report, handler http.HandlerFunc) (*resource.Type, *Webhook) {
	version := func(name string, stored bool) string {
		return fmt.Sprintf(`{"name":%q,"served":true,"storage":%t,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}`, name, stored)
	}
	typ, err := resource.Compile(registry.FromCRD([]byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"lamps.example.com"},
		"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"lamps","kind":"Lamp"},"versions":[`+version("v1", true)+`,`+version("v2", false)+`],
		"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{"service":{"name":"s","namespace":"n"}}}}}}`)), names.Kubernetes)
	require.NoError(t, err)
	services := func(context.Context, services.Service) (services.Endpoint, error) {
		return services.Endpoint{Handler: handler}, nil
	}
	h := New(names.Kubernetes, services, metrics.For(reg), report).Webhook(typ)
	t.Cleanup(h.End)
	return typ, h
}

func unreported(string, string, string, ...any) {}

func echo(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Request struct {
			UID     string
			Objects []map[string]any
		}
	}
	_ = json.NewDecoder(r.Body).Decode(&in)
	for _, o := range in.Request.Objects {
		o["apiVersion"] = "example.com/v2"
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"kind": kindReview, "apiVersion": review, "response": map[string]any{
		"uid": in.Request.UID, "result": map[string]any{"status": "Success"}, "convertedObjects": in.Request.Objects,
	}})
}

// counted returns how many calls ended like this.
func counted(t *testing.T, reg *prometheus.Registry, result, sort string) (n float64) {
	families, err := reg.Gather()
	require.NoError(t, err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if l := m.GetLabel(); f.GetName() == "apiserver_conversion_webhook_request_total" && l[0].GetValue() == sort && l[1].GetValue() == result {
				n += m.GetCounter().GetValue()
			}
		}
	}
	return n
}

func has(t *testing.T, reg *prometheus.Registry, name string) bool {
	families, err := reg.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() == name {
			return true
		}
	}
	return false
}

// TestReviewsAreBounded: in objects and in bytes.
func TestReviewsAreBounded(t *testing.T) {
	reviews, reg := 0, prometheus.NewRegistry()
	typ, h := lamps(t, reg, unreported, func(w http.ResponseWriter, r *http.Request) { reviews++; echo(w, r) })
	small := asked(2*maxObjects + 1).objects
	out, err := h.Convert(t.Context(), small, typ.Version("v2"))
	require.NoError(t, err)
	require.Len(t, out, len(small))
	for i, o := range out {
		require.Equal(t, small[i].Name(), o.Name())
	}
	assert.Equal(t, 3, reviews)
	large := asked(3).objects
	for _, o := range large {
		o.Set(strings.Repeat("x", maxBytes/2), "spec", "text")
	}
	_, err = h.Convert(t.Context(), large, typ.Version("v2"))
	require.NoError(t, err)
	assert.Equal(t, 6, reviews)
	assert.EqualValues(t, 6, counted(t, reg, "success", ""))
	assert.True(t, has(t, reg, "apiserver_crd_conversion_webhook_duration_seconds"))
	h.End()
	assert.False(t, has(t, reg, "apiserver_crd_conversion_webhook_duration_seconds"))
	_, err = h.Convert(t.Context(), small[:1], typ.Version("v2")) // was under way
	require.NoError(t, err)
	assert.False(t, has(t, reg, "apiserver_crd_conversion_webhook_duration_seconds"))
}

// TestCallsThatFail: nobody answers, or not with a review.
func TestCallsThatFail(t *testing.T) {
	for want, handler := range map[string]http.HandlerFunc{
		"answered 503":       func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
		"more than 16777216": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, maxAnswer+1)) },
	} {
		reg := prometheus.NewRegistry()
		reports := 0
		typ, h := lamps(t, reg, func(_, of, _ string, _ ...any) {
			reports++
			assert.Equal(t, "lamps.example.com", of)
		}, handler)
		_, err := h.Convert(t.Context(), asked(1).objects, typ.Version("v2"))
		var told *meta.Status
		require.True(t, errors.As(err, &told), want)
		assert.Equal(t, 500, told.Code)
		assert.Contains(t, told.Message, `conversion webhook for example.com/v1, Kind=Lamp failed: `)
		assert.Contains(t, told.Message, want)
		assert.EqualValues(t, 1, counted(t, reg, "failure", callFailure))
		assert.Equal(t, 1, reports)
	}
}

// TestCallersWhoGoAway: that is no failure of the webhook.
func TestCallersWhoGoAway(t *testing.T) {
	reg := prometheus.NewRegistry()
	ctx, cancel := context.WithCancel(t.Context())
	typ, h := lamps(t, reg, func(what, _, _ string, _ ...any) { t.Error(what) }, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	_, err := h.Convert(ctx, asked(1).objects, typ.Version("v2"))
	assert.Equal(t, context.Canceled, err)
	assert.Zero(t, counted(t, reg, "failure", callFailure))
}
