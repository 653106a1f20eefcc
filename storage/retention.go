package storage

import "time"

// Retention is the rule of how long a history is kept, the same for every store:
// a state stays readable until Keep has passed since it was replaced, and not
// longer than a 32nd of that more, whether or not anything is committed or read
// in the meantime. The newest state is never forgotten.
//
// It knows when which revisions were committed, in spans of time, so that it
// stays small however many there are. It is not safe for concurrent use.
type Retention struct {
	// Keep is how long; 0 or less is forever.
	Keep time.Duration

	spans []Span // oldest first
}

// Span is the commits of a stretch of time.
type Span struct {
	Begin, End time.Time // of the first and of the last commit
	Last       Revision  // of the last commit
}

// spansOfKeep is how many spans Keep is cut into.
const spansOfKeep = 32

// Committed notes that everything up to rev is committed, now at the latest.
func (r *Retention) Committed(now time.Time, rev Revision) {
	if r.Keep <= 0 {
		return
	}
	if n := len(r.spans); n > 0 {
		newest := &r.spans[n-1]
		if rev <= newest.Last {
			return
		}
		if now.Sub(newest.Begin) <= r.Keep/spansOfKeep {
			newest.End, newest.Last = now, rev
			return
		}
	}
	for len(r.spans) > 1 && r.over(now, r.spans[1]) {
		r.spans = r.spans[1:]
	}
	r.spans = append(r.spans, Span{now, now, rev})
}

func (r *Retention) over(now time.Time, s Span) bool { return now.Sub(s.End) > r.Keep }

// Oldest returns the oldest revision that is kept, 0 if that is all of them: the
// newest one committed longer than Keep ago, since it is the state from then on.
func (r *Retention) Oldest(now time.Time) (oldest Revision) {
	for _, s := range r.spans {
		if r.Keep <= 0 || !r.over(now, s) {
			break
		}
		oldest = s.Last
	}
	return oldest
}

// Spans returns what the retention knows, for stores that outlive a process.
func (r *Retention) Spans() []Span { return append([]Span(nil), r.spans...) }

// Restore takes over what another one knew. A clock that was set back since
// makes history older by nothing, and revisions beyond newest are left out.
func (r *Retention) Restore(spans []Span, now time.Time, newest Revision) {
	r.spans = r.spans[:0]
	for _, s := range spans {
		if s.Last > newest {
			break
		}
		if s.End.After(now) {
			s.End = now
		}
		if s.Begin.After(s.End) {
			s.Begin = s.End
		}
		if n := len(r.spans); n > 0 && (s.Last <= r.spans[n-1].Last || s.End.Before(r.spans[n-1].End)) {
			continue
		}
		r.spans = append(r.spans, s)
	}
	r.Committed(now, newest)
}
