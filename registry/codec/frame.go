package codec

// Frame appends one watch event as a line of JSON:
// {"type":"ADDED","object":…} and a line break.
func Frame(dst []byte, eventType string, object []byte) []byte {
	dst = append(dst, `{"type":"`...)
	dst = append(dst, eventType...)
	dst = append(dst, `","object":`...)
	dst = append(dst, object...)
	return append(dst, '}', '\n')
}
