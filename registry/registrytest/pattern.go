package registrytest

import (
	"regexp"
	"regexp/syntax"
	"strings"
)

// matching returns what makes a text that matches a pattern, the empty text if it finds
// none. Where the pattern also asks for what stands around a part of it, as \b does,
// that is left to chance; what may be repeated without bound is so more often at later
// tries.
func (g *generator) matching(pattern string) func(try int) string {
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return func(int) string { return "" } // schemas have none such
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

// expression writes a text of an expression. What may be repeated without bound is there
// beyond what it must be as often as extra says, at most.
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

// letter picks a character of a class, one that can be read if there is one. Ranges are
// pairs of their first and last.
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
