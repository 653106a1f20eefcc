package registrytest

import (
	"regexp"
	"regexp/syntax"
	"strings"
)

// matching returns a function that makes a string that matches a pattern, or "" if it finds none.
// Context assertions such as \b are satisfied only by chance. Later tries repeat unbounded parts
// more often.
func (g *generator) matching(pattern string) func(try int) string {
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return func(int) string { return "" } // schemas contain only valid patterns
	}
	re := regexp.MustCompile(pattern)
	return func(try int) string {
		var b strings.Builder
		g.expression(&b, tree, 3+try)
		if re.MatchString(b.String()) {
			return b.String()
		}
		return ""
	}
}

// expression appends a string that matches e. Unbounded repetitions occur at most extra times more
// than necessary.
func (g *generator) expression(b *strings.Builder, e *syntax.Regexp, extra int) {
	least, most := 1, 1
	switch e.Op {
	case syntax.OpLiteral:
		b.WriteString(string(e.Rune))
		return
	case syntax.OpCharClass:
		b.WriteRune(g.letter(e.Rune))
		return
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteString(g.letters(1))
		return
	case syntax.OpAlternate:
		g.expression(b, e.Sub[g.IntN(len(e.Sub))], extra)
		return
	case syntax.OpStar:
		least, most = 0, extra
	case syntax.OpPlus:
		most = 1 + extra
	case syntax.OpQuest:
		least = 0
	case syntax.OpRepeat:
		least, most = e.Min, e.Min+extra
		if e.Max >= 0 {
			most = e.Max
		}
	}
	for range least + g.IntN(most-least+1) {
		for _, sub := range e.Sub {
			g.expression(b, sub, extra)
		}
	}
}

// letter returns a character of a class, preferably a printable ASCII character. ranges are pairs
// of first and last characters.
func (g *generator) letter(ranges []rune) rune {
	var readable []rune
	for i := 0; i+1 < len(ranges); i += 2 {
		for r := max(ranges[i], '!'); r <= min(ranges[i+1], '~'); r++ {
			readable = append(readable, r)
		}
	}
	if len(readable) > 0 {
		return readable[g.IntN(len(readable))]
	}
	if len(ranges) == 0 {
		return 'x' // no text matches
	}
	return ranges[2*g.IntN(len(ranges)/2)]
}
