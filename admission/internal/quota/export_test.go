package quota

// Accounts returns the number of namespaces with writes or counts in progress.
func (l *Ledger) Accounts() int { return l.countAccounts(func(a *account) bool { return a.users > 0 }) }

// States returns the number of namespaces with a state.
func (l *Ledger) States() int {
	return l.countAccounts(func(a *account) bool { return a.state != namespaceState{} })
}

// Stale returns the number of namespaces with a scheduled count.
func (l *Ledger) Stale() int {
	return l.countAccounts(func(a *account) bool { return a.state.stale })
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
