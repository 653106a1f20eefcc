package quota

// Accounts returns how many namespaces have something under way.
func (l *Ledger) Accounts() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.accounts)
}

// Standings returns of how many namespaces something is known.
func (l *Ledger) Standings() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.standings)
}

// Stale returns how many namespaces wait for a count.
func (l *Ledger) Stale() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, s := range l.standings {
		if s.stale {
			n++
		}
	}
	return n
}
