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

// Document is an object in a file, with its source text.
type Document struct {
	Object *meta.Object
	Head   []byte // separators, comments and space before Body, after the previous document
	Body   []byte
	JSON   bool
	Line   int // the line in which Body begins
}

var errTooLarge = fmt.Errorf("the file has more than %d bytes", maxBytes)

// Documents returns the documents of a file: YAML documents between separators, and JSON objects
// one after the other. rest is the text after the last document; the heads, bodies and rest
// together are the file, as slices of data. Text that consists of comments is no document, and
// neither is null, which templates may leave. A duplicate key is an error. If there is an error,
// the documents before it are returned with it.
func Documents(data []byte) (docs []Document, rest []byte, err error) {
	if len(data) > maxBytes {
		return nil, nil, errTooLarge
	}
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		return nil, nil, errors.New("the file is UTF-16: convert it to UTF-8")
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

// decode decodes the body. Errors name the line in the file.
func (d *Document) decode() (*meta.Object, error) {
	if !d.JSON {
		tree, repeated, err := codec.DecodeYAML(d.Body, codec.Limits{})
		if len(repeated) > 0 { // the repeated keys may come from a merge: decode again with merges as plain keys
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
		return meta.NewObject(tree), duplicateKeys(repeated)
	}
	tree, repeated, err := codec.DecodeJSON(d.Body, codec.Limits{})
	for i, path := range repeated {
		repeated[i] = fmt.Sprintf("line %d: duplicate field %q", d.Line, path)
	}
	if err != nil {
		return nil, fmt.Errorf("line %d: %w", d.Line, err)
	}
	return meta.NewObject(tree), duplicateKeys(repeated)
}

// duplicateKeys returns the error for duplicate keys, or nil if there are none.
func duplicateKeys(repeated []string) error {
	if len(repeated) == 0 {
		return nil
	}
	return errors.New(strings.Join(repeated[:min(len(repeated), 5)], "; "))
}

// merges matches the merge keys "<<" of YAML. Quoted, they are plain keys. A merge may repeat keys
// of the mapping, so duplicates are looked for without merges.
var merges = regexp.MustCompile(`(^|[\s{,])<<[ \t]*:`)

var lineNumber = regexp.MustCompile(`\bline (\d+):`)

// inFile replaces the line number in an error text by the line of the file. Without a line number,
// it adds the first line of the body.
func (d *Document) inFile(text string) string {
	at := lineNumber.FindStringSubmatchIndex(text)
	if at == nil {
		return fmt.Sprintf("line %d: %s", d.Line, text)
	}
	n, _ := strconv.Atoi(text[at[2]:at[3]])
	return text[:at[2]] + strconv.Itoa(d.Line+n-1) + text[at[3]:]
}

// body is the position of a document in a file.
type body struct {
	from, to int
	json     bool
}

// bodies returns the positions of the documents of a file.
func bodies(data []byte) (found []body) {
	from := -1 // the start of the current document, or -1
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
		if from < 0 && !isBlank(text) {
			from = begins
		}
		at += len(line)
	}
	end(at)
	return found
}

// marker returns the document marker, "---" or "...", with which a line begins, or "".
func marker(line []byte) string {
	for _, m := range []string{"---", "..."} {
		if rest, ok := bytes.CutPrefix(line, []byte(m)); ok && (len(rest) == 0 || strings.IndexByte(" \t\r\n", rest[0]) >= 0) {
			return m
		}
	}
	return ""
}

// isBlank reports whether a line outside a document holds only space, a comment or a directive.
func isBlank(line []byte) bool {
	text := bytes.TrimSpace(line)
	return len(text) == 0 || text[0] == '#' || line[0] == '%'
}

// split returns the documents between two separators: JSON objects, or a YAML document without the
// comments after it.
func split(data []byte, from, to int) []body {
	if found := jsonValues(data[from:to]); len(found) > 0 {
		for i := range found {
			found[i].from += from
			found[i].to += from
		}
		return found
	}
	return []body{{from, to - trailing(data[from:to]), false}}
}

// jsonValues returns the positions of the JSON values in a text. It returns nil if the text does
// not begin with an object or is not JSON to the end.
func jsonValues(text []byte) (found []body) {
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

// trailing returns the length of the comments at the end of a document. Only unindented comments
// count, because an indented line may be part of a block scalar.
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
