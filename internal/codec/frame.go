package codec

// Frame appends a watch event as a line of JSON: {"type":"ADDED","object":…} and a line break.
func Frame(dst []byte, eventType string, object []byte) []byte {
	return append(append(FrameHead(dst, eventType), object...), FrameTail...)
}

// FrameHead appends the part of an event before its object.
func FrameHead(dst []byte, eventType string) []byte {
	dst = append(dst, `{"type":"`...)
	dst = append(dst, eventType...)
	return append(dst, `","object":`...)
}

// FrameTail is the part of an event after its object.
const FrameTail = "}\n"
