package plugins

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/cache"
	"orch.io/controlplane/internal/wellknown"
)

// The bounds of a limit.
const (
	maxRate         = 1_000_000 // events, or events a second
	maxBuckets      = 1_000_000
	defaultBuckets  = 4096
	spareBucketTime = time.Second // how long a bucket is kept after it is full again
)

// eventLimits is the configuration of EventRateLimit.
type eventLimits struct {
	Limits []eventLimit `json:"limits"`
}

// eventLimit is a limit of the rate of event writes: for the whole server, or for each namespace, user, or source
// and object.
type eventLimit struct {
	Type      string `json:"type"`
	QPS       int    `json:"qps"`
	Burst     int    `json:"burst"`
	CacheSize int    `json:"cacheSize,omitempty"` // maximum number of buckets; the least recently used are dropped; 0: defaultBuckets
}

// eventRateLimit refuses events above the configured rates. A request takes a token of each limit; if a limit refuses
// it, the tokens of the other limits are returned. Retries of a write (Request.Attempt > 0) take no tokens. If another
// plugin refused an attempt and the server retries the write, the retry takes tokens again, because Attempt does not
// count refused attempts.
func eventRateLimit() admission.Plugin {
	return admission.Plugin{
		Name: "EventRateLimit", Default: admission.Off,
		Rules:       on("", []string{"events"}, admission.Create, admission.Update),
		Config:      eventLimits{},
		ConfigKinds: []meta.GroupVersionKind{{Group: wellknown.GroupEventRate, Version: "v1alpha1", Kind: "Configuration"}},
		Setup: func(p *admission.Plugin, env admission.PluginContext) error {
			config := env.Config.(eventLimits)
			if err := config.check(); err != nil {
				return err
			}
			limits := make([]*eventBuckets, len(config.Limits))
			for i, limit := range config.Limits {
				limits[i] = newEventBuckets(limit, time.Now)
			}
			p.Validate = func(_ context.Context, r *admission.Request) error {
				if r.DryRun || r.Attempt > 0 {
					return nil
				}
				var full []string
				var taken []func()
				for _, limit := range limits {
					give, ok := limit.take(r)
					if !ok {
						full = append(full, fmt.Sprintf("limit reached on type %s for key %s", limit.Type, limit.key(r)))
						continue
					}
					taken = append(taken, give)
				}
				if err := refusal(full); err != nil {
					for _, give := range taken {
						give()
					}
					return meta.Failure(http.StatusTooManyRequests, meta.ReasonTooManyRequests, "%s", err)
				}
				return nil
			}
			return nil
		},
	}
}

func (c *eventLimits) check() error {
	var faults []string
	bound := func(at, field string, n, least, most int) {
		if n < least || n > most {
			faults = append(faults, fmt.Sprintf("%s.%s: %d must be between %d and %d", at, field, n, least, most))
		}
	}
	if len(c.Limits) == 0 {
		faults = append(faults, "limits: at least one is required")
	}
	for i, limit := range c.Limits {
		at := fmt.Sprintf("limits[%d]", i)
		if keyOf[limit.Type] == nil {
			faults = append(faults, fmt.Sprintf("%s.type: %q must be Server, Namespace, User or SourceAndObject", at, limit.Type))
		}
		bound(at, "qps", limit.QPS, 1, maxRate)
		bound(at, "burst", limit.Burst, 1, maxRate)
		bound(at, "cacheSize", limit.CacheSize, 0, maxBuckets)
	}
	return refusal(faults)
}

// maxKeyLength is the maximum length in bytes of a bucket key; longer keys are hashed.
const maxKeyLength = 512

// keyOf returns, by the type of a limit, the key of the bucket that an event belongs to.
var keyOf = map[string]func(r *admission.Request) string{
	"Server":    func(*admission.Request) string { return "" },
	"Namespace": func(r *admission.Request) string { return r.Namespace },
	"User":      func(r *admission.Request) string { return r.User.Name },
	"SourceAndObject": func(r *admission.Request) string {
		e, key := r.Object, []string{}
		for _, field := range []string{"component", "host"} {
			key = append(key, e.String("source", field))
		}
		key = append(key, e.String("reportingComponent"), e.String("reportingInstance"))
		for _, field := range []string{"kind", "namespace", "name", "uid", "apiVersion"} {
			key = append(key, e.String("involvedObject", field))
		}
		text := strings.Join(key, "/")
		if len(text) > maxKeyLength { // callers control the length of these fields
			sum := sha256.Sum256([]byte(text))
			return hex.EncodeToString(sum[:])
		}
		return text
	},
}

// eventBuckets are the token buckets of a limit. A bucket that was not used until it is full again is dropped,
// because a new bucket is full, too.
type eventBuckets struct {
	eventLimit
	key func(r *admission.Request) string
	now func() time.Time

	mu      sync.Mutex // guards buckets and their contents
	buckets *cache.Cache[string, *bucket]
}

type bucket struct {
	tokens float64
	at     time.Time // when tokens was computed
}

func newEventBuckets(limit eventLimit, now func() time.Time) *eventBuckets {
	size := cmp.Or(limit.CacheSize, defaultBuckets)
	return &eventBuckets{eventLimit: limit, key: keyOf[limit.Type], now: now, buckets: cache.New[string, *bucket](size, now)}
}

// take takes a token for a request. give returns it. If ok is false, the bucket is empty.
func (b *eventBuckets) take(r *admission.Request) (give func(), ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key, now := b.key(r), b.now()
	entry, ok := b.buckets.Get(key)
	if !ok {
		entry = &bucket{tokens: float64(b.Burst), at: now}
	}
	entry.tokens = min(entry.tokens+now.Sub(entry.at).Seconds()*float64(b.QPS), float64(b.Burst))
	entry.at = now
	if entry.tokens < 1 {
		return nil, false
	}
	entry.tokens--
	b.buckets.Put(key, entry, spareBucketTime+time.Duration(float64(b.Burst)/float64(b.QPS)*float64(time.Second)))
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		entry.tokens = min(entry.tokens+1, float64(b.Burst))
	}, true
}
