package schema

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
)

// maxPatternSize limits the estimated instructions of a pattern. Matching costs pattern size
// times text length, and a short pattern with counted repetitions can be huge.
const maxPatternSize = 5000

// pattern is a compiled Schema.Pattern.
type pattern struct {
	*regexp.Regexp
	size int // estimated instructions
}

func compilePattern(text string) (*pattern, error) {
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	size := patternSize(tree)
	if size > maxPatternSize {
		return nil, fmt.Errorf("the pattern takes %d steps, more than the limit of %d", size, maxPatternSize)
	}
	re, err := regexp.Compile(strings.Clone(text)) // the Regexp keeps its text, which may be part of a whole document
	return &pattern{re, size}, err
}

// patternSize estimates the number of instructions of e. syntax.Parse limits depth and
// repetitions, so that the recursion and the result are bounded.
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
