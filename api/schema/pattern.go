package schema

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
)

// maxPatternSize bounds a pattern: matching costs the product of its size and
// the text, and a short one with counted repetitions can be huge.
const maxPatternSize = 5000

// pattern is a compiled Pattern.
type pattern struct {
	*regexp.Regexp
	size int // about the instructions that it takes
}

func compilePattern(text string) (*pattern, error) {
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	size := patternSize(tree)
	if size > maxPatternSize {
		return nil, fmt.Errorf("it takes %d steps, more than %d", size, maxPatternSize)
	}
	re, err := regexp.Compile(strings.Clone(text)) // which it keeps, and text may be a part of something larger
	return &pattern{re, size}, err
}

// patternSize estimates the instructions of an expression. Parse has bounded
// its depth and its repetitions.
func patternSize(e *syntax.Regexp) int {
	size := 1 + len(e.Rune)/4
	if e.Op == syntax.OpLiteral {
		size = len(e.Rune)
	}
	for _, sub := range e.Sub {
		size += patternSize(sub)
	}
	if e.Op == syntax.OpRepeat {
		size *= max(e.Min, e.Max, 1)
	}
	return size
}
