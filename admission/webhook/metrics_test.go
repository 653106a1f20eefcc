package webhook_test

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
)

// page returns the lines of /metrics that contain a word.
func (k *kit) page(word string) (lines []string) {
	k.t.Helper()
	response, err := k.Client().Get(k.Host() + "/metrics")
	require.NoError(k.t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(k.t, err)
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); strings.Contains(line, word) && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return lines
}

// TestWebhookTimeOfCollectionDelete checks that the time that concurrent deletions of a request wait for a
// webhook is not counted more than once.
func TestWebhookTimeOfCollectionDelete(t *testing.T) {
	const all = 16
	var there sync.WaitGroup
	there.Add(all)
	k := newKit(t)
	h := k.serve(func(w http.ResponseWriter, review *meta.Object) {
		if there.Done(); review.String("request", "operation") == "DELETE" {
			there.Wait()
			time.Sleep(20 * time.Millisecond)
		}
		respond(w, review, "allowed: true")
	})
	for i := range all {
		code, answer := k.do("POST configmaps", fmt.Sprintf("metadata: {name: a%d}", i))
		require.Equal(t, 201, code, answer.String("message"))
	}
	k.register("validating", "v", h, "rules: [{operations: [DELETE], apiGroups: [''], apiVersions: ['*'], resources: [configmaps]}]")
	code, answer := k.do("DELETE configmaps", "")
	require.Equal(t, 200, code, answer.String("message"))
	var sums []float64
	for _, line := range k.page("apiserver_request_sli_duration_seconds_sum") {
		if strings.Contains(line, `resource="configmaps"`) && strings.Contains(line, `verb="DELETE"`) {
			_, number, _ := strings.Cut(line, "} ")
			n, err := strconv.ParseFloat(number, 64)
			require.NoError(t, err)
			sums = append(sums, n)
		}
	}
	require.Len(t, sums, 1)
	assert.GreaterOrEqual(t, sums[0], 0.0)
}

// TestSeriesOfDeletedWebhooks checks that the series of a webhook are deleted with its configuration, even if
// it is being called, unless another configuration has a webhook of that name.
func TestSeriesOfDeletedWebhooks(t *testing.T) {
	k := newKit(t)
	h := k.serve(says("allowed: true"))
	entered, leave := make(chan struct{}), make(chan struct{})
	slow := k.serve(func(w http.ResponseWriter, review *meta.Object) {
		close(entered)
		<-leave
		respond(w, review, "allowed: true")
	})
	const conditions = "matchConditions: [{name: c, expression: \"object.metadata.name != 'other'\"}]\n"
	for i := range 5 {
		for _, sort := range []string{"mutating", "validating"} {
			k.register(sort, "gone", h, fmt.Sprintf("%sname: w%d.gone.example.com", conditions, i), "{name: both.example.com}")
			k.register(sort, "kept", h, "{name: both.example.com}")
		}
		code, answer := k.do("POST configmaps", fmt.Sprintf("metadata: {name: a%d}", i))
		require.Equal(t, 201, code, answer.String("message"))
		code, _ = k.do("POST configmaps?dryRun=All", "metadata: {name: other}")
		require.Equal(t, 201, code)
		assert.NotEmpty(t, k.page("gone.example.com"))
		for _, sort := range []string{"mutating", "validating"} {
			k.unregister(sort, "gone")
		}
		assert.Empty(t, k.page("gone.example.com"))
		assert.NotEmpty(t, k.page("both.example.com"))
		for _, sort := range []string{"mutating", "validating"} {
			k.unregister(sort, "kept")
		}
		assert.Empty(t, k.page("both.example.com"))
	}
	k.register("validating", "slow", slow, "{name: w.gone.example.com}")
	done := make(chan int)
	go func() {
		code, _ := k.do("POST configmaps", "metadata: {name: b}")
		done <- code
	}()
	<-entered
	k.unregister("validating", "slow")
	assert.Empty(t, k.page("gone.example.com"))
	close(leave)
	assert.Equal(t, 201, <-done)
	assert.Empty(t, k.page("gone.example.com"))
}

// TestMatchConditionMetrics checks the durations, exclusions and errors of match conditions.
func TestMatchConditionMetrics(t *testing.T) {
	k := newKit(t)
	h := k.serve(says("allowed: true"))
	const condition = "matchConditions: [{name: c, expression: %q}]\n"
	k.register("mutating", "m", h, fmt.Sprintf(condition, "object.metadata.name == 'a'"), "")
	k.register("validating", "v", h, "failurePolicy: Ignore\n"+fmt.Sprintf(condition, "object.data.no == 'a'"))
	for _, name := range []string{"a", "b"} {
		code, answer := k.do("POST configmaps", "{metadata: {name: "+name+"}, data: {a: b}}")
		require.Equal(t, 201, code, answer.String("message"))
	}
	got := map[string]string{}
	pattern := regexp.MustCompile(`^apiserver_admission_match_condition_(\w+)\{kind="webhook",name="([^"]*)",operation="CREATE",type="(\w+)"\} (\d+)$`)
	for _, line := range k.page("match_condition") {
		if m := pattern.FindStringSubmatch(line); m != nil {
			got[m[1]+" "+m[2]+" "+m[3]] = m[4]
		}
	}
	for name := range got {
		if strings.HasPrefix(name, "evaluation_seconds_sum") {
			delete(got, name)
		}
	}
	assert.Equal(t, map[string]string{
		"evaluation_seconds_count wa.m.example.com admit": "2", "exclusions_total wa.m.example.com admit": "1",
		"evaluation_seconds_count wa.v.example.com validating": "2", "evaluation_errors_total wa.v.example.com validating": "2",
	}, got)
}
