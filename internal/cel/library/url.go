package library

import (
	"fmt"
	"net/url"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// urls returns the functions of URLs, which are absolute URLs or absolute paths.
func (k kinds) urls() []function {
	query := binding[url.Values]{of: cel.MapType(cel.StringType, cel.ListType(cel.StringType)), to: func(v url.Values) ref.Val {
		return types.DefaultTypeAdapter.NativeToValue(map[string][]string(v))
	}}
	return []function{
		function1("url", text(), k.url, parseURL, readCost(cost.Arg(0))).sized(cost.Arg(0)),
		function1("isURL", text(), boolean(), valid(url.ParseRequestURI), readCost(cost.Arg(0))),
		function1("getScheme", k.url, text(), infallible(func(u *url.URL) string { return u.Scheme }), lookCost()).asMethod(),
		function1("getHost", k.url, text(), infallible(func(u *url.URL) string { return u.Host }), lookCost()).asMethod(),
		function1("getHostname", k.url, text(), infallible((*url.URL).Hostname), lookCost()).asMethod(),
		function1("getPort", k.url, text(), infallible((*url.URL).Port), lookCost()).asMethod(),
		function1("getEscapedPath", k.url, text(), infallible((*url.URL).EscapedPath), lookCost()).asMethod(),
		function1("getQuery", k.url, query, infallible((*url.URL).Query), lookCost()).asMethod(),
	}
}

// parseURL parses an absolute URL or an absolute path. In contrast to ParseRequestURI, it
// splits off a fragment.
func parseURL(text string) (*url.URL, error) {
	if _, err := url.ParseRequestURI(text); err != nil {
		return nil, fmt.Errorf("URL parse error during conversion from string: %w", err)
	}
	return url.Parse(text)
}
