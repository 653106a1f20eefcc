package openapi

import (
	"testing"

	"orch.io/controlplane/registry/builtin"
)

// BenchmarkDocuments makes every document of the built-in kinds.
func BenchmarkDocuments(b *testing.B) {
	for _, version := range []string{"V2", "V2Protobuf", "V3"} {
		b.Run(version, func(b *testing.B) {
			b.ReportAllocs()
			var size int64
			for b.Loop() {
				s := catalog(b, builtin.Kinds()...)
				size = 0
				switch version {
				case "V2":
					size = int64(V2(s.Types(), info(s)).JSON().Size())
				case "V2Protobuf":
					size = int64(V2(s.Types(), info(s)).Protobuf().Size())
				default:
					for gv, versions := range servedVersions(s.Types()) {
						size += int64(V3(gv, versions, info(s)).JSON().Size())
					}
				}
			}
			b.SetBytes(size)
		})
	}
}
