package fair

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestPoolShares: one holder gets half, two a third each, and there is always
// some left for the next.
func TestPoolShares(t *testing.T) {
	p := NewPool(1000)
	fill := func(holder string) (n int) {
		for p.Take(holder, 1) {
			n++
		}
		return n
	}
	assert.Equal(t, 500, fill("a"))
	assert.False(t, p.Take("a", 1))
	assert.True(t, p.Take("a", 0))
	assert.Equal(t, 250, fill("b"))
	assert.False(t, p.Take("a", 0), "he has more than is free")
	assert.Equal(t, 125, fill("c"))
	p.Give("a", 200)
	assert.Equal(t, 12, fill("a"))
	assert.Equal(t, 31, fill("b"))
	free := p.free
	assert.True(t, p.Take("d", free), "who has nothing may take all that is free")
	assert.False(t, p.Take("e", 1))
	assert.True(t, p.Take("e", 0), "he has not too much")
	p.Give("d", free)
	p.Give("a", 312)
	p.Give("b", 281)
	p.Give("c", 125)
	p.Give("c", 0)
	assert.EqualValues(t, 1000, p.free)
	assert.Empty(t, p.held)
	assert.True(t, p.Take("a", 1000), "who has nothing may take all")
	assert.False(t, p.Take("b", 1))
}

func TestPoolWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(100)
		var mu sync.Mutex
		var order []string
		var all sync.WaitGroup
		wait := func(holder string, n int64) {
			all.Go(func() {
				if p.Wait(t.Context(), holder, n) == nil {
					mu.Lock()
					order = append(order, fmt.Sprint(holder, n))
					mu.Unlock()
				}
			})
			synctest.Wait()
		}
		require.NoError(t, p.Wait(t.Context(), "a", 50))
		wait("a", 10) // too much for him
		wait("a", 1)  // his claims come in order
		wait("b", 20)
		assert.Equal(t, []string{"b20"}, order, "others pass")
		wait("c", 60) // more than is free
		wait("d", 1)  // comes after, so that c does not starve
		assert.Equal(t, []string{"b20"}, order)

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		assert.ErrorIs(t, p.Wait(ctx, "e", 1), context.DeadlineExceeded)
		p.Give("a", 50)
		synctest.Wait()
		assert.ElementsMatch(t, []string{"b20", "a10", "a1", "c60", "d1"}, order)
		all.Wait()

		// Who gives up makes way.
		p = NewPool(100)
		order = nil
		assert.True(t, p.Take("a", 90))
		ctx, cancel = context.WithCancel(t.Context())
		all.Go(func() { assert.Error(t, p.Wait(ctx, "b", 20)) })
		synctest.Wait()
		wait("c", 5)
		assert.Empty(t, order)
		cancel()
		all.Wait()
		assert.Equal(t, []string{"c5"}, order)
	})
}
