package apiserver

import (
	"fmt"
	"io"
	"os"
	"time"

	"orch.io/controlplane/storage/backup"
)

// The minimal intervals between two progress messages: on a terminal, where the line is overwritten,
// and elsewhere.
const (
	rewriteEvery = 200 * time.Millisecond
	writeEvery   = 3 * time.Second
)

// progress writes the progress of a command. On a terminal it writes one line for each phase and
// overwrites it; elsewhere it writes a line at the beginning of each phase and every few seconds.
type progress struct {
	out      io.Writer
	terminal bool

	last         backup.Phase
	lastTime     time.Time
	unterminated bool // whether the current line lacks its newline
}

// newProgress returns a progress that writes to standard error.
func newProgress() *progress {
	info, err := os.Stderr.Stat()
	return &progress{out: os.Stderr, terminal: err == nil && info.Mode()&os.ModeCharDevice != 0}
}

// report is the Progress function of backup.Options.
func (p *progress) report(now backup.Progress) {
	every := writeEvery
	if p.terminal {
		every = rewriteEvery
	}
	if now.Phase == p.last && time.Since(p.lastTime) < every {
		return
	}
	if now.Phase != p.last {
		p.end()
	}
	p.last, p.lastTime = now.Phase, time.Now()
	if p.terminal {
		fmt.Fprintf(p.out, "\r\x1b[K%s", formatProgress(now)) // return to the beginning of the line and erase it
		p.unterminated = true
		return
	}
	fmt.Fprintln(p.out, formatProgress(now))
}

// end completes the line of a terminal.
func (p *progress) end() {
	if p.unterminated {
		fmt.Fprintln(p.out)
	}
	p.unterminated = false
}

// formatProgress formats progress: amount, total, rate and remaining time.
func formatProgress(p backup.Progress) string {
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
