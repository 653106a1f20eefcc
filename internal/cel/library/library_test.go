package library_test

import (
	"strings"
	"testing"

	"cel.dev/cel-go/cel"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/cel/library"
)

// TestFunctions evaluates expressions that are true or return an error.
func TestFunctions(t *testing.T) {
	asks := library.NewAuthorization(names.Kubernetes)
	env, err := cel.NewEnv(append(library.Options(names.Kubernetes), cel.CrossTypeNumericComparisons(true), cel.Variable("authorizer", asks.AuthorizerType()))...)
	require.NoError(t, err)
	authorizer := asks.Authorizer(&meta.User{Name: "jane"}, func(a library.Action) (bool, string, error) {
		if a.Verb == "get" && a.Resource == "pods" && a.Namespace == "default" || a.Path == "/healthz" || a.Account.Name == "robot" {
			return true, "because", nil
		}
		return false, "", nil
	})
	for _, test := range []struct{ expr, fault string }{
		{`url('https://example.com:80/a%20b?k=1&k=2').getHost() == 'example.com:80'`, ""},
		{`url('https://example.com:80/a%20b?k=1&k=2').getPort() == '80'`, ""},
		{`url('https://example.com:80/a%20b?k=1&k=2').getEscapedPath() == '/a%20b'`, ""},
		{`url('https://example.com:80/?k=1&k=2').getQuery() == {'k': ['1', '2']}`, ""},
		{`url('/path') == url('/path') && isURL('/a') && !isURL('a b')`, ""},
		{`url('::')`, "URL parse error during conversion from string: parse \"::\": missing protocol scheme"},
		{`quantity('1.5Gi').isGreaterThan(quantity('1Gi')) && quantity('1k') == quantity('1000')`, ""},
		{`quantity('1500m').add(1).compareTo(quantity('2.5')) == 0 && quantity('2').sub(quantity('1')).asInteger() == 1`, ""},
		{`isQuantity('1Mi') && !isQuantity('x') && quantity('1500m').asApproximateFloat() == 1.5 && !quantity('1500m').isInteger()`, ""},
		{`quantity('1500m').asInteger() == 1`, "cannot convert value to integer"},
		{`semver('1.2.3').isLessThan(semver('1.10.0')) && semver('1.2.3').major() == 1 && isSemver('v1.0', true) && !isSemver('v1.0')`, ""},
		{`format.dns1123Label().validate('Bad').hasValue() && !format.dns1123Label().validate('good').hasValue()`, ""},
		{`format.named('uuid').value().validate('x').value() == ['does not match the UUID format'] && !format.named('nothing').hasValue()`, ""},
		{`!format.dns1123LabelPrefix().validate('name-').hasValue() && format.date().validate('2000-13-01').hasValue()`, ""},
		{`'abc 123'.find('[0-9]+') == '123' && 'a1b2'.findAll('[0-9]') == ['1', '2'] && 'a1b2'.findAll('[0-9]', 1) == ['1']`, ""},
		{`'a'.find('(')`, "Illegal regex"},
		{`jsonpatch.escapeKey('a/b~c') == 'a~1b~0c'`, ""},
		{`[1, 2, 3].isSorted() && !['b', 'a'].isSorted() && [1, 3, 2].max() == 3 && [2.5, 1.5].min() == 1.5 && [1, 2].sum() == 3`, ""},
		{`[1, 2, 1].indexOf(1) == 0 && [1, 2, 1].lastIndexOf(1) == 2 && ['a'].indexOf('b') == -1 && [].indexOf(1) == -1`, ""},
		{`[duration('1s'), duration('2s')].sum() == duration('3s') && [].sum() == 0 && dyn([]).sum() == 0`, ""},
		{`dyn([duration('1s')]).sum() == duration('1s') && dyn([1.5]).sum() == 1.5 && dyn([1, 2]).isSorted() && dyn(['b', 'a']).min() == 'a'`, ""},
		{`[1].filter(x, x > 1).max() == 1`, "max called on empty list"},
		{`ip('10.0.0.1').family() == 4 && cidr('10.0.0.0/8').containsIP('10.1.1.1') && !isIP('x')`, ""},
		{`optional.of(1).hasValue() && [1, 2].sort() == [1, 2] && sets.contains([1, 2], [1]) && 'A'.lowerAscii() == 'a'`, ""},
		{`authorizer.group('').resource('pods').namespace('default').check('get').allowed()`, ""},
		{`authorizer.group('').resource('pods').namespace('default').check('get').reason() == 'because'`, ""},
		{`!authorizer.group('').resource('pods').check('get').allowed() && authorizer.path('healthz').check('get').allowed()`, ""},
		{`authorizer.serviceAccount('default', 'robot').group('apps').resource('x').check('delete').allowed()`, ""},
		{`authorizer.group('').resource(' ').check('get').allowed()`, "resource must not be empty"},
		{`authorizer.serviceAccount('Default', 'robot').path('/').check('get').allowed()`, "Invalid service account namespace"},
	} {
		ast, issues := env.Compile(test.expr)
		if !assert.NoError(t, issues.Err(), test.expr) {
			continue
		}
		program, err := env.Program(ast, cel.CostLimit(1_000_000))
		require.NoError(t, err)
		got, _, err := program.Eval(map[string]any{"authorizer": authorizer})
		if test.fault != "" {
			assert.ErrorContains(t, err, test.fault, test.expr)
			continue
		}
		if assert.NoError(t, err, test.expr) {
			assert.Equal(t, true, got.Value(), test.expr)
		}
	}
}

// TestStepsAreCounted: calls estimated as one step count their actual cost.
func TestStepsAreCounted(t *testing.T) {
	env, err := cel.NewEnv(append(library.Options(names.Kubernetes), cel.Variable("a", cel.StringType))...)
	require.NoError(t, err)
	for _, expr := range []string{`a.charAt(0) == 'a'`, `isURL(a)`} {
		ast, issues := env.Compile(expr)
		require.NoError(t, issues.Err(), expr)
		program, err := env.Program(ast, cel.CostLimit(10_000))
		require.NoError(t, err)
		_, _, err = program.Eval(map[string]any{"a": strings.Repeat("a", 1000)})
		require.NoError(t, err, expr)
		_, _, err = program.Eval(map[string]any{"a": strings.Repeat("a", 1_000_000)})
		assert.ErrorContains(t, err, "cost limit exceeded", expr)
	}
}
