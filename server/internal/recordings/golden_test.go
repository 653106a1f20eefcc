package recordings_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// What a reference server answered, request by request, held against ours. The
// files lie beside the repository; golden.py there documents their format.

// goldenDir finds the transcripts, or skips the test.
func goldenDir(t *testing.T) string {
	dir, err := filepath.Abs("../../../../shared/golden")
	require.NoError(t, err)
	if _, err := os.Stat(dir); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("the transcripts are missing: %v", err)
		}
		t.Skipf("the transcripts are not on this machine: %v", err)
	}
	return dir
}

// TestGoldenTranscripts fails on a difference that testdata/differences.txt does
// not list, and on one that it lists and that is gone. It runs in a bubble: nothing
// waits in real time, and what the loops do comes before what waits for it.
func TestGoldenTranscripts(t *testing.T) {
	t.Parallel()
	dir := goldenDir(t)
	known := readDifferences(t)
	for _, file := range []struct {
		name    string
		managed bool // managedFields count
		loops   bool // definitions are served by one; the others were recorded without any
	}{
		{"rest.json", false, false},
		{"access.json", true, false},
		{"write.json", true, true},
	} {
		t.Run(file.name, func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(filepath.Join(dir, file.name))
			require.NoError(t, err)
			var scenarios []scenario
			require.NoError(t, json.Unmarshal(data, &scenarios))
			var found []difference
			synctest.Test(t, func(t *testing.T) {
				p := newPlayer(t, filepath.Join(dir, "users.csv"), file.loops)
				p.managed = file.managed
				for _, sc := range scenarios {
					found = append(found, p.play(t, sc)...)
				}
			})
			compareDifferences(t, known[file.name], found)
		})
	}
}

const differencesFile = "testdata/differences.txt"

// readDifferences returns the known differences by transcript.
func readDifferences(t *testing.T) map[string][]string {
	return listedDifferences(t, differencesFile, func(line string) (string, string) {
		file, difference, _ := strings.Cut(line, " ")
		return file, difference
	})
}

// listedDifferences returns the differences of a file by what split says that they are
// about. Each must stand below the reason for it, a line that begins with "# ".
func listedDifferences(t *testing.T, path string, split func(line string) (about, difference string)) map[string][]string {
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	known, reason := map[string][]string{}, ""
	for i, line := range strings.Split(string(data), "\n") {
		switch {
		case line == "":
			reason = ""
		case strings.HasPrefix(line, "# "):
			reason = line
		default:
			require.NotEmpty(t, reason, "%s:%d has no reason", path, i+1)
			about, difference := split(line)
			known[about] = append(known[about], difference)
		}
	}
	return known
}

func compareDifferences(t *testing.T, known []string, found []difference) {
	t.Helper()
	left := map[string]bool{}
	for _, d := range known {
		if left[d] {
			t.Errorf("listed twice: %s", d)
		}
		left[d] = true
	}
	for _, d := range found {
		if !left[d.short] {
			t.Errorf("not listed: %s\n  %s", d.short, d.full)
		}
		delete(left, d.short)
	}
	for d := range left {
		t.Errorf("listed, but gone: %s", d)
	}
}
