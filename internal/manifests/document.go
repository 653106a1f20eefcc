package manifests

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/codec"
)

// Document is an object of a file with its source.
type Document struct {
	Object *meta.Object
	Head   []byte // separators, comments and space between the document before and this one
	Body   []byte
	JSON   bool
	Line   int // the one in which Body begins
}

var errTooLarge = fmt.Errorf("the file has more than %d bytes", maxBytes)

// Documents returns the documents of a file, YAML between separators and JSON objects one after the
// other, and what follows the last of them: heads, bodies and the rest are the file. What
// holds nothing but comments is no document, nor is null, which templates leave where they make
// nothing. A key that stands twice is an error. With an error come the documents before it.
func Documents(data []byte) (docs []Document, rest []byte, err error) {
	if len(data) > maxBytes {
		return nil, nil, errTooLarge
	}
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		return nil, nil, errors.New("the file is UTF-16, and manifests are UTF-8")
	}
	line, at, done := 1, 0, 0
	for i, b := range bodies(data) {
		line += bytes.Count(data[at:b.from], []byte("\n"))
		d := Document{Head: data[done:b.from], Body: data[b.from:b.to], JSON: b.json, Line: line}
		line, at = line+bytes.Count(d.Body, []byte("\n")), b.to
		if i == maxDocuments {
			return docs, nil, fmt.Errorf("the file has more than %d documents", maxDocuments)
		}
		if d.Object, err = d.decode(); errors.Is(err, codec.ErrNull) {
			continue
		}
		if err != nil {
			return docs, nil, fmt.Errorf("document %d: %w", len(docs)+1, err)
		}
		docs, done = append(docs, d), b.to
	}
	return docs, data[done:], nil
}

// decode reads the body. Faults tell the line of the file.
func (d *Document) decode() (*meta.Object, error) {
	if !d.JSON {
		tree, repeated, err := codec.DecodeYAML(d.Body, codec.Limits{})
		if len(repeated) > 0 { // or a merge, of which they stand before or behind
			_, repeated, _ = codec.DecodeYAML(merges.ReplaceAll(d.Body, []byte(`$1"<<":`)), codec.Limits{})
		}
		for i, text := range repeated {
			repeated[i] = d.inFile(text)
		}
		if err != nil && !errors.Is(err, codec.ErrNull) {
			err = errors.New(d.inFile(err.Error()))
		}
		if err != nil {
			return nil, err
		}
		return meta.NewObject(tree), refused(repeated)
	}
	tree, repeated, err := codec.DecodeJSON(d.Body, codec.Limits{})
	for i, path := range repeated {
		repeated[i] = fmt.Sprintf("line %d: duplicate field %q", d.Line, path)
	}
	if err != nil {
		return nil, fmt.Errorf("line %d: %w", d.Line, err)
	}
	return meta.NewObject(tree), refused(repeated)
}

// refused is the error of repeated keys, nil if there are none.
func refused(repeated []string) error {
	if len(repeated) == 0 {
		return nil
	}
	return errors.New(strings.Join(repeated[:min(len(repeated), 5)], "; "))
}

// merges finds the keys whose values are merged into a mapping, and which quoted are
// keys like others. The mapping may have the same keys, which count.
var merges = regexp.MustCompile(`(^|[\s{,])<<[ \t]*:`)

var lineNumber = regexp.MustCompile(`\bline (\d+):`)

// inFile returns a fault with the line of the file instead of that of the body, and with the
// first line of the body if it has none.
func (d *Document) inFile(fault string) string {
	at := lineNumber.FindStringSubmatchIndex(fault)
	if at == nil {
		return fmt.Sprintf("line %d: %s", d.Line, fault)
	}
	n, _ := strconv.Atoi(fault[at[2]:at[3]])
	return fault[:at[2]] + strconv.Itoa(d.Line+n-1) + fault[at[3]:]
}

// body is where in a file a document is.
type body struct {
	from, to int
	json     bool
}

// bodies finds the documents of a file.
func bodies(data []byte) (found []body) {
	from := -1 // of the document that has begun
	end := func(at int) {
		if from >= 0 {
			found = append(found, split(data, from, at)...)
		}
		from = -1
	}
	at := len(data) - len(bytes.TrimPrefix(data, []byte("\ufeff")))
	for line := range bytes.Lines(data[at:]) {
		begins, text := at, line
		if m := marker(line); m != "" {
			end(at)
			if text = nil; m == "---" {
				text = bytes.TrimLeft(line[len(m):], " \t")
			}
			begins += len(line) - len(text)
		}
		if from < 0 && !empty(text) {
			from = begins
		}
		at += len(line)
	}
	end(at)
	return found
}

// marker returns what a line begins with that begins or ends a document.
func marker(line []byte) string {
	for _, m := range []string{"---", "..."} {
		if rest, ok := bytes.CutPrefix(line, []byte(m)); ok && (len(rest) == 0 || strings.IndexByte(" \t\r\n", rest[0]) >= 0) {
			return m
		}
	}
	return ""
}

// empty reports whether a line outside of a document holds nothing of one: space, a
// comment or a directive.
func empty(line []byte) bool {
	text := bytes.TrimSpace(line)
	return len(text) == 0 || text[0] == '#' || line[0] == '%'
}

// split returns the documents between two separators: JSON objects, or one in YAML
// without the comments behind it.
func split(data []byte, from, to int) []body {
	if found := values(data[from:to]); len(found) > 0 {
		for i := range found {
			found[i].from += from
			found[i].to += from
		}
		return found
	}
	return []body{{from, to - trailing(data[from:to]), false}}
}

// values returns where in a text its JSON values are, nothing if it does not begin with
// an object or is not JSON to its end.
func values(text []byte) (found []body) {
	if !bytes.HasPrefix(bytes.TrimLeft(text, " \t"), []byte("{")) {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	for {
		var value json.RawMessage
		switch err := d.Decode(&value); {
		case err == io.EOF:
			return found
		case err != nil:
			return nil
		}
		end := int(d.InputOffset())
		found = append(found, body{end - len(value), end, true})
	}
}

// trailing returns the length of the comments at the end of a document, which begin their lines:
// what is indented may be part of a text.
func trailing(text []byte) (length int) {
	behind := 0
	for rest := text; len(rest) > 0; {
		begin := 1 + bytes.LastIndexByte(rest[:len(rest)-1], '\n')
		line := rest[begin:]
		if behind += len(line); line[0] == '#' {
			length = behind
		} else if len(bytes.TrimSpace(line)) > 0 {
			break
		}
		rest = rest[:begin]
	}
	return length
}
