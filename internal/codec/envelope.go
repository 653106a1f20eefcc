package codec

import (
	"bytes"
	"iter"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// magic begins every protobuf object that is not part of another message.
const magic = "k8s\x00"

// Envelope appends the message of an object, body, in its envelope: the magic bytes and a
// message with the type (1: apiVersion, kind), the object (2), its encoding (3) and its content
// type (4).
func Envelope(dst []byte, apiVersion, kind string, body []byte) []byte {
	dst = envelopeHead(dst, apiVersion, kind, len(body))
	return append(append(dst, body...), envelopeTail...)
}

const envelopeTail = "\x1a\x00\x22\x00"

func envelopeHead(dst []byte, apiVersion, kind string, size int) []byte {
	dst = append(append(dst, magic...), 0x0a)
	n := 2 + protowire.SizeBytes(len(apiVersion)) + protowire.SizeBytes(len(kind))
	dst = append(protowire.AppendVarint(dst, uint64(n)), 0x0a)
	dst = append(protowire.AppendString(dst, apiVersion), 0x12)
	dst = append(protowire.AppendString(dst, kind), 0x12)
	return protowire.AppendVarint(dst, uint64(size))
}

// OpenEnvelope parses the result of Envelope. body shares memory with data. Errors are 400
// *meta.Status.
func OpenEnvelope(data []byte) (apiVersion, kind string, body []byte, err error) {
	data, ok := bytes.CutPrefix(data, []byte(magic))
	if !ok {
		return "", "", nil, badProto("it does not begin with the magic bytes")
	}
	parts, err := byteFields(data)
	if err != nil {
		return "", "", nil, err
	}
	typ, err := byteFields(parts[1])
	if err != nil {
		return "", "", nil, err
	}
	if len(parts[3]) > 0 || len(parts[4]) > 0 && !bytes.HasSuffix(parts[4], []byte(".protobuf")) {
		return "", "", nil, badProto("the object in the envelope is encoded or is not protobuf")
	}
	return text(typ[1]), text(typ[2]), parts[2], nil
}

// byteFields returns the fields 1 to 4 of a message that have the wire type bytes.
func byteFields(data []byte) (fields [5][]byte, err error) {
	for len(data) > 0 {
		number, wire, n := protowire.ConsumeTag(data)
		if n < 0 {
			return fields, badProto("a damaged envelope")
		}
		data = data[n:]
		size := protowire.ConsumeFieldValue(number, wire, data)
		if size < 0 {
			return fields, badProto("a damaged envelope")
		}
		if wire == protowire.BytesType && number < 5 {
			fields[number] = payload(data[:size])
		}
		data = data[size:]
	}
	return fields, nil
}

// ProtoList appends a list in its envelope. bodies yields the messages of the items and is
// iterated twice: for the size and for the content.
func ProtoList(dst []byte, apiVersion, kind string, m ListMeta, bodies iter.Seq[[]byte]) []byte {
	head := protoListMeta(m)
	size := len(head)
	for b := range bodies {
		size += 1 + protowire.SizeBytes(len(b))
	}
	dst = slices.Grow(dst, size+len(apiVersion)+len(kind)+32)
	dst = append(envelopeHead(dst, apiVersion, kind, size), head...)
	for b := range bodies {
		dst = protowire.AppendBytes(append(dst, 0x12), b)
	}
	return append(dst, envelopeTail...)
}

// protoListMeta returns field 1 of a list: selfLink, resourceVersion, continue,
// remainingItemCount.
func protoListMeta(m ListMeta) []byte {
	b := []byte{0x0a, 0, 0x0a, 0}
	b = protowire.AppendString(append(b, 0x12), m.ResourceVersion)
	b = protowire.AppendString(append(b, 0x1a), m.Continue)
	if m.Remaining != nil {
		b = protowire.AppendVarint(append(b, 0x20), uint64(*m.Remaining))
	}
	return closeLength(b, 1)
}

// ProtoPartial returns the message of an object's PartialObjectMetadata, which is the metadata
// field of the object's message. The result shares memory with body; it is nil if body does not
// begin with metadata.
func ProtoPartial(body []byte) []byte {
	number, wire, n := protowire.ConsumeTag(body)
	if n < 0 || number != 1 || wire != protowire.BytesType {
		return nil
	}
	size := protowire.ConsumeFieldValue(number, wire, body[n:])
	if size < 0 {
		return nil
	}
	return body[:n+size]
}

// ProtoFrameHead is the number of bytes of a frame's length.
const ProtoFrameHead = 4

// ProtoFrame appends a watch event of a protobuf stream: its length in ProtoFrameHead bytes,
// then the event type (1) and the object's envelope (2, as raw bytes).
func ProtoFrame(dst []byte, eventType string, envelope []byte) []byte {
	raw := 1 + protowire.SizeBytes(len(envelope))
	size := 1 + protowire.SizeBytes(len(eventType)) + 1 + protowire.SizeBytes(raw)
	dst = append(dst, byte(size>>24), byte(size>>16), byte(size>>8), byte(size))
	dst = protowire.AppendString(append(dst, 0x0a), eventType)
	dst = protowire.AppendVarint(append(dst, 0x12), uint64(raw))
	return protowire.AppendBytes(append(dst, 0x0a), envelope)
}
