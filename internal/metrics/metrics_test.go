package metrics_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/internal/metrics"
	"orch.io/controlplane/internal/release"
)

// page returns the scrape of a registry, without the families that count families.
func page(reg *prometheus.Registry) string {
	w := httptest.NewRecorder()
	promhttp.HandlerFor(reg, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	var lines []string
	for line := range strings.Lines(w.Body.String()) {
		if !strings.Contains(line, "_metrics_total") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// TestDeprecatedFamilyIsHidden checks in which releases a family of each stability is shown, shown
// as deprecated, or hidden.
func TestDeprecatedFamilyIsHidden(t *testing.T) {
	const deprecated, shown, hidden = " (Deprecated since 1.30.0)", "", "-"
	for _, c := range []struct {
		class     metrics.Stability
		release   string
		show      bool
		want      string // of the help text
		announced bool
	}{
		{metrics.Stable, "1.29", false, shown, false},
		{metrics.Stable, "1.30", false, deprecated, true},
		{metrics.Stable, "1.32", false, deprecated, true},
		{metrics.Stable, "1.33", false, hidden, false},
		{metrics.Stable, "1.33", true, deprecated, true},
		{metrics.Stable, "1.36", true, deprecated, true},
		{metrics.Beta, "1.30", false, deprecated, true},
		{metrics.Beta, "1.31", false, hidden, false},
		{metrics.Alpha, "1.29", false, shown, false},
		{metrics.Alpha, "1.30", false, hidden, false},
		{metrics.Alpha, "1.30", true, deprecated, true},
		{metrics.Alpha, "1.29", false, shown, false},
	} {
		reg := prometheus.NewRegistry()
		at, err := release.Parse(c.release)
		require.NoError(t, err)
		r, err := metrics.NewRegistry(reg, at, c.show)
		require.NoError(t, err)
		set := metrics.For(r)
		set.Counters(metrics.Family{Name: "calls_total", Help: "Calls.", Stability: c.class, Deprecated: 30}).WithLabelValues().Inc()
		require.NoError(t, set.Err())
		want := fmt.Sprintf("# HELP calls_total [%s]%s Calls.\n# TYPE calls_total counter\ncalls_total 1\n", c.class, c.want)
		if c.want == hidden {
			want = ""
		}
		assert.Equal(t, want, page(reg), "%+v", c)
		assert.Equal(t, c.announced, len(r.Deprecated()) == 1, "%+v", c)
	}
}

// TestCheckShowAcceptsPreviousRelease checks that hidden families can be shown only for the
// previous release.
func TestCheckShowAcceptsPreviousRelease(t *testing.T) {
	for show, ok := range map[string]bool{"": true, "1.36": true, "v1.36": true, "1.37": false, "1.35": false, "1.36.0": false, "35": false, "all": false, "0.35": false} {
		err := metrics.CheckShow(release.Newest, show)
		if ok {
			assert.NoError(t, err, show)
		} else {
			assert.ErrorContains(t, err, "only for version 1.36", show)
		}
	}
}

// TestSetsShareFamilies checks that two Sets share a family, that another type of the same name is
// an error, and that Close unregisters everything.
func TestSetsShareFamilies(t *testing.T) {
	reg := prometheus.NewRegistry()
	r, err := metrics.NewRegistry(reg, release.Newest, false)
	require.NoError(t, err)
	family := metrics.Family{Name: "calls_total", Help: "Calls.", Labels: []string{"of"}}
	for range 2 {
		set := metrics.For(r)
		set.Counters(family).WithLabelValues("a").Inc()
		require.NoError(t, set.Err())
	}
	assert.Contains(t, page(reg), "calls_total{of=\"a\"} 2\n")
	set := metrics.For(r)
	set.Gauges(family).WithLabelValues("a").Set(7)
	assert.ErrorContains(t, set.Err(), "metric calls_total")

	set = metrics.For(r)
	set.Read(metrics.Family{Name: "now", Help: "Now.", Labels: []string{"of"}}, prometheus.GaugeValue, func(emit func(float64, ...string)) {
		emit(3, "x")
		emit(4, "y")
	})
	require.NoError(t, set.Err())
	assert.Contains(t, page(reg), "now{of=\"x\"} 3\nnow{of=\"y\"} 4\n")
	r.Close()
	assert.Empty(t, page(reg))
	_, err = metrics.NewRegistry(reg, release.Newest, false)
	assert.NoError(t, err, "the registry can be used again")
}

// TestSetWithoutRegistry checks that families work without a registerer.
func TestSetWithoutRegistry(t *testing.T) {
	set := metrics.For(nil)
	set.Counters(metrics.Family{Name: "a", Help: "A."}).WithLabelValues().Inc()
	set.Histograms(metrics.Family{Name: "a", Help: "A."}).WithLabelValues().Observe(1)
	assert.NoError(t, set.Err())
}

// TestKeptMakesHandleOncePerChange checks that concurrent calls make a handle once, and that a
// change clears the cache.
func TestKeptMakesHandleOncePerChange(t *testing.T) {
	var k metrics.HandleCache[string, *int]
	made, forgot := 0, 0 // guarded by the lock of k
	get := func(number int64) *int {
		return k.Get(number, "a", func() *int { made++; return new(int) }, func() { forgot++ })
	}
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() { get(1) })
	}
	all.Wait()
	assert.Equal(t, 1, made)
	first := get(1)
	assert.NotSame(t, first, get(2))
	assert.Same(t, get(2), get(1), "an older number does not clear the cache")
	assert.Equal(t, 2, made)
	assert.Equal(t, 2, forgot, "at the first change, too")
}

// TestOutsideCountsConcurrentTimeOnce checks that the time of concurrent parts of a request does
// not exceed the time that passed.
func TestOutsideCountsConcurrentTimeOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o metrics.Outside
		ctx := metrics.WithOutside(t.Context(), &o)
		var all sync.WaitGroup
		for i := range 10 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * time.Second)
				defer metrics.LeaveOutside(ctx)()
				time.Sleep(2 * time.Second)
			})
		}
		all.Wait()
		assert.Equal(t, 11*time.Second, o.Spent())
		time.Sleep(time.Hour)
		back := metrics.LeaveOutside(ctx)
		time.Sleep(time.Second)
		back()
		o.Add(time.Second)
		assert.Equal(t, 13*time.Second, o.Spent())
		metrics.LeaveOutside(context.Background())()
	})
}
