package storagetest_test

import (
	"context"
	"errors"
	"iter"
	"os"
	"os/exec"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
	"orch.io/controlplane/storage/storagetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// breakEnv makes TestKit run the kit against a broken store.
const breakEnv = "STORAGETEST_BREAK"

// broken is a store in which one method may be replaced.
type broken struct {
	storage.Backend
	get      func(ctx context.Context, key string, at storage.Revision) (storage.Record, error)
	commit   func(ctx context.Context, ws ...storage.Write) (storage.Revision, error)
	revision func(ctx context.Context) (storage.Revision, error)
	watch    func(ctx context.Context, prefix string, after storage.Revision, yield func([]storage.Event, error) bool)
}

func (b *broken) Get(ctx context.Context, key string, at storage.Revision) (storage.Record, error) {
	if b.get != nil {
		return b.get(ctx, key, at)
	}
	return b.Backend.Get(ctx, key, at)
}

func (b *broken) Commit(ctx context.Context, ws ...storage.Write) (storage.Revision, error) {
	if b.commit != nil {
		return b.commit(ctx, ws...)
	}
	return b.Backend.Commit(ctx, ws...)
}

func (b *broken) Revision(ctx context.Context) (storage.Revision, error) {
	if b.revision != nil {
		return b.revision(ctx)
	}
	return b.Backend.Revision(ctx)
}

func (b *broken) Watch(ctx context.Context, prefix string, after storage.Revision) iter.Seq2[[]storage.Event, error] {
	if b.watch != nil {
		return func(yield func([]storage.Event, error) bool) { b.watch(ctx, prefix, after, yield) }
	}
	return b.Backend.Watch(ctx, prefix, after)
}

// breakages are faults that stores had, and the case that must find each.
func breakages() map[string]struct {
	finds string
	apply func(b *broken, s storage.Backend)
} {
	type breakage = struct {
		finds string
		apply func(b *broken, s storage.Backend)
	}
	return map[string]breakage{
		"a watch leaves out deletes": {"DeleteAfterCompactedRevision", func(b *broken, s storage.Backend) {
			b.watch = func(ctx context.Context, prefix string, after storage.Revision, yield func([]storage.Event, error) bool) {
				for commit, err := range s.Watch(ctx, prefix, after) {
					if (err != nil || !commit[0].Deleted()) && !yield(commit, err) {
						return
					}
				}
			}
		}},
		"a watch yields twice": {"StarvedStream", func(b *broken, s storage.Backend) {
			b.watch = func(ctx context.Context, prefix string, after storage.Revision, yield func([]storage.Event, error) bool) {
				for commit, err := range s.Watch(ctx, prefix, after) {
					for range 2 {
						if !yield(commit, err) {
							return
						}
					}
				}
			}
		}},
		"a watch forgets what was replaced": {"WatchResumes", func(b *broken, s storage.Backend) {
			b.watch = func(ctx context.Context, prefix string, after storage.Revision, yield func([]storage.Event, error) bool) {
				for commit, err := range s.Watch(ctx, prefix, after) {
					commit = slices.Clone(commit)
					for i := range commit {
						commit[i].Prev = storage.Record{}
					}
					if !yield(commit, err) {
						return
					}
				}
			}
		}},
		"a watch on the future begins now": {"WatchInTheFuture", func(b *broken, s storage.Backend) {
			b.watch = func(ctx context.Context, prefix string, after storage.Revision, yield func([]storage.Event, error) bool) {
				if newest, _ := s.Revision(ctx); newest < after {
					after = newest
				}
				s.Watch(ctx, prefix, after)(yield)
			}
		}},
		"a compacted watch begins later": {"CompactForgets", func(b *broken, s storage.Backend) {
			b.watch = func(ctx context.Context, prefix string, after storage.Revision, yield func([]storage.Event, error) bool) {
				for commit, err := range s.Watch(ctx, prefix, after) {
					if errors.Is(err, storage.ErrCompacted) {
						after, _ = s.Revision(ctx)
						s.Watch(ctx, prefix, after)(yield)
						return
					}
					if !yield(commit, err) {
						return
					}
				}
			}
		}},
		"a compacted read answers": {"CompactedReadFails", func(b *broken, s storage.Backend) {
			b.get = func(ctx context.Context, key string, at storage.Revision) (storage.Record, error) {
				rec, err := s.Get(ctx, key, at)
				if errors.Is(err, storage.ErrCompacted) {
					return s.Get(ctx, key, 0)
				}
				return rec, err
			}
		}},
		"a read is stale": {"NoStaleRead", func(b *broken, s storage.Backend) {
			b.get = func(ctx context.Context, key string, at storage.Revision) (storage.Record, error) {
				if newest, _ := s.Revision(ctx); at == 0 && newest > 1 {
					at = newest - 1
				}
				return s.Get(ctx, key, at)
			}
		}},
		"concurrent reads are stale": {"Linearizable", func(b *broken, s storage.Backend) {
			b.revision = func(ctx context.Context) (storage.Revision, error) {
				newest, err := s.Revision(ctx)
				return max(newest-3, 0), err
			}
		}},
		"a comparison is left out": {"ConcurrentIncrement", func(b *broken, s storage.Backend) {
			b.commit = func(ctx context.Context, ws ...storage.Write) (storage.Revision, error) {
				return s.Commit(ctx, unconditional(ws)...)
			}
		}},
		"a write is made twice": {"RetriedWrite", func(b *broken, s storage.Backend) {
			b.commit = func(ctx context.Context, ws ...storage.Write) (storage.Revision, error) {
				if revision, err := s.Commit(ctx, ws...); err != nil || ws[0].Value == nil {
					return revision, err
				}
				return s.Commit(ctx, unconditional(ws)...)
			}
		}},
		"a delete keeps an empty record": {"CommitDeletes", func(b *broken, s storage.Backend) {
			b.commit = func(ctx context.Context, ws ...storage.Write) (storage.Revision, error) {
				ws = slices.Clone(ws)
				for i := range ws {
					if ws[i].Value == nil {
						ws[i].Value = []byte{}
					}
				}
				return s.Commit(ctx, ws...)
			}
		}},
		"several writes are made one by one": {"CommitTogetherCompares", func(b *broken, s storage.Backend) {
			b.commit = func(ctx context.Context, ws ...storage.Write) (revision storage.Revision, err error) {
				for _, w := range ws {
					if revision, err = s.Commit(ctx, w); err != nil {
						return 0, err
					}
				}
				return revision, nil
			}
		}},
		"several writes are several commits": {"CommitTogether", func(b *broken, s storage.Backend) {
			b.watch = func(ctx context.Context, prefix string, after storage.Revision, yield func([]storage.Event, error) bool) {
				for commit, err := range s.Watch(ctx, prefix, after) {
					if err != nil {
						yield(nil, err)
						return
					}
					for i := range commit {
						if !yield(commit[i:i+1], nil) {
							return
						}
					}
				}
			}
		}},
		"revisions run ahead": {"RevisionsIncrease", func(b *broken, s storage.Backend) {
			b.revision = func(ctx context.Context) (storage.Revision, error) {
				newest, err := s.Revision(ctx)
				return newest + 1, err
			}
		}},
	}
}

func unconditional(ws []storage.Write) []storage.Write {
	ws = slices.Clone(ws)
	for i := range ws {
		ws[i].Expect = storage.AnyRevision
	}
	return ws
}

// TestKit runs the kit against memory, or against the broken store that a
// process was started for.
func TestKit(t *testing.T) {
	apply := breakages()[os.Getenv(breakEnv)].apply
	storagetest.Run(t, func(testing.TB) storage.Backend {
		s := memstore.New(memstore.Options{})
		if apply == nil {
			return s
		}
		b := &broken{Backend: s}
		apply(b, s)
		return b
	})
}

// TestKitFinds checks that the kit fails on stores that are broken.
func TestKitFinds(t *testing.T) {
	exe, err := os.Executable()
	require.NoError(t, err)
	for name, c := range breakages() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := "-test.run=^TestKit$/^" + c.finds + "$"
			require.NoError(t, exec.Command(exe, run).Run())
			cmd := exec.Command(exe, run, "-test.timeout=5s")
			cmd.Env = append(os.Environ(), breakEnv+"="+name)
			out, err := cmd.CombinedOutput()
			require.Error(t, err)
			require.Contains(t, string(out), c.finds)
		})
	}
}
