package cache_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/internal/cache"
)

func TestCacheLimitsSizeAndAge(t *testing.T) {
	now := time.Unix(0, 0)
	c := cache.New[string, int](2, func() time.Time { return now })
	c.Put("a", 1, time.Minute)
	c.Put("b", 2, time.Hour)
	c.Put("no", 3, 0)
	assert.Equal(t, 2, c.Len())
	v, ok := c.Get("a")
	assert.True(t, ok)
	assert.Equal(t, 1, v)
	c.Put("c", 3, time.Hour)
	_, ok = c.Get("b")
	assert.False(t, ok, "a was used more recently")
	now = now.Add(time.Minute)
	_, ok = c.Get("a")
	assert.False(t, ok, "expired")
	_, ok = c.Get("c")
	assert.True(t, ok)
	c.Put("c", 4, time.Hour)
	v, _ = c.Get("c")
	assert.Equal(t, 4, v)
	assert.Equal(t, 1, c.Len())
}
