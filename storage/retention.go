package storage

import "time"

// Retention decides which revisions a store keeps by age. All stores follow the same rule: a revision
// stays readable until Keep has passed since the next commit replaced it, and at most Keep/32 longer,
// even if nothing is committed or read in the meantime. The newest revision is always kept.
//
// Retention records the commit times of spans of revisions instead of single revisions, so its size
// does not depend on the number of commits. It is not safe for concurrent use.
type Retention struct {
	// Keep is the time for which a replaced revision stays readable; 0 or less means forever.
	Keep time.Duration

	spans []Span // oldest first
}

// Span is a run of consecutive commits.
type Span struct {
	Begin, End time.Time // times of the first and of the last commit
	Last       Revision  // revision of the last commit
}

// spansPerKeep is the number of spans that Keep is divided into.
const spansPerKeep = 32

// Committed records that the revisions up to rev were committed by the time now.
func (r *Retention) Committed(now time.Time, rev Revision) {
	if r.Keep <= 0 {
		return
	}
	if n := len(r.spans); n > 0 {
		newest := &r.spans[n-1]
		if rev <= newest.Last {
			return
		}
		if now.Sub(newest.Begin) <= r.Keep/spansPerKeep {
			newest.End, newest.Last = now, rev
			return
		}
	}
	for len(r.spans) > 1 && r.expired(now, r.spans[1]) {
		r.spans = r.spans[1:]
	}
	r.spans = append(r.spans, Span{now, now, rev})
}

// expired reports whether the last commit of s is older than Keep.
func (r *Retention) expired(now time.Time, s Span) bool { return now.Sub(s.End) > r.Keep }

// Oldest returns the oldest revision to keep, or 0 if all are kept. It is the newest revision that was
// committed more than Keep ago: that revision was current at the time now - Keep.
func (r *Retention) Oldest(now time.Time) (oldest Revision) {
	for _, s := range r.spans {
		if r.Keep <= 0 || !r.expired(now, s) {
			break
		}
		oldest = s.Last
	}
	return oldest
}

// Spans returns a copy of the recorded spans, for stores that persist them.
func (r *Retention) Spans() []Span { return append([]Span(nil), r.spans...) }

// Restore replaces the recorded spans with persisted spans and then records newest as committed. It
// drops spans beyond newest. If the clock was set back in the meantime, it limits their times to now.
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
