package codec

// Frame appends one watch event as a line of JSON:
// {"type":"ADDED","object":…} and a line break.
func Frame(dst []byte, eventType string, object []byte) []byte {
	return append(append(FrameHead(dst, eventType), object...), FrameTail...)
}

// FrameHead appends what stands before the object of an event, FrameTail is
// what follows it.
func FrameHead(dst []byte, eventType string) []byte {
	dst = append(dst, `{"type":"`...)
	dst = append(dst, eventType...)
	return append(dst, `","object":`...)
}

// FrameTail ends what FrameHead began.
const FrameTail = "}\n"
