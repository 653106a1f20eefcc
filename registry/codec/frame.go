package codec

import "encoding/binary"

// Frame appends one watch event as a line of JSON:
// {"type":"ADDED","object":…} and a line break.
func Frame(dst []byte, eventType string, object []byte) []byte {
	dst = append(dst, `{"type":"`...)
	dst = append(dst, eventType...)
	dst = append(dst, `","object":`...)
	dst = append(dst, object...)
	return append(dst, '}', '\n')
}

// FrameLength appends a message after its length in four bytes, the most
// significant first: the framing of protobuf streams.
func FrameLength(dst, message []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(message)))
	return append(dst, message...)
}
