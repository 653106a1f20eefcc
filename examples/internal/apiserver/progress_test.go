package apiserver

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/storage/backup"
)

// TestProgress: the output for the same progress on a terminal and elsewhere.
func TestProgress(t *testing.T) {
	for terminal, want := range map[bool]string{
		true: "\r\x1b[Kcopying: 0 versions of 200 (0%)" +
			"\r\x1b[Kcopying: 50 versions of 200 (25%), 50.0 KiB, 50/s, 3s left" +
			"\r\x1b[Kcopying: 100 versions of 200 (50%), 100.0 KiB, 50/s, 2s left" +
			"\r\x1b[Kcopying: 150 versions of 200 (75%), 150.0 KiB, 50/s, 1s left" +
			"\r\x1b[Kcopying: 200 versions of 200 (100%), 200.0 KiB, 50/s" +
			"\n\r\x1b[Kverifying: 0 versions of 200 (0%)\n",
		false: "copying: 0 versions of 200 (0%)\n" +
			"copying: 150 versions of 200 (75%), 150.0 KiB, 50/s, 1s left\n" +
			"verifying: 0 versions of 200 (0%)\n",
	} {
		synctest.Test(t, func(t *testing.T) {
			var out strings.Builder
			p := &progress{out: &out, terminal: terminal}
			for i := range int64(5) {
				now := backup.Progress{Phase: backup.Copying, Versions: 50 * i, Total: 200, Bytes: i * 50 << 10}
				if i > 0 {
					now.Rate, now.Left = 50, time.Duration(4-i)*time.Second
				}
				p.report(now)
				p.report(now) // too early for another line
				time.Sleep(time.Second)
			}
			p.report(backup.Progress{Phase: backup.Verifying, Total: 200})
			p.end()
			p.end()
			assert.Equal(t, want, out.String())
		})
	}
}
