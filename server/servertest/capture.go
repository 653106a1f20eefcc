package servertest

import (
	"cmp"
	"io"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"

	"orch.io/controlplane/internal/codec"
)

// maxCapture is how many bytes of the body of a create are kept to find the name in it.
const maxCapture = 64 << 10

// capture wraps the body of a create and keeps its beginning.
type capture struct {
	io.ReadCloser

	mu   sync.Mutex // guards the fields below
	kept []byte
	read int // bytes of kept that the handler has read
	err  error
}

// Read implements io.Reader.
func (c *capture) Read(b []byte) (int, error) {
	c.mu.Lock()
	if n := copy(b, c.kept[c.read:]); n > 0 {
		c.read += n
		c.mu.Unlock()
		return n, nil
	}
	err := c.err
	c.mu.Unlock()
	if err != nil {
		return 0, err
	}
	n, err := c.ReadCloser.Read(b)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept = append(c.kept, b[:min(n, maxCapture-len(c.kept))]...)
	c.read = len(c.kept)
	return n, err
}

// peek reads the beginning of the body before the handler does, so that a rule for a name can be matched.
// Call it before the first Read.
func (c *capture) peek() {
	if len(c.kept) > 0 || c.err != nil {
		return
	}
	kept, err := io.ReadAll(io.LimitReader(c.ReadCloser, maxCapture)) // without c.mu, so that name does not block
	if err == nil && len(kept) < maxCapture {
		err = io.EOF
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept, c.err = kept, err
}

// name returns the name in the body as far as it was read, or generateName followed by a star.
func (c *capture) name() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	name, prefix := jsonNames(c.kept)
	if _, _, object, err := codec.OpenEnvelope(c.kept); err == nil {
		metadata := protoField(object, 1)
		name, prefix = string(protoField(metadata, 1)), string(protoField(metadata, 2))
	}
	if name == "" && prefix != "" {
		prefix += "*"
	}
	return cmp.Or(name, prefix)
}

func jsonNames(body []byte) (name, prefix string) {
	metadata := codec.FindField(body, "metadata")
	return codec.ScalarText(codec.FindField(metadata, "name")), codec.ScalarText(codec.FindField(metadata, "generateName"))
}

// protoField returns the bytes of a field of a message, nil if there is none.
func protoField(message []byte, number protowire.Number) []byte {
	for len(message) > 0 {
		field, wire, n := protowire.ConsumeField(message)
		if n < 0 {
			return nil
		}
		if field == number && wire == protowire.BytesType {
			_, _, head := protowire.ConsumeTag(message)
			value, _ := protowire.ConsumeBytes(message[head:n])
			return value
		}
		message = message[n:]
	}
	return nil
}
