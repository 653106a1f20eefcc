package quota

// Accounts returns the number of namespaces with writes or counts in progress.
func (l *Ledger) Accounts() int { return l.countAccounts(func(a *account) bool { return a.users > 0 }) }

// Standings returns the number of namespaces with a standing.
func (l *Ledger) Standings() int {
	return l.countAccounts(func(a *account) bool { return a.standing != standing{} })
}

// Stale returns the number of namespaces with a scheduled count.
func (l *Ledger) Stale() int {
	return l.countAccounts(func(a *account) bool { return a.standing.stale })
}

func (l *Ledger) countAccounts(is func(*account) bool) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.accounts {
		if is(a) {
			n++
		}
	}
	return n
}
