package typed

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// object is implemented by all objects of client-go.
type object interface {
	GetName() string
	GetResourceVersion() string
	GetLabels() map[string]string
}

// client is the typed client of a resource.
type client struct {
	t *testing.T
	reflect.Value
}

// client returns the typed client of the row, such as clientset.StorageV1beta1().CSINodes() for
// csinodes of storage.k8s.io/v1beta1.
func (r *row) client(t *testing.T, clientset, dynamic any) client {
	if r.dynamic() {
		m := reflect.ValueOf(dynamic).MethodByName("Resource")
		resource := reflect.New(m.Type().In(0)).Elem()
		for name, value := range map[string]string{"Group": r.group, "Version": r.version, "Resource": r.plural} {
			resource.FieldByName(name).SetString(value)
		}
		require.False(t, r.Namespaced())
		return client{t, m.Call([]reflect.Value{resource})[0]}
	}
	group, _, _ := strings.Cut(r.group, ".")
	version := method(reflect.ValueOf(clientset), group+r.version)
	require.True(t, version.IsValid(), "the clientset does not have %s", r.apiVersion())
	of := method(version.Call(nil)[0], r.plural)
	require.True(t, of.IsValid(), "the clientset does not have %s of %s", r.plural, r.apiVersion())
	var in []reflect.Value
	if r.Namespaced() {
		in = append(in, reflect.ValueOf("default"))
	}
	require.Equal(t, len(in), of.Type().NumIn())
	return client{t, of.Call(in)[0]}
}

// method returns the method with the given lower-case name, or the zero value.
func method(of reflect.Value, name string) reflect.Value {
	for i := range of.NumMethod() {
		if strings.ToLower(of.Type().Method(i).Name) == name {
			return of.Method(i)
		}
	}
	return reflect.Value{}
}

// create creates the object that the JSON describes.
func (c client) create(body []byte) any {
	c.t.Helper()
	m := c.MethodByName("Create")
	for i := range m.Type().NumIn() {
		if in := m.Type().In(i); in.Implements(reflect.TypeFor[object]()) {
			o := reflect.New(in.Elem())
			require.NoError(c.t, json.Unmarshal(body, o.Interface()))
			return c.call("Create", o.Interface())[0]
		}
	}
	require.Fail(c.t, "no object is an argument of Create")
	return nil
}

// call calls a method that must not return an error. It passes the arguments, in order, to the
// parameters of their types, and adds contexts and options.
func (c client) call(name string, args ...any) []any {
	c.t.Helper()
	m := c.MethodByName(name)
	require.True(c.t, m.IsValid(), "no method %s", name)
	var in []reflect.Value
	for i := range m.Type().NumIn() {
		param := m.Type().In(i)
		switch {
		case m.Type().IsVariadic() && i == m.Type().NumIn()-1:
		case param == reflect.TypeFor[context.Context]():
			in = append(in, reflect.ValueOf(c.t.Context()))
		case len(args) > 0 && reflect.TypeOf(args[0]).ConvertibleTo(param):
			in = append(in, reflect.ValueOf(args[0]).Convert(param))
			args = args[1:]
		default:
			in = append(in, options(c.t, param))
		}
	}
	require.Empty(c.t, args, "arguments of %s", name)
	return c.results(m.Call(in))
}

// the results without the error, which is nil
func (c client) results(out []reflect.Value) (list []any) {
	c.t.Helper()
	last := len(out) - 1
	if !out[last].IsNil() {
		require.NoError(c.t, out[last].Interface().(error))
	}
	for _, v := range out[:last] {
		list = append(list, v.Interface())
	}
	return list
}

// options returns a zero value of an options type, or a pointer to it.
func options(t *testing.T, param reflect.Type) reflect.Value {
	t.Helper()
	name := param.String()
	require.True(t, strings.HasSuffix(name, "Options"), "a parameter %s", name)
	if param.Kind() == reflect.Pointer {
		return reflect.New(param.Elem())
	}
	return reflect.Zero(param)
}

// listed returns the names of the objects in a list.
func (c client) listed() (names []string) {
	c.t.Helper()
	items := reflect.ValueOf(c.call("List")[0]).Elem().FieldByName("Items")
	for i := range items.Len() {
		names = append(names, items.Index(i).Addr().Interface().(object).GetName())
	}
	return names
}

// watch starts a watch after a version.
func (c client) watch(resourceVersion string) watch {
	c.t.Helper()
	m := c.MethodByName("Watch")
	from := reflect.New(m.Type().In(m.Type().NumIn() - 1)).Elem()
	from.FieldByName("ResourceVersion").SetString(resourceVersion)
	return watch{reflect.ValueOf(c.call("Watch", from.Interface())[0])}
}

type watch struct{ reflect.Value }

// next returns the next event and its object.
func (w watch) next(t *testing.T) (kind string, o object) {
	t.Helper()
	events := w.MethodByName("ResultChan").Call(nil)[0]
	chosen, event, ok := reflect.Select([]reflect.SelectCase{
		{Dir: reflect.SelectRecv, Chan: events},
		{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(time.After(5 * time.Minute))},
	})
	require.Zero(t, chosen, "no event")
	require.True(t, ok, "the watch ended")
	o, ok = event.FieldByName("Object").Interface().(object)
	require.True(t, ok, "an event %v", event)
	return event.FieldByName("Type").String(), o
}

func (w watch) stop() { w.MethodByName("Stop").Call(nil) }
