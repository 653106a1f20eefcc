package storagetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage"
)

func modelRules() []rule {
	return []rule{
		{"RandomOperations", commitApplies, "after a random sequence of writes and compactions, reads and watches at every retained revision match the sequence", randomOperations},
		{"Linearizable", commitShows, "concurrent calls behave as if each took effect at one moment between its start and its end", linearizable},
	}
}

func randomOperations(s *store) {
	seed := uint64(time.Now().UnixNano())
	s.t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	keys := []string{"a", "a/", "a/1", "a/2", "a0", "b/1", "b/\xff", "c"}
	h := newHistory(s.newest())
	floor := h.base
	for range 3 {
		for range 60 {
			h.step(s, r, keys[r.IntN(len(keys))])
		}
		h.verify(s, floor, keys, []string{"", "a", "a/", "b/"})
		at := h.events[r.IntN(len(h.events))].Revision
		require.NoError(s.t, s.Compact(s.ctx, at))
		floor = max(floor, at)
		h.verify(s, floor, keys, []string{"", "a/"})
	}
}

// step makes one random commit and compares the result with the history.
func (h *history) step(s *store, r *rand.Rand, key string) {
	s.t.Helper()
	current := h.now[key]
	w := storage.Write{Key: key, Expect: current.Revision}
	switch r.IntN(8) {
	case 0:
		w.Expect = 0
	case 1:
		w.Expect = h.newest()
	case 2, 3:
		w.Expect = storage.AnyRevision
	}
	if r.IntN(3) > 0 {
		w.Value = fmt.Appendf(nil, "%d-%d", len(h.events), r.IntN(1000))
	}
	want := w.Check(current)
	revision, err := s.Commit(s.ctx, w)
	s.fails(want, err)
	if err == nil {
		require.Greater(s.t, revision, h.newest())
		h.add(key, w.Value, revision)
	}
}

// The linearizability check models a store of a few keys by the revisions of the keys.
const modelKeys = 3

type modelState struct {
	newest storage.Revision
	keys   [modelKeys]storage.Revision // 0: does not exist
}

type modelInput struct {
	op     string // get, put, del, revision, scan
	key    int
	expect storage.Revision
}

type modelOutput struct {
	revision storage.Revision // revision of the commit, the record or the store
	current  storage.Revision // revision that a failed comparison found
	failed   bool
	missing  bool
	keys     [modelKeys]storage.Revision
}

func modelStep(state modelState, in modelInput, out modelOutput) (bool, modelState) {
	switch in.op {
	case "revision":
		return out.revision == state.newest, state
	case "get":
		return out.revision == state.keys[in.key], state
	case "scan":
		return out.revision == state.newest && out.keys == state.keys, state
	}
	current := state.keys[in.key]
	matches := in.expect == storage.AnyRevision || in.expect == current
	switch {
	case out.failed:
		return !matches && out.current == current, state
	case out.missing:
		return matches && in.op == "del" && current == 0, state
	}
	if !matches || out.revision <= state.newest || in.op == "del" && current == 0 {
		return false, state
	}
	state.newest = out.revision
	state.keys[in.key] = out.revision
	if in.op == "del" {
		state.keys[in.key] = 0
	}
	return true, state
}

func linearizable(s *store) {
	const clients, each = 4, 60
	base := s.newest()
	start := time.Now()
	operations := make([][]porcupine.Operation, clients)
	errs := make([]error, clients)
	var wg sync.WaitGroup
	for c := range clients {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(start.UnixNano()), uint64(c)))
			var seen [modelKeys]storage.Revision
			for range each {
				in := modelInput{key: r.IntN(modelKeys)}
				in.op = []string{"get", "put", "put", "del", "revision", "scan"}[r.IntN(6)]
				in.expect = []storage.Revision{seen[in.key], seen[in.key], 0, storage.AnyRevision}[r.IntN(4)]
				op := porcupine.Operation{ClientId: c, Input: in, Call: int64(time.Since(start))}
				out, err := perform(s, in)
				if err != nil {
					errs[c] = err
					return
				}
				op.Output, op.Return = out, int64(time.Since(start))
				operations[c] = append(operations[c], op)
				switch {
				case out.failed:
					seen[in.key] = out.current
				case in.op == "get" || in.op == "put":
					seen[in.key] = out.revision
				}
			}
		})
	}
	wg.Wait()
	require.NoError(s.t, errors.Join(errs...))
	var history []porcupine.Operation
	for _, ops := range operations {
		history = append(history, ops...)
	}
	model := porcupine.Model{
		Init: func() any { return modelState{newest: base} },
		Step: func(state, in, out any) (bool, any) {
			return modelStep(state.(modelState), in.(modelInput), out.(modelOutput))
		},
	}
	require.NotEqual(s.t, porcupine.Illegal, porcupine.CheckOperationsTimeout(model, history, caseTime/2))
}

// perform runs one operation against the store.
func perform(s *store, in modelInput) (out modelOutput, err error) {
	key := fmt.Sprint(in.key)
	switch in.op {
	case "revision":
		out.revision, err = s.Revision(s.ctx)
		return out, err
	case "get":
		rec, err := s.Get(s.ctx, key, 0)
		if errors.Is(err, storage.ErrNotFound) {
			err = nil
		}
		return modelOutput{revision: rec.Revision}, err
	case "scan":
		revision, records, err := s.Scan(s.ctx, "", "", 0)
		if err != nil {
			return out, err
		}
		out.revision = revision
		for rec, err := range records {
			if err != nil {
				return out, err
			}
			out.keys[rec.Key[0]-'0'] = rec.Revision
		}
		return out, nil
	}
	w := storage.Write{Key: key, Expect: in.expect}
	if in.op == "put" {
		w.Value = []byte("x")
	}
	out.revision, err = s.Commit(s.ctx, w)
	var lost *storage.ConflictError
	switch {
	case errors.As(err, &lost):
		return modelOutput{failed: true, current: lost.Current.Revision}, nil
	case errors.Is(err, storage.ErrNotFound):
		return modelOutput{missing: true}, nil
	}
	return out, err
}
