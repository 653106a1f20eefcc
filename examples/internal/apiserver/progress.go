package apiserver

import (
	"fmt"
	"io"
	"os"
	"time"

	"orch.io/controlplane/storage/backup"
)

// How often progress is written: on a terminal, where the line is written over, and elsewhere.
const (
	rewriteEvery = 200 * time.Millisecond
	writeEvery   = 3 * time.Second
)

// progress writes how far a command is: on a terminal as one line for each phase that is written over,
// elsewhere as a line at the beginning of each phase and every few seconds.
type progress struct {
	out      io.Writer
	terminal bool

	last backup.Phase
	told time.Time
	open bool // the line has no end yet
}

// onStderr returns the progress of a command on its standard error.
func onStderr() *progress {
	info, err := os.Stderr.Stat()
	return &progress{out: os.Stderr, terminal: err == nil && info.Mode()&os.ModeCharDevice != 0}
}

// tell is for backup.Options.
func (p *progress) tell(now backup.Progress) {
	every := writeEvery
	if p.terminal {
		every = rewriteEvery
	}
	if now.Phase == p.last && time.Since(p.told) < every {
		return
	}
	if now.Phase != p.last {
		p.end()
	}
	p.last, p.told = now.Phase, time.Now()
	if p.terminal {
		fmt.Fprintf(p.out, "\r\x1b[K%s", figures(now)) // back to the beginning of the line, which is erased
		p.open = true
		return
	}
	fmt.Fprintln(p.out, figures(now))
}

// end ends the line of a terminal.
func (p *progress) end() {
	if p.open {
		fmt.Fprintln(p.out)
	}
	p.open = false
}

// figures says how far it is: done, of how much, how fast, and how long it still takes.
func figures(p backup.Progress) string {
	text := fmt.Sprintf("%s: %d versions", p.Phase, p.Versions)
	if p.Phase == backup.Raising {
		text = fmt.Sprintf("%s: %d revisions", p.Phase, p.Versions)
	}
	if p.Total > 0 {
		text += fmt.Sprintf(" of %d (%d%%)", p.Total, 100*p.Versions/p.Total)
	}
	if p.Bytes > 0 {
		text += ", " + size(p.Bytes)
	}
	if p.Rate > 0 {
		text += fmt.Sprintf(", %.0f/s", p.Rate)
	}
	if p.Left > 0 {
		text += fmt.Sprintf(", %s left", p.Left.Round(time.Second))
	}
	return text
}
