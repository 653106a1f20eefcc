package storagetest

import (
	"fmt"
	"reflect"

	"orch.io/controlplane/storage"
)

// broke fails and ends the case, because the store violates a sentence.
func (s *store) broke(of sentence, format string, args ...any) {
	s.t.note(breaks(of, format, args...))
	s.t.FailNow()
}

// same ends the case unless a call returned the expected record.
func (s *store) same(of sentence, want, got storage.Record, call string, args ...any) {
	if !reflect.DeepEqual(want, got) {
		s.broke(of, "%s: expected %s, got %s", fmt.Sprintf(call, args...), record(want), record(got))
	}
}

// sameRecords ends the case unless a scan returned the expected records. It reports the first difference.
func (s *store) sameRecords(want, got []storage.Record, call string, args ...any) {
	for i := range max(len(want), len(got)) {
		if w, g := nth(want, i), nth(got, i); !reflect.DeepEqual(w, g) {
			s.broke(scanReturns, "%s: expected %s as record %d, got %s", fmt.Sprintf(call, args...), record(w), i+1, record(g))
		}
	}
}

// sameEvents ends the case unless a watch yielded the expected events. It reports the first difference.
func (s *store) sameEvents(want, got []storage.Event, call string, args ...any) {
	for i := range max(len(want), len(got)) {
		w, g := nth(want, i), nth(got, i)
		if reflect.DeepEqual(w, g) {
			continue
		}
		what := fmt.Sprintf(call, args...)
		if reflect.DeepEqual(w.Record, g.Record) {
			s.broke(watchReplaced, "%s: expected that event %d, %s, replaced %s, got %s", what, i+1, record(w.Record), record(w.Prev), record(g.Prev))
		}
		s.broke(watchYields, "%s: expected %s as event %d, got %s", what, record(w.Record), i+1, record(g.Record))
	}
}

// nth returns element n of a list, or the zero value if the list is shorter.
func nth[T any](list []T, i int) (item T) {
	if i < len(list) {
		item = list[i]
	}
	return item
}

func record(r storage.Record) string {
	switch {
	case r.Revision == 0:
		return "nothing"
	case r.Value == nil:
		return fmt.Sprintf("the end of %q in revision %d", r.Key, r.Revision)
	}
	return fmt.Sprintf("%q = %.40q of revision %d", r.Key, r.Value, r.Revision)
}
