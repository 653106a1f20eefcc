package library

import (
	"fmt"
	"net/url"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// urls are the functions of URLs: absolute ones, or absolute paths.
func (k kinds) urls() []function {
	query := sort[url.Values]{of: cel.MapType(cel.StringType, cel.ListType(cel.StringType)), to: func(v url.Values) ref.Val {
		return types.DefaultTypeAdapter.NativeToValue(map[string][]string(v))
	}}
	return []function{
		function1("url", text(), k.url, parseURL, read(cost.Arg(0))).sized(cost.Arg(0)),
		function1("isURL", text(), boolean(), valid(url.ParseRequestURI), read(cost.Arg(0))),
		function1("getScheme", k.url, text(), sure(func(u *url.URL) string { return u.Scheme }), look()).on(),
		function1("getHost", k.url, text(), sure(func(u *url.URL) string { return u.Host }), look()).on(),
		function1("getHostname", k.url, text(), sure((*url.URL).Hostname), look()).on(),
		function1("getPort", k.url, text(), sure((*url.URL).Port), look()).on(),
		function1("getEscapedPath", k.url, text(), sure((*url.URL).EscapedPath), look()).on(),
		function1("getQuery", k.url, query, sure((*url.URL).Query), look()).on(),
	}
}

// parseURL takes what is absolute. A fragment is no part of what comes before it.
func parseURL(text string) (*url.URL, error) {
	if _, err := url.ParseRequestURI(text); err != nil {
		return nil, fmt.Errorf("URL parse error during conversion from string: %w", err)
	}
	return url.Parse(text)
}
