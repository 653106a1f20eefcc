package plugins_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/admission/plugins"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
)

// BenchmarkCreateWithDefaultSet measures a create over HTTP with the default plugins, and compares it to a
// server without plugins. The two alternate.
func BenchmarkCreateWithDefaultSet(b *testing.B) {
	var none []string
	for _, p := range plugins.Table() {
		if p.Default != admission.Required {
			none = append(none, p.Name)
		}
	}
	bodies := map[string]string{
		"configmaps": `{"metadata":{"name":"n%d"},"data":{"k":"v"}}`,
		"pods":       `{"metadata":{"name":"n%d"},"spec":{"containers":[{"name":"c","image":"i:1"}]}}`,
	}
	for resource, body := range bodies {
		b.Run(resource, func(b *testing.B) {
			var took [2]time.Duration
			var urls [2]string
			for i, disable := range [][]string{nil, none} {
				s := servertest.New(b, func(b *server.Builder) { b.AdmissionOptions = admission.Options{Disable: disable} })
				_, err := s.Objects().Create(b.Context(), meta.GroupResource{Resource: "serviceaccounts"}, meta.NewObject(map[string]any{
					"metadata": map[string]any{"name": "default", "namespace": "default"},
				}))
				if !meta.IsAlreadyExists(err) {
					require.NoError(b, err)
				}
				front := httptest.NewServer(s)
				b.Cleanup(front.Close)
				urls[i] = front.URL + "/api/v1/namespaces/default/" + resource
			}
			const turn = 50
			b.ResetTimer()
			for done := 0; done < b.N; done += turn {
				for i := range urls {
					if done/turn%2 == 1 { // swap the order: background work of the first server slows the second
						i = 1 - i
					}
					begun := time.Now()
					for n := range min(turn, b.N-done) {
						send(b, urls[i], fmt.Sprintf(body, done+n))
					}
					took[i] += time.Since(begun)
				}
			}
			b.ReportMetric(float64(took[0])/float64(took[1]), "of-none")
			b.ReportMetric(float64(took[0].Microseconds())/float64(b.N), "µs/create")
		})
	}
}

func send(b *testing.B, url, body string) {
	answer, err := http.Post(url, "application/json", strings.NewReader(body))
	require.NoError(b, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(b, err)
	require.Equal(b, http.StatusCreated, answer.StatusCode, "%s", text)
}
