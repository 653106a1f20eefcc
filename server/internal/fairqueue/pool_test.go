package fairqueue

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/server/flowcontrol"
)

// TestPoolShares checks the parts of holders: of three quarters, a single holder gets half and two
// get a third each, and some is left for the next holder.
func TestPoolShares(t *testing.T) {
	p := NewPool(1000)
	parts := map[string][]Part{}
	take := func(holder string, n int64) bool {
		part, ok := p.Acquire(Holder{Name: holder}, n)
		if ok {
			parts[holder] = append(parts[holder], part)
		}
		return ok
	}
	give := func(holder string, n int) {
		for i := range parts[holder][:n] {
			parts[holder][i].Release()
			parts[holder][i].Release() // has no effect
		}
		parts[holder] = parts[holder][n:]
	}
	fill := func(holder string) (n int) {
		for take(holder, 1) {
			n++
		}
		return n
	}
	assert.Equal(t, 375, fill("a"))
	assert.False(t, take("a", 1))
	assert.True(t, take("a", 0))
	assert.Equal(t, 187, fill("b"))
	assert.False(t, take("a", 0), "the holder has more than it may have")
	assert.Equal(t, 94, fill("c"))
	give("a", 200)
	assert.Equal(t, 59, fill("a"))
	assert.Equal(t, 24, fill("b"))
	free := p.free
	assert.True(t, take("d", free), "a first part may be all that is free")
	assert.False(t, take("e", 1))
	assert.True(t, take("e", 0), "the holder has nothing yet")
	for holder, all := range parts {
		give(holder, len(all))
	}
	new(Part).Release()
	assert.EqualValues(t, 1000, p.free)
	assert.Empty(t, p.held)
	assert.True(t, take("a", 5000), "a first part is reduced to the size of the pool")
	assert.False(t, take("b", 1))
	give("a", 1)
	assert.EqualValues(t, 1000, p.free)
}

// TestPoolLeavesRoomForFirstParts checks that many holders which take as much as they can leave
// some for a holder without a part, also within their level.
func TestPoolLeavesRoomForFirstParts(t *testing.T) {
	p := NewPool(1000)
	p.SetLevels([]flowcontrol.PriorityLevel{{Name: "crowd", Shares: 40}, {Name: "other", Shares: 60, Lendable: 50}})
	for user := range 80 {
		_, ok := p.Acquire(Holder{"crowd", fmt.Sprint(user)}, 1)
		assert.True(t, ok, user)
		for ok {
			_, ok = p.Acquire(Holder{"crowd", fmt.Sprint(user)}, 1)
		}
	}
	_, ok := p.Acquire(Holder{"crowd", "bystander"}, 10)
	assert.True(t, ok)

	_, ok = p.Acquire(Holder{"crowd", "huge"}, p.room(Holder{Level: "crowd"}))
	assert.True(t, ok, "a first part may be all the room of the level")
	n := 0
	for ; ok; n++ {
		_, ok = p.Acquire(Holder{"other", "somebody"}, 1)
	}
	assert.Equal(t, 81, n, "the shared part is used up, but the level keeps some")
}

// TestPoolLevels checks that the holders of a level, however many, leave the amount that another
// level keeps, both with Take and with Wait.
func TestPoolLevels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		levels := []flowcontrol.PriorityLevel{
			{Name: "exempt", Exempt: true, Shares: 1000}, {Name: "high", Shares: 30, Lendable: 50}, {Name: "low", Shares: 70, Lendable: 90},
		}
		p := NewPool(1000)
		p.SetLevels(levels)
		var parts []Part
		fill := func(level string) (n int) {
			for user := range 1000 {
				for {
					part, ok := p.Acquire(Holder{level, fmt.Sprint(user)}, 1)
					if !ok {
						break
					}
					parts = append(parts, part)
					n++
				}
			}
			return n
		}
		assert.Equal(t, 850, fill("low"))
		assert.Zero(t, fill("none"))
		late := make(chan Part, 2)
		var all sync.WaitGroup
		wait := func(level string, n int64) {
			all.Go(func() {
				part, err := p.Wait(t.Context(), Holder{level, "late"}, n, n)
				assert.NoError(t, err)
				late <- part
			})
			synctest.Wait()
		}
		wait("low", 1000)
		wait("high", 100)
		assert.Len(t, late, 1, "high does not wait for low")
		high := <-late
		assert.Equal(t, 50, fill("high"))
		for i := range parts {
			parts[i].Release()
		}
		synctest.Wait()
		assert.Len(t, late, 1)
		low := <-late
		assert.EqualValues(t, 850, low.n, "the part is reduced to the maximum of the level")
		assert.EqualValues(t, 0, p.free)
		high.Release()
		low.Release()
		all.Wait()
		assert.EqualValues(t, 780, p.free)
		assert.Empty(t, p.used)

		half := NewPool(1000)
		half.SetLevels([]flowcontrol.PriorityLevel{{Name: "a", Shares: 3}, {Name: "b", Shares: 1}})
		_, ok := half.Acquire(Holder{}, 500)
		assert.True(t, ok, "half of the pool is shared, whatever the levels would keep")
		assert.Equal(t, map[string]int64{"a": 375, "b": 125}, half.kept)
	})
}

// TestPoolSetLevels changes the levels while parts are held.
func TestPoolSetLevels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(1000)
		p.SetLevels([]flowcontrol.PriorityLevel{{Name: "a", Shares: 1}, {Name: "b", Shares: 1}})
		first, ok := p.Acquire(Holder{"a", "1"}, 700)
		require.True(t, ok)
		second, ok := p.Acquire(Holder{"b", "1"}, 200)
		require.True(t, ok)
		late := make(chan Part, 1)
		go func() {
			part, err := p.Wait(t.Context(), Holder{"b", "2"}, 1000, 1000)
			assert.NoError(t, err)
			late <- part
		}()
		synctest.Wait()
		assert.Empty(t, late, "b may have 750, of which 200 are held")

		p.SetLevels([]flowcontrol.PriorityLevel{{Name: "b", Shares: 1}, {Name: "c", Shares: 4}})
		third, ok := p.Acquire(Holder{"c", "1"}, 400)
		assert.True(t, ok, "the kept amount is available at once")
		_, ok = p.Acquire(Holder{"c", "2"}, 1)
		assert.False(t, ok, "no more is available while others hold too much")
		_, ok = p.Acquire(Holder{"a", "2"}, 1)
		assert.False(t, ok, "level a was removed")
		first.Release()
		synctest.Wait()
		assert.Empty(t, late)
		second.Release()
		synctest.Wait()
		require.Len(t, late, 1)
		last := <-late
		assert.EqualValues(t, 600, last.n, "the maximum of b under the new levels")
		p.SetLevels(nil)
		assert.EqualValues(t, 0, p.free)
		third.Release()
		last.Release()
		assert.EqualValues(t, 1000, p.free)
		assert.Empty(t, p.used)
		assert.Empty(t, p.held)
	})
}

// TestPoolConcurrentSetLevels checks the accounting while levels change concurrently with parts.
func TestPoolConcurrentSetLevels(t *testing.T) {
	p := NewPool(100)
	configs := [][]flowcontrol.PriorityLevel{nil, {{Name: "a", Shares: 1}}, {{Name: "b", Shares: 2}, {Name: "c", Shares: 1, Lendable: 50}}, {{Name: "a", Exempt: true}}}
	ctx, cancel := context.WithCancel(t.Context())
	var all, done sync.WaitGroup
	for i := range 8 {
		h := Holder{string(rune('a' + i%4)), fmt.Sprint(i % 6)}
		all.Go(func() {
			for n := range int64(500) {
				if part, ok := p.Acquire(h, n%40); ok {
					part.Release()
				}
				if part, err := p.Wait(t.Context(), h, n%120, n%120); assert.NoError(t, err) {
					ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
					_ = part.Grow(ctx, n%90)
					cancel()
					part.Release()
				}
			}
		})
	}
	done.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			p.SetLevels(configs[i%len(configs)])
		}
	})
	all.Wait()
	cancel()
	done.Wait()
	p.SetLevels(nil)
	assert.EqualValues(t, 100, p.free)
	assert.Empty(t, p.used)
	assert.Empty(t, p.held)
	assert.Empty(t, p.waiting)
}

// TestPoolGrow checks that Wait takes only the first size, but waits for room for the whole, and
// that Grow comes before waiting holders without a part.
func TestPoolGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(100)
		wait := func(holder string, n, whole int64) Part {
			part, err := p.Wait(t.Context(), Holder{Name: holder}, n, whole)
			assert.NoError(t, err)
			return part
		}
		a, b := wait("a", 40, 100), wait("b", 40, 60)
		begun := make(chan Part, 1)
		go func() { begun <- wait("c", 1, 60) }()
		synctest.Wait()
		assert.Empty(t, begun, "the whole would not fit")
		grown := make(chan error, 1)
		go func() { grown <- b.Grow(t.Context(), 70) }()
		synctest.Wait()
		assert.Empty(t, grown)
		a.Release()
		synctest.Wait()
		assert.Len(t, grown, 1)
		assert.NoError(t, <-grown)
		assert.EqualValues(t, 70, b.n)
		assert.Empty(t, begun)
		assert.NoError(t, b.Grow(t.Context(), 5000))
		assert.EqualValues(t, 100, b.n, "the part is reduced to the size of the pool")
		late, cancel := context.WithCancel(t.Context())
		cancel()
		other, ok := p.Acquire(Holder{Name: "d"}, 0)
		assert.True(t, ok)
		assert.ErrorIs(t, other.Grow(late, 1), context.Canceled, "there is no room")
		assert.NoError(t, b.Grow(t.Context(), 50))
		assert.EqualValues(t, 100, b.n, "Grow to a smaller size does not shrink the part")
		b.Release()
		synctest.Wait()
		c := <-begun
		assert.EqualValues(t, 1, c.n)
		c.Release()
		assert.EqualValues(t, 100, p.free)
		assert.Empty(t, p.held)
	})
}

// TestPoolGrowDeadlockIsResolved lets parts that fill the pool wait for each other: some fail and
// are given back, so that others grow.
func TestPoolGrowDeadlockIsResolved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(100)
		parts := make([]Part, 10)
		var all sync.WaitGroup
		for i := range parts {
			var err error
			parts[i], err = p.Wait(t.Context(), Holder{Name: fmt.Sprint(i)}, 10, 10)
			require.NoError(t, err)
		}
		for i := range parts {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if err := parts[i].Grow(ctx, 30); err != nil {
					assert.ErrorIs(t, err, context.DeadlineExceeded)
					assert.False(t, parts[i].Held())
				}
			})
		}
		all.Wait()
		n := 0
		for i := range parts {
			if parts[i].Held() {
				n++
			}
			parts[i].Release()
		}
		assert.Equal(t, 3, n)
		assert.EqualValues(t, 100, p.free)
		assert.Empty(t, p.held)
	})
}

func TestPoolWaitOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(100)
		var mu sync.Mutex
		var order []string
		var all sync.WaitGroup
		wait := func(holder string, n int64) {
			all.Go(func() {
				if _, err := p.Wait(t.Context(), Holder{Name: holder}, n, n); err == nil {
					mu.Lock()
					order = append(order, fmt.Sprint(holder, n))
					mu.Unlock()
				}
			})
			synctest.Wait()
		}
		first, err := p.Wait(t.Context(), Holder{Name: "a"}, 50, 50)
		require.NoError(t, err)
		wait("a", 10) // a would hold too much
		wait("a", 1)  // claims of a holder are served in order
		wait("b", 20)
		assert.Equal(t, []string{"b20"}, order, "other holders do not wait for a")
		wait("c", 60) // more than is free
		wait("d", 1)  // waits for c, so that c is not starved
		assert.Equal(t, []string{"b20"}, order)

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = p.Wait(ctx, Holder{Name: "e"}, 1, 1)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		first.Release()
		synctest.Wait()
		assert.ElementsMatch(t, []string{"b20", "a10", "a1", "c60", "d1"}, order)
		all.Wait()

		// A claim whose context ends makes room for the next.
		p = NewPool(100)
		order = nil
		_, ok := p.Acquire(Holder{Name: "a"}, 90)
		assert.True(t, ok)
		ctx, cancel = context.WithCancel(t.Context())
		all.Go(func() {
			_, err := p.Wait(ctx, Holder{Name: "b"}, 20, 20)
			assert.Error(t, err)
		})
		synctest.Wait()
		wait("c", 5)
		assert.Empty(t, order)
		cancel()
		all.Wait()
		assert.Equal(t, []string{"c5"}, order)
	})
}
