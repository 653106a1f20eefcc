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

// newRequest returns a request to convert n lamps.
func newRequest(n int) request {
	q := request{reviewVersion: review, uid: "u", desired: "example.com/v2"}
	for i := range n {
		q.objects = append(q.objects, meta.NewObject(lamp("v1", fmt.Sprint("l", i))))
	}
	return q
}

// newResponse returns a valid response, after changes.
func newResponse(n int, change func(answer map[string]any, first *meta.Object)) []byte {
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

// TestInvalidResponses checks the errors for responses that do not match the request.
func TestInvalidResponses(t *testing.T) {
	at := func(value any, path ...string) func(map[string]any, *meta.Object) {
		return func(answer map[string]any, _ *meta.Object) { meta.NewObject(answer).Set(value, path...) }
	}
	first := func(value any, path ...string) func(map[string]any, *meta.Object) {
		return func(_ map[string]any, o *meta.Object) { o.Set(value, path...) }
	}
	for name, c := range map[string]struct {
		change func(map[string]any, *meta.Object)
		kind   string
		want   string
	}{
		"other kind":        {at("AdmissionReview", "kind"), malformedFailure, "failed: expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got apiextensions.k8s.io/v1, Kind=AdmissionReview"},
		"other version":     {at("apiextensions.k8s.io/v1beta1", "apiVersion"), malformedFailure, "failed: expected webhook response"},
		"no response":       {at(nil, "response"), malformedFailure, "failed: no response provided"},
		"other uid":         {at("v", "response", "uid"), malformedFailure, `failed: expected response.uid="u", got "v"`},
		"failure":           {at(map[string]any{"status": "Failure", "message": "why"}, "response", "result"), malformedFailure, "failed: why"},
		"silent failure":    {at(map[string]any{}, "response", "result"), malformedFailure, "failed: response.result.status was '', not 'Success'"},
		"none":              {at(nil, "response", "convertedObjects"), partialFailure, "returned 0 objects, expected 2"},
		"no list":           {at("x", "response", "convertedObjects"), malformedFailure, "failed: response.convertedObjects is not a list"},
		"fewer":             {at([]any{lamp("v2", "l0")}, "response", "convertedObjects"), partialFailure, "returned 1 objects, expected 2"},
		"more":              {at([]any{1, 2, 3}, "response", "convertedObjects"), partialFailure, "returned 3 objects, expected 2"},
		"no objects":        {at([]any{1, 2}, "response", "convertedObjects"), invalidFailure, "returned invalid converted object at index 0: it is not an object"},
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
		_, failed := parseReview(newResponse(2, c.change), newRequest(2))
		require.NotNil(t, failed, name)
		assert.Equal(t, c.kind, failed.kind, name)
		assert.ErrorContains(t, failed.err, c.want, name)
	}
	for _, text := range []string{"", "null", "[]", `{"kind":`, strings.Repeat(`{"a":`, 2000)} {
		_, failed := parseReview([]byte(text), newRequest(1))
		require.NotNil(t, failed, text)
		assert.Equal(t, malformedFailure, failed.kind)
	}
	_, failed := parseReview([]byte(`{"response":{"result":{"message":"`+strings.Repeat("x", 1<<20)+`"}},"kind":"ConversionReview","apiVersion":"`+review+`"}`), request{reviewVersion: review})
	assert.Less(t, len(failed.err.Error()), 2*maxWord)
}

// TestConversionMayChangeOnlyLabelsAndAnnotations checks which metadata of a response is used.
func TestConversionMayChangeOnlyLabelsAndAnnotations(t *testing.T) {
	q := newRequest(2)
	out, failed := parseReview(newResponse(2, func(_ map[string]any, o *meta.Object) {
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
	assert.Equal(t, lamp("v1", "l0"), q.objects[0].Tree(), "the request's objects are not modified")

	q.reviewVersion = "apiextensions.k8s.io/v1beta1"
	_, failed = parseReview(newResponse(2, func(answer map[string]any, _ *meta.Object) {
		delete(answer, "kind")
		delete(answer, "apiVersion")
		meta.NewObject(answer).Delete("response", "uid")
	}), q)
	assert.Nil(t, failed, "v1beta1 has fewer required fields")
}

// FuzzParseReview checks that a response is either refused or has the objects of the request.
func FuzzParseReview(f *testing.F) {
	f.Add(newResponse(1, nil), false)
	f.Add([]byte(`{"response":{"result":{"status":"Success"},"convertedObjects":[{"metadata":{"labels":{"a":null}}}]}}`), true)
	f.Add([]byte(`[]`), true)
	f.Fuzz(func(t *testing.T, body []byte, old bool) {
		q := newRequest(1)
		if old {
			q.reviewVersion += "beta1"
		}
		out, failed := parseReview(body, q)
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

// lamps returns a type with two versions whose webhook is the handler.
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
	t.Cleanup(h.Close)
	return typ, h
}

func discardReport(string, string, string, ...any) {}

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

// countCalls returns the number of calls with a result and failure type.
func countCalls(t *testing.T, reg *prometheus.Registry, result, kind string) (n float64) {
	families, err := reg.Gather()
	require.NoError(t, err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if l := m.GetLabel(); f.GetName() == "apiserver_conversion_webhook_request_total" && l[0].GetValue() == kind && l[1].GetValue() == result {
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

// TestReviewsAreBounded checks the bounds of a review in objects and bytes.
func TestReviewsAreBounded(t *testing.T) {
	reviews, reg := 0, prometheus.NewRegistry()
	typ, h := lamps(t, reg, discardReport, func(w http.ResponseWriter, r *http.Request) { reviews++; echo(w, r) })
	small := newRequest(2*maxObjects + 1).objects
	out, err := h.Convert(t.Context(), small, typ.Version("v2"))
	require.NoError(t, err)
	require.Len(t, out, len(small))
	for i, o := range out {
		require.Equal(t, small[i].Name(), o.Name())
	}
	assert.Equal(t, 3, reviews)
	large := newRequest(3).objects
	for _, o := range large {
		o.Set(strings.Repeat("x", maxBytes/2), "spec", "text")
	}
	_, err = h.Convert(t.Context(), large, typ.Version("v2"))
	require.NoError(t, err)
	assert.Equal(t, 6, reviews)
	assert.EqualValues(t, 6, countCalls(t, reg, "success", ""))
	assert.True(t, has(t, reg, "apiserver_crd_conversion_webhook_duration_seconds"))
	h.Close()
	assert.False(t, has(t, reg, "apiserver_crd_conversion_webhook_duration_seconds"))
	_, err = h.Convert(t.Context(), small[:1], typ.Version("v2")) // a conversion in progress during End
	require.NoError(t, err)
	assert.False(t, has(t, reg, "apiserver_crd_conversion_webhook_duration_seconds"))
}

// TestFailedCalls calls webhooks that return errors or invalid responses.
func TestFailedCalls(t *testing.T) {
	for want, handler := range map[string]http.HandlerFunc{
		"answered 503":       func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
		"more than 16777216": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, maxResponse+1)) },
	} {
		reg := prometheus.NewRegistry()
		reports := 0
		typ, h := lamps(t, reg, func(_, of, _ string, _ ...any) {
			reports++
			assert.Equal(t, "lamps.example.com", of)
		}, handler)
		_, err := h.Convert(t.Context(), newRequest(1).objects, typ.Version("v2"))
		var status *meta.Status
		require.True(t, errors.As(err, &status), want)
		assert.Equal(t, 500, status.Code)
		assert.Contains(t, status.Message, `conversion webhook for example.com/v1, Kind=Lamp failed: `)
		assert.Contains(t, status.Message, want)
		assert.EqualValues(t, 1, countCalls(t, reg, "failure", callFailure))
		assert.Equal(t, 1, reports)
	}
}

// TestCancelledConversionIsNotAFailure checks that the end of the context does not count as a
// failure of the webhook.
func TestCancelledConversionIsNotAFailure(t *testing.T) {
	reg := prometheus.NewRegistry()
	ctx, cancel := context.WithCancel(t.Context())
	typ, h := lamps(t, reg, func(what, _, _ string, _ ...any) { t.Error(what) }, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	_, err := h.Convert(ctx, newRequest(1).objects, typ.Version("v2"))
	assert.Equal(t, context.Canceled, err)
	assert.Zero(t, countCalls(t, reg, "failure", callFailure))
}
