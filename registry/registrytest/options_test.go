package registrytest_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/registrytest"
)

// Disk is the hub, v2. It has numbers where v1 has strings.
type Disk struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Spec            struct {
		Bytes   int64      `json:"bytes,omitempty"`
		Seconds int64      `json:"seconds,omitempty"`
		Class   int        `json:"class,omitempty"`
		Mirrors []MirrorV2 `json:"mirrors,omitempty"`
	} `json:"spec"`
}

type MirrorV2 struct {
	Bytes int64 `json:"bytes,omitempty"`
}

type DiskV1 struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Spec            DiskSpecV1 `json:"spec"`
}

type DiskSpecV1 struct {
	Size    string     `json:"size,omitempty"`
	Flush   string     `json:"flush,omitempty"`
	Class   Class      `json:"class,omitempty"`
	Mirrors []MirrorV1 `json:"mirrors,omitempty"`
}

type MirrorV1 struct {
	Size string `json:"size,omitempty"`
}

// Class is an enum that its schema does not describe.
type Class string

var classes = []Class{"", "slow", "fast"}

func bytesOf(size string) (int64, error) {
	if size == "" {
		return 0, nil
	}
	q, err := meta.ParseQuantity(size)
	return q.Value(), err
}

func sizeOf(bytes int64) string {
	if bytes == 0 {
		return ""
	}
	return meta.NewQuantity(bytes, meta.BinarySI).String()
}

func diskToHub(in *DiskV1, out *Disk) (err error) {
	if out.Spec.Bytes, err = bytesOf(in.Spec.Size); err != nil {
		return err
	}
	if in.Spec.Flush != "" {
		every, err := time.ParseDuration(in.Spec.Flush)
		if err != nil {
			return err
		}
		out.Spec.Seconds = int64(every / time.Second)
	}
	for out.Spec.Class = range classes {
		if classes[out.Spec.Class] == in.Spec.Class {
			break
		}
	}
	if classes[out.Spec.Class] != in.Spec.Class {
		return fmt.Errorf("unknown class %q", in.Spec.Class)
	}
	for _, m := range in.Spec.Mirrors {
		bytes, err := bytesOf(m.Size)
		if err != nil {
			return err
		}
		out.Spec.Mirrors = append(out.Spec.Mirrors, MirrorV2{bytes})
	}
	return nil
}

func diskFromHub(in *Disk, out *DiskV1) error {
	out.Spec.Size = sizeOf(in.Spec.Bytes)
	if in.Spec.Seconds != 0 {
		out.Spec.Flush = (time.Duration(in.Spec.Seconds) * time.Second).String()
	}
	if in.Spec.Class < 0 || in.Spec.Class >= len(classes) {
		return fmt.Errorf("unknown class %d", in.Spec.Class)
	}
	out.Spec.Class = classes[in.Spec.Class]
	for _, m := range in.Spec.Mirrors {
		out.Spec.Mirrors = append(out.Spec.Mirrors, MirrorV1{sizeOf(m.Bytes)})
	}
	return nil
}

var disks = registry.Definition[Disk]{Group: "example.com", Version: "v2", Versions: []registry.VersionOf[Disk]{
	registry.Spoke[DiskV1, Disk]{Version: "v1", ToHub: diskToHub, FromHub: diskFromHub},
}}

func makeSize(r *rand.Rand) string { return fmt.Sprintf("%dMi", 1+2*r.IntN(500)) }

// Generators, for a type or for a field, make the strings that ToHub parses.
func ExampleOptions() {
	registrytest.Options{Generators: []registrytest.Generator{
		registrytest.ForType(func(r *rand.Rand) Class { return classes[r.IntN(len(classes))] }),
		registrytest.ForField[DiskV1]("spec.flush", func(r *rand.Rand) string {
			return (time.Duration(1+r.IntN(3600)) * time.Second).String()
		}),
		registrytest.ForField[DiskSpecV1]("size", makeSize),
		registrytest.ForField[MirrorV1]("size", makeSize),
		registrytest.ForField[Disk]("spec.class", func(r *rand.Rand) int { return r.IntN(len(classes)) }),
	}}.RoundTrip(&printing{}, registry.Of(disks))
	registrytest.RoundTrip(&printing{}, registry.Of(disks)) // without generators
	// Output:
	// Disk.example.com, version v2, seed 0: disks.example.com "seed-0" of version example.com/v2 cannot be converted to example.com/v1: unknown class -847
	// Disk.example.com, version v1: ToHub rejects 86 of 100 objects, see Options.Generators; the last: disks.example.com "seed-99" of version example.com/v1 cannot be converted to example.com/v2: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'
}

// TestGeneratorsMatchFields checks which values a generator makes, and that a generator without a
// matching field fails the test.
func TestGeneratorsMatchFields(t *testing.T) {
	run := func(generators ...registrytest.Generator) string {
		r := &recorder{TB: t}
		registrytest.Options{Generators: generators}.RoundTrip(r, registry.Of(disks))
		return strings.Join(r.failures, "\n")
	}
	good := func(r *rand.Rand) int64 { return r.Int64N(9) }
	for name, c := range map[string]struct {
		generator registrytest.Generator
		want      string
	}{
		"unknown field":         {registrytest.ForField[DiskV1]("spec.sizes", makeSize), "the generator of spec.sizes of registrytest_test.DiskV1 matches no field of the kinds"},
		"another struct":        {registrytest.ForField[Lamp]("spec.size", makeSize), "matches no field"},
		"unused type":           {registrytest.ForType(func(*rand.Rand) time.Month { return 1 }), "the generator of time.Month matches no field of the kinds"},
		"through lists":         {registrytest.ForField[Disk]("spec.mirrors.bytes", good), ""},
		"innermost struct":      {registrytest.ForField[MirrorV2]("bytes", good), ""},
		"value without JSON":    {registrytest.ForField[DiskV1]("spec.size", func(*rand.Rand) any { return func() {} }), "the generator of spec.size of registrytest_test.DiskV1: json: unsupported type"},
		"value of another type": {registrytest.ForField[DiskV1]("spec.size", func(*rand.Rand) bool { return true }), "making an object: "},
	} {
		if got := run(c.generator); c.want == "" {
			assert.NotContains(t, got, "matches no field", name)
		} else {
			assert.Contains(t, got, c.want, name)
		}
	}
}
