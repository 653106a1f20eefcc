package conformance

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// filler puts random values into objects; round 0 leaves everything empty,
// later rounds fill more and more.
type filler struct {
	*rand.Rand
	chance float64
}

func newFiller(r *rand.Rand, round int) *filler {
	return &filler{r, min(float64(round)/20, 0.95)}
}

func (f *filler) yes() bool { return f.Float64() < f.chance }

func (f *filler) text() string {
	words := []string{"", "a", "some text", "é😀", "<&>\"\\\n", "x.io/y", fmt.Sprint(f.Int64())}
	return words[f.IntN(len(words))]
}

func (f *filler) special(v reflect.Value) bool {
	switch v.Addr().Interface().(type) {
	case *metav1.TypeMeta:
	case **metav1.ShardInfo: // newer than what we serve
	case *metav1.Time:
		if f.yes() {
			v.Set(reflect.ValueOf(metav1.Unix(f.Int64N(4e9)-1e9, 0)))
		}
	case *metav1.MicroTime:
		if f.yes() {
			v.Set(reflect.ValueOf(metav1.NewMicroTime(time.Unix(f.Int64N(4e9), f.Int64N(1e6)*1000))))
		}
	case *metav1.Duration:
		v.Set(reflect.ValueOf(metav1.Duration{Duration: time.Duration(f.Int64N(1e15))}))
	case *metav1.FieldsV1:
		v.Set(reflect.ValueOf(metav1.FieldsV1{Raw: []byte(`{"f:a":{"f:b":{}}}`)}))
	case *runtime.RawExtension:
		v.Set(reflect.ValueOf(runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"K","a":[1,"x"]}`)}))
	case *resource.Quantity:
		words := []string{"0", "100m", "1Gi", "2500", "1e3", "5G", "12345678n"}
		v.Set(reflect.ValueOf(resource.MustParse(words[f.IntN(len(words))])))
	case *intstr.IntOrString:
		if f.yes() {
			v.Set(reflect.ValueOf(intstr.FromInt32(f.Int32() - 1<<30)))
		} else {
			v.Set(reflect.ValueOf(intstr.FromString("50%")))
		}
	default:
		return false
	}
	return true
}

func (f *filler) fill(v reflect.Value, depth int) {
	if depth > 12 || f.special(v) {
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			f.fill(v.Field(i), depth+1)
		}
	case reflect.Pointer:
		if f.yes() && depth < 10 {
			v.Set(reflect.New(v.Type().Elem()))
			f.fill(v.Elem(), depth+1)
		}
	case reflect.Slice:
		f.slice(v, depth)
	case reflect.Map:
		if !f.yes() {
			return
		}
		v.Set(reflect.MakeMap(v.Type()))
		for range f.IntN(3) {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			f.fill(key, depth+1)
			f.fill(value, depth+1)
			v.SetMapIndex(key, value)
		}
	case reflect.String:
		if f.yes() {
			v.SetString(f.text())
		}
	case reflect.Bool:
		v.SetBool(f.yes())
	case reflect.Int32, reflect.Int64:
		if f.yes() {
			v.SetInt(int64(f.Int32() - 1<<30))
		}
	case reflect.Float64:
		if f.yes() {
			v.SetFloat(f.Float64() * 1000)
		}
	case reflect.Uint8:
		v.SetUint(uint64(f.Uint32() & 0xff))
	}
}

func (f *filler) slice(v reflect.Value, depth int) {
	if !f.yes() {
		return
	}
	n := f.IntN(3)
	if v.Type().Elem().Kind() == reflect.Struct && depth > 6 {
		n = min(n, 1)
	}
	v.Set(reflect.MakeSlice(v.Type(), n, n))
	for i := range n {
		f.fill(v.Index(i), depth+1)
	}
}
