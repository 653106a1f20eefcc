// Package suggest finds, for a word that is none of those that are known, the one that
// was probably meant.
package suggest

import "fmt"

// longest is the length in bytes of words that are compared.
const longest = 200

// Near returns a hint such as `; did you mean "pods"?`, to stand at the end of an error,
// or nothing if no known word is near.
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

// distance counts the letters to put in, leave out, change or swap with their neighbour
// until a is b.
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
