package quota

// Accounts returns how many namespaces have writes or counts in progress.
func (l *Ledger) Accounts() int { return l.those(func(a *account) bool { return a.users > 0 }) }

// Standings returns of how many namespaces the ledger knows anything.
func (l *Ledger) Standings() int {
	return l.those(func(a *account) bool { return a.standing != standing{} })
}

// Stale returns how many namespaces wait for a count.
func (l *Ledger) Stale() int { return l.those(func(a *account) bool { return a.standing.stale }) }

func (l *Ledger) those(is func(*account) bool) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.accounts {
		if is(a) {
			n++
		}
	}
	return n
}
