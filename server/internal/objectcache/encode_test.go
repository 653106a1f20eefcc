package objectcache

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
)

func someEntries(names ...string) (list []*Entry) {
	for _, name := range names {
		list = append(list, NewEntry(meta.Key{Name: name}, 1, []byte(`{}`)))
	}
	return list
}

// TestEncodeIsSharedByConcurrentCallers: concurrent callers share the encodings that a call of make returns.
func TestEncodeIsSharedByConcurrentCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, key := someEntries("a", "b", "c"), EncodingKey{Version: "v"}
		all[0].KeepEncoded(key, []byte("kept"))
		var made atomic.Int64
		release := make(chan struct{})
		produce := func(some []*Entry) (texts [][]byte, err error) {
			<-release
			for _, e := range some {
				made.Add(1)
				texts = append(texts, []byte(e.Key().Name))
			}
			return texts, nil
		}
		var callers sync.WaitGroup
		for _, entries := range [][]*Entry{{all[0], all[1], all[1]}, {all[2], all[1]}, {all[1], all[2]}} {
			callers.Go(func() {
				texts, err := Encode(t.Context(), entries, key, produce)
				require.NoError(t, err)
				for i, e := range entries {
					want := e.Key().Name
					if e == all[0] {
						want = "kept"
					}
					assert.Equal(t, want, string(texts[i]))
				}
			})
		}
		synctest.Wait()
		close(release)
		callers.Wait()
		assert.EqualValues(t, 2, made.Load(), "each batch is made once")
	})
}

// TestEncodeSharesErrors: all callers that wait get the error, unless it is caused by the end of the context of the
// caller of make. After a panic, no caller keeps waiting.
func TestEncodeSharesErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, key := someEntries("a"), EncodingKey{Version: "v"}
		broken := errors.New("broken")
		for _, gone := range []bool{false, true} {
			first, leave := context.WithCancel(t.Context())
			release := make(chan struct{})
			var runs atomic.Int64
			produce := func([]*Entry) ([][]byte, error) {
				if runs.Add(1) == 1 {
					<-release
					return nil, broken
				}
				return [][]byte{[]byte("made")}, nil
			}
			var callers sync.WaitGroup
			callers.Go(func() {
				_, err := Encode(first, all, key, produce)
				assert.ErrorIs(t, err, broken)
			})
			synctest.Wait()
			callers.Go(func() {
				texts, err := Encode(t.Context(), all, key, produce)
				if gone {
					require.NoError(t, err)
					assert.Equal(t, "made", string(texts[0]))
				} else {
					assert.ErrorIs(t, err, broken)
				}
			})
			impatient, cancel := context.WithCancel(t.Context())
			callers.Go(func() {
				_, err := Encode(impatient, all, key, produce)
				assert.ErrorIs(t, err, context.Canceled)
			})
			synctest.Wait()
			cancel()
			synctest.Wait()
			if gone {
				leave()
			}
			close(release)
			callers.Wait()
			leave()
		}
		other := someEntries("p")
		assert.Panics(t, func() { _, _ = Encode(t.Context(), other, key, func([]*Entry) ([][]byte, error) { panic("p") }) })
		texts, err := Encode(t.Context(), other, key, func([]*Entry) ([][]byte, error) { return [][]byte{[]byte("x")}, nil })
		require.NoError(t, err)
		assert.Equal(t, "x", string(texts[0]))
	})
}

// TestEncodeKeepsFinishedBatches: encodings of finished batches are kept if a later batch fails.
func TestEncodeKeepsFinishedBatches(t *testing.T) {
	var all []*Entry
	for i := range 2*batchEntries + 1 {
		all = append(all, NewEntry(meta.Key{Name: fmt.Sprint(i)}, 1, []byte(`{}`)))
	}
	for _, name := range []string{"x", "y"} {
		all = append(all, NewEntry(meta.Key{Name: name}, 1, make([]byte, batchBytes)))
	}
	key, broken := EncodingKey{Version: "v"}, errors.New("broken")
	var times []int
	produce := func(some []*Entry) (texts [][]byte, err error) {
		times = append(times, len(some))
		if len(times) == 2 {
			return nil, broken
		}
		for _, e := range some {
			texts = append(texts, []byte(e.Key().Name))
		}
		return texts, nil
	}
	_, err := Encode(t.Context(), all, key, produce)
	assert.ErrorIs(t, err, broken)
	texts, err := Encode(t.Context(), all, key, produce)
	require.NoError(t, err)
	for i, e := range all {
		require.Equal(t, e.Key().Name, string(texts[i]))
	}
	assert.Equal(t, []int{batchEntries, batchEntries, batchEntries, 1, 1, 1}, times)
}

// TestEncodeErrorOfOtherEntry: an error that is caused by an entry does not fail callers that want only other
// entries.
func TestEncodeErrorOfOtherEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, key := someEntries("good", "bad"), EncodingKey{Version: "v"}
		broken, release := errors.New("broken"), make(chan struct{})
		var callers sync.WaitGroup
		callers.Go(func() {
			_, err := Encode(t.Context(), all, key, func([]*Entry) ([][]byte, error) { <-release; return nil, broken })
			assert.ErrorIs(t, err, broken)
		})
		synctest.Wait()
		callers.Go(func() {
			texts, err := Encode(t.Context(), all[:1], key, func([]*Entry) ([][]byte, error) { return [][]byte{[]byte("made")}, nil })
			if assert.NoError(t, err) {
				assert.Equal(t, "made", string(texts[0]))
			}
		})
		synctest.Wait()
		close(release)
		callers.Wait()
	})
}
