// Package diff formats the difference of two objects for messages to clients.
package diff

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Limits of a difference. They bound time and memory for objects that a client controls.
const (
	diffContext = 3       // number of unchanged lines around a change
	diffCells   = 1 << 20 // limit of the product of the lines that differ; beyond it, all of them count as changed
	// diffBytes is the limit of the length of the text
	diffBytes = 4 << 10
)

// Lines returns the difference of the indented JSON of two values in unified format, cut to 4 KiB.
// Values that cannot be encoded count as empty.
func Lines(before, after any) string {
	a, b := jsonLines(before), jsonLines(after)
	head := 0
	for head < min(len(a), len(b)) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < min(len(a), len(b))-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	from := max(0, head-diffContext)
	edits := equalLines(a[from:head])
	edits = append(edits, align(a[head:len(a)-tail], b[head:len(b)-tail])...)
	edits = append(edits, equalLines(a[len(a)-tail:min(len(a), len(a)-tail+diffContext)])...)
	text := hunks(edits, from+1)
	if len(text) > diffBytes {
		text = strings.ToValidUTF8(text[:diffBytes], "") + "..."
	}
	return text
}

func jsonLines(v any) []string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if e.Encode(v) != nil {
		return nil
	}
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}

// edit is a line of a difference. sign is ' ' for an unchanged, '-' for a removed and '+' for an added
// line.
type edit struct {
	sign byte
	line string
}

func (e edit) changed() bool { return e.sign != ' ' }

func equalLines(lines []string) (edits []edit) {
	for _, l := range lines {
		edits = append(edits, edit{' ', l})
	}
	return edits
}

// align computes the edits from a to b by their longest common subsequence.
func align(a, b []string) (edits []edit) {
	if len(a)*len(b) > diffCells {
		a, b = a[:min(len(a), diffBytes)], b[:min(len(b), diffBytes)] // the text is cut at diffBytes bytes, so more lines cannot be shown
		for _, l := range a {
			edits = append(edits, edit{'-', l})
		}
		for _, l := range b {
			edits = append(edits, edit{'+', l})
		}
		return edits
	}
	width := len(b) + 1
	common := make([]int32, (len(a)+1)*width) // common[i*width+j] is the length of the longest common subsequence of a[i:] and b[j:]
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i*width+j] = common[(i+1)*width+j+1] + 1
			} else {
				common[i*width+j] = max(common[(i+1)*width+j], common[i*width+j+1])
			}
		}
	}
	for i, j := 0, 0; i < len(a) || j < len(b); {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			edits = append(edits, edit{' ', a[i]})
			i, j = i+1, j+1
		case i < len(a) && (j == len(b) || common[(i+1)*width+j] >= common[i*width+j+1]):
			edits = append(edits, edit{'-', a[i]})
			i++
		default:
			edits = append(edits, edit{'+', b[j]})
			j++
		}
	}
	return edits
}

// hunks formats edits as hunks. Both texts begin at line at; unchanged lines far from a change are left
// out.
func hunks(edits []edit, at int) string {
	var out strings.Builder
	for before, after := at, at; ; {
		first := slices.IndexFunc(edits, edit.changed)
		if first < 0 {
			return out.String()
		}
		skip := max(0, first-diffContext)
		edits, before, after = edits[skip:], before+skip, after+skip
		end, quiet := 0, 0
		for i, e := range edits {
			if quiet++; e.changed() {
				end, quiet = i+1, 0
			}
			if quiet > 2*diffContext {
				break
			}
		}
		end = min(len(edits), end+diffContext)
		var lines strings.Builder
		removed, added := 0, 0
		for _, e := range edits[:end] {
			if e.sign != '+' {
				removed++
			}
			if e.sign != '-' {
				added++
			}
			lines.WriteByte(e.sign)
			lines.WriteString(e.line)
			lines.WriteByte('\n')
		}
		fmt.Fprintf(&out, "@@ -%d,%d +%d,%d @@\n%s", before, removed, after, added, lines.String())
		edits, before, after = edits[end:], before+removed, after+added
	}
}
