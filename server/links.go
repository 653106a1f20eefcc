package server

import (
	"bytes"
	"compress/gzip"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// maxToken is how much of a page is held to look at it. What has longer tags, texts or
// scripts keeps its links from there on.
const maxToken = 1 << 20

// linkAttributes are the attributes of elements of HTML whose values are addresses.
var linkAttributes = []string{"action", "background", "cite", "classid", "codebase", "data", "formaction", "href", "icon",
	"longdesc", "manifest", "poster", "profile", "src", "usemap"}

// through is where an address that a redirect or a page of what is proxied names is reached
// through this server, if it is one within that.
func (c *connection) through(link string) string {
	at, err := url.Parse(link)
	if err != nil || !strings.HasPrefix(at.Path, "/") {
		return link
	}
	switch at.Host {
	case "", c.to.Host:
		at.Scheme, at.Host = "", ""
	case c.request.HTTP.Host:
	default:
		return link
	}
	if !strings.HasPrefix(at.Path, c.prefix()+"/") {
		at.Path, at.RawPath = c.prefix()+cleanPath(at.Path), ""
	}
	return at.String()
}

// linkBack makes the links of an answer in HTML lead through this server.
func (c *connection) linkBack(res *http.Response) error {
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	encoding := res.Header.Get("Content-Encoding")
	if kind != "text/html" || encoding != "" && encoding != "gzip" || res.StatusCode == http.StatusPartialContent {
		return nil
	}
	res.Header.Del("Content-Length")
	res.Header.Del("Content-Encoding")
	res.ContentLength = -1
	if c.request.HTTP.Method == http.MethodHead {
		return nil
	}
	p := &page{Closer: res.Body, from: res.Body, through: c.through}
	if encoding == "gzip" {
		var err error
		if p.from, err = gzip.NewReader(res.Body); err != nil {
			return err
		}
	}
	p.tokens = html.NewTokenizer(p.from)
	p.tokens.SetMaxBuf(maxToken)
	res.Body = p
	return nil
}

// page is the body of an answer in HTML whose links are changed as it is read.
type page struct {
	io.Closer
	from    io.Reader
	through func(link string) string
	tokens  *html.Tokenizer
	out     bytes.Buffer // what was changed and not read yet
	rest    io.Reader    // what follows and is not changed; nil before
}

// Read implements io.Reader.
func (p *page) Read(b []byte) (int, error) {
	for p.out.Len() == 0 {
		if p.rest != nil {
			return p.rest.Read(b)
		}
		p.next()
	}
	return p.out.Read(b)
}

// next takes the next token.
func (p *page) next() {
	p.out.Reset()
	switch p.tokens.Next() {
	case html.ErrorToken: // the end, or more than is held; reading on after a fault is the same fault
		p.rest = io.MultiReader(bytes.NewReader(slices.Concat(p.tokens.Raw(), p.tokens.Buffered())), p.from)
	case html.StartTagToken, html.SelfClosingTagToken:
		p.out.Write(p.tokens.Raw()) // before it is parsed, which writes to it
		tag := p.tokens.Token()
		if p.link(&tag) {
			p.out.Reset()
			p.out.WriteString(tag.String())
		}
	default:
		p.out.Write(p.tokens.Raw())
	}
}

// link changes the links of a tag, and reports whether there are any to change.
func (p *page) link(tag *html.Token) (changed bool) {
	for i, a := range tag.Attr {
		if !slices.Contains(linkAttributes, a.Key) {
			continue
		}
		if to := p.through(a.Val); to != a.Val {
			tag.Attr[i].Val, changed = to, true
		}
	}
	return changed
}
