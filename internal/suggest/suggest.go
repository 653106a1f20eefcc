// Package suggest finds the known word that an unknown word is probably a misspelling of.
package suggest

import "fmt"

// longest is the maximum length of words that are compared, in bytes.
const longest = 200

// Near returns a hint to append to an error, such as `; did you mean "pods"?`, or "" if no
// known word is similar.
func Near(word string, known ...string) string {
	if len(word) > longest {
		return ""
	}
	best, least := "", 1+max(1, min(3, len(word)/4))
	for _, k := range known {
		if k == word || len(k) > longest {
			continue
		}
		if d := distance(word, k); d < least {
			best, least = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// distance returns the number of insertions, deletions, substitutions and transpositions of
// neighbours that turn a into b. It ignores case.
func distance(a, b string) int {
	var rows [3][longest + 1]int
	before, last, row := rows[0][:len(b)+1], rows[1][:len(b)+1], rows[2][:len(b)+1]
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			differ := 1
			if lower(a[i]) == lower(b[j]) {
				differ = 0
			}
			row[j+1] = min(last[j]+differ, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
